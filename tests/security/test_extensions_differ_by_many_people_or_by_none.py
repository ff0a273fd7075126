"""Two runs that begin at the same rows list the same people, or many more or fewer of them.

Of an extension the coordinator counts exactly how many people of each earlier pattern of presence
have which pattern now. Were one person listed in the second of two runs, and not in the first, the
difference would be where else that person is.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from support.aligning import Home, alignment_job
from support.proposals import EXTENDS, KNOWN, aligned_before, extension, pair, vault_of, with_spec

from colonnade.client.results import JobDetails
from colonnade.client.views import JobView
from colonnade.methods.alignment.codec import run_name
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.methods.job import Job, job_id
from colonnade.party.alignment.store import EndedAlignment
from colonnade.party.methods.alignment.state import PartyState
from colonnade.party.vault.vault import Vault
from colonnade.wire.jobspec import job_to_bytes

NEW = [f"NHS new {number}" for number in range(101)]


class Party:
    """A party that has an alignment of 200 people, and may extend it by 100 or more."""

    def __init__(self, folder: Path) -> None:
        self.sides, self.runs = pair(folder, KNOWN, EXTENDS), 0
        first = alignment_job(self.sides)
        assert isinstance(first.method, AlignmentJobSpec)
        self.first: AlignmentSpec = first.method.alignment
        aligned_before(self.home, self.first)
        self.vault = vault_of(self.home)

    @property
    def home(self) -> Home:
        return self.sides["hospital"]

    def has(self, people: list[str]) -> None:
        lines = ["person,age", *(f"{person},1" for person in people)]
        (self.home.folder / "people.csv").write_text("\n".join(lines) + "\n")

    def extension(self) -> Job:
        self.runs += 1
        return extension(self.sides, self.first, min_new=100, salt=self.runs.to_bytes(32))

    def listed(self, job: Job) -> set[bytes]:
        """Return whom a run lists that the party agrees to."""
        decided = self.vault.consider(job_to_bytes(job))
        assert decided.accepted, decided.message
        return {*answering(self.vault, job)}

    def ids(self, people: list[str]) -> set[bytes]:
        return {self.first.ids.encode([person]) or b"" for person in people}


def answering(vault: Vault, job: Job) -> tuple[bytes, ...]:
    assert vault._aligner is not None
    return vault._aligner._open[job_id(job_to_bytes(job))].ids


def end(party: Party, job: Job) -> None:
    """End an extension as its last round does."""
    assert isinstance(job.method, AlignmentJobSpec)
    spec, ids = job.method.alignment, answering(party.vault, job)
    rows = b"".join(row.to_bytes(4, "little") for row in range(len(ids)))
    state = PartyState(run_name(spec), None, b"", n_rows=900, kept=900, rows=rows)
    party.home.alignments.keep(EndedAlignment(spec, state, ids, ("person",)))


def refusal(vault: Vault, job: Job) -> tuple[str, str]:
    decided = vault.consider(job_to_bytes(job))
    assert not decided.accepted
    return decided.code, decided.message


def test_after_a_run_that_was_cancelled_one_more_person_waits(tmp_path: Path) -> None:
    party = Party(tmp_path)
    party.has([*KNOWN, *NEW[:100]])
    first = party.extension()
    assert party.listed(first) == party.ids([*KNOWN, *NEW[:100]])
    party.vault.close_job(job_id(job_to_bytes(first)), finished=False)
    party.has([*KNOWN, *NEW])
    party.vault = vault_of(party.home)  # also after a restart
    assert party.listed(party.extension()) == party.ids([*KNOWN, *NEW[:100]])


def test_a_run_is_compared_with_all_before_it_not_with_the_last_alone(tmp_path: Path) -> None:
    # 101 come and 100 of them leave: beside the second run many left, beside the first one came.
    party = Party(tmp_path)
    for people in (KNOWN, [*KNOWN, *NEW]):
        party.has(people)
        job = party.extension()
        assert party.listed(job) == party.ids(people)
        party.vault.close_job(job_id(job_to_bytes(job)), finished=False)
    party.has([*KNOWN, NEW[0]])
    party.vault = vault_of(party.home)  # also after a restart
    assert party.listed(party.extension()) == party.ids([*KNOWN, *NEW])


def test_what_was_extended_is_not_extended_again(tmp_path: Path) -> None:
    party = Party(tmp_path)
    party.has([*KNOWN, *NEW[:100]])
    first = party.extension()
    party.listed(first)
    end(party, first)
    # The process may end before it hears that the job has: it goes on with the same run.
    assert vault_of(party.home).consider(job_to_bytes(first)).accepted
    party.vault.close_job(job_id(job_to_bytes(first)), finished=True)
    party.has([*KNOWN, *NEW])
    code, message = refusal(party.vault, party.extension())
    assert (code, "was extended already" in message) == ("policy_refused", True)
    assert not [*party.home.alignments.path.glob("*.listed")]


def test_two_extensions_do_not_go_on_at_once(tmp_path: Path) -> None:
    party = Party(tmp_path)
    party.has([*KNOWN, *NEW[:100]])
    party.listed(party.extension())
    code, message = refusal(party.vault, party.extension())
    assert (code, "another extension" in message) == ("policy_refused", True)


@pytest.mark.parametrize("gone", [0, 1, 99, 100])
def test_people_who_left_stay_listed_while_they_are_few(tmp_path: Path, gone: int) -> None:
    party = Party(tmp_path)
    party.has(KNOWN[gone:])
    wanted = KNOWN if gone < 100 else KNOWN[gone:]
    assert party.listed(party.extension()) == party.ids(wanted)


def test_a_run_belongs_to_one_job(tmp_path: Path) -> None:
    # Or two orders of rows would go by one name, and what was signed in one run would be good in
    # another.
    party = Party(tmp_path)
    first = alignment_job(party.sides)
    assert isinstance(first.method, AlignmentJobSpec)
    again = with_spec(alignment_job(party.sides), salt=first.method.alignment.salt)
    assert isinstance(again.method, AlignmentJobSpec)
    assert run_name(again.method.alignment) == run_name(first.method.alignment)
    assert party.vault.consider(job_to_bytes(first)).accepted
    for vault in (party.vault, vault_of(party.home)):
        code, message = refusal(vault, again)
        assert (code, "another job" in message) == ("policy_refused", True)
        assert vault.consider(job_to_bytes(first)).accepted
    party.vault.close_job(job_id(job_to_bytes(first)), finished=False)
    assert refusal(party.vault, again)[0] == "policy_refused"


def test_a_retry_is_a_run_of_its_own(tmp_path: Path) -> None:
    first = alignment_job(Party(tmp_path).sides)
    view = JobView("ab12", "people", "failed", "", 1, 9, 1.7e9, 1.7e9, "analyst", ())
    again = JobDetails(view, job_to_bytes(first)).again()
    assert isinstance(first.method, AlignmentJobSpec)
    assert isinstance(again.method, AlignmentJobSpec)
    specs = first.method.alignment, again.method.alignment
    assert run_name(specs[0]) != run_name(specs[1])
    assert replace(specs[1], salt=specs[0].salt) == specs[0]
