"""What takes foreign bytes, and whole examples of each to start from.

A target gets any bytes and must refuse them by a `ColonnadeError`, or take them; anything else is a
crash. Those that ask a vault also check that what is refused as a message costs nothing.
"""

import atexit
import datetime as dt
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from google.protobuf.message import DecodeError
from support.desk import Desk, job_of

from colonnade.bench.faults.cases import COORDINATOR_ID, N_ROWS, NAMES, Organizations
from colonnade.bench.faults.jobs import METHODS, OVER_CLIENTS, STAGED, make_job
from colonnade.core.config import parse_toml
from colonnade.core.errors import BadInput, BadMessage, ColonnadeError
from colonnade.data.model import LinearModel
from colonnade.data.schema import parse_schema
from colonnade.data.table import COARSE_NAME
from colonnade.data.table_header import read_header
from colonnade.ledger import create
from colonnade.ledger.create import LedgerConfig
from colonnade.ledger.export import verify_export
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import LedgerState
from colonnade.ledger.storage.mirror import HeadMirror
from colonnade.masking.masks import words_from_bytes
from colonnade.methods.alignment.codec import segments_from_bytes
from colonnade.methods.alignment.codec import spec_from_bytes as alignment_from_bytes
from colonnade.methods.alignment.crypto.exchange import Unattested
from colonnade.methods.alignment.crypto.points import points_from_bytes
from colonnade.methods.job import job_id
from colonnade.methods.messages import read
from colonnade.methods.prediction.codec import announcements_from
from colonnade.methods.prediction.codec import spec_from_bytes as prediction_from_bytes
from colonnade.methods.sealed.packing import unpack
from colonnade.party.alignment.store import AlignmentFolder, read_outcome
from colonnade.party.config import PartyConfig
from colonnade.party.methods.alignment.state import state_from_bytes
from colonnade.party.methods.sealed_keys import MemoryKeys
from colonnade.party.policy_file import load_policy
from colonnade.party.prediction.record import Answered
from colonnade.party.vault.vault import Vault
from colonnade.pki.certificates import certificates_from_pem, check_chain, request_from_pem
from colonnade.pki.identity import fingerprint_from_text, identity_of
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.simulation import SeededNoise
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import prediction_pb2
from colonnade.wire.codec import receipt_from_bytes
from colonnade.wire.fragments import Assembly
from colonnade.wire.heads import head_from_proto
from colonnade.wire.jobspec import job_from_bytes, job_to_bytes, question_of
from fuzz import examples

Take = Callable[[bytes], object]
LONGEST = 8192


@dataclass(frozen=True, slots=True)
class Target:
    """A parser and whole examples; ``refusals`` are what it may raise besides `ColonnadeError`."""

    take: Take
    examples: Sequence[bytes]
    refusals: tuple[type[Exception], ...] = ()

    def __call__(self, body: bytes) -> bool:
        """Feed the bytes; return whether they were taken."""
        try:
            self.take(body)
        except Exception as refused:
            if not isinstance(refused, (ColonnadeError, *self.refusals)):
                raise
            if "\n" in str(refused):
                raise AssertionError("a refusal is more than one line") from refused
            return False
        return True


class Places:
    """Folders, organizations and a coordinator that targets share."""

    @cached_property
    def folder(self) -> Path:
        """A scratch folder, removed when the process ends."""
        folder = Path(tempfile.mkdtemp(prefix="colonnade-fuzz-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder

    @cached_property
    def organizations(self) -> Organizations:
        """Tables and keys."""
        return Organizations(self.folder / "organizations")

    @cached_property
    def specs(self) -> Mapping[str, bytes]:
        """A specification of every method that needs no earlier job."""
        return {
            method: job_to_bytes(
                make_job(self.organizations, method, NAMES[:2], salt=1, short=False)
            )
            for method in METHODS
            if method not in STAGED
        }

    def as_file(self, name: str, take: Callable[[Path], object]) -> Take:
        """Return a target of bytes from one of files."""
        path = self.folder / name

        def taken(body: bytes) -> object:
            path.write_bytes(body)
            return take(path)

        return taken


def _text(take: Callable[[str], object]) -> Take:
    def taken(body: bytes) -> object:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            raise BadInput("no text") from None
        return take(text)

    return taken


# -- messages ------------------------------------------------------------------------------------


def _frames(_: Places) -> Iterator[tuple[str, Target]]:
    for kind in (pb.AttachRequest, pb.AttachResponse):

        def take(body: bytes, kind: Any = kind) -> None:
            assembly = Assembly(kind)
            for _ in range(2):
                with suppress(DecodeError):
                    assembly.take(kind.FromString(body))

        yield f"frames {kind.__name__}", Target(take, examples.frames(kind))


def _specifications(places: Places) -> Iterator[tuple[str, Target]]:
    def take(body: bytes) -> None:
        job = job_from_bytes(body)
        question_of(body)
        again = job_from_bytes(job_to_bytes(job))
        if again != job:
            raise AssertionError("a specification does not come back")
        for member in job.members:
            units = job.max_units(member.party)
            if units < 0 or (units == 0 and job.kind != "prediction"):
                raise AssertionError("a job costs nothing")

    yield "specification", Target(take, [*places.specs.values()])
    alignment = job_from_bytes(places.specs["alignment"]).method.alignment  # type: ignore[attr-defined]
    yield "alignment spec", Target(alignment_from_bytes, examples.alignment_specs(alignment))
    yield (
        "prediction spec",
        Target(prediction_from_bytes, examples.predictions(places.specs["moments"]), (ValueError,)),
    )


def _submissions(_: Places) -> Iterator[tuple[str, Target]]:
    desks: list[tuple[Desk, str]] = []

    def fresh() -> tuple[Desk, list[bytes]]:
        for desk, _name in desks:
            desk.store.close()
        desk = Desk("hospital", "lab")
        name, tasks = desk.opened(job_of("hospital", "lab"))
        desks[:] = [(desk, name)]
        answers = [desk.answer("lab", task) for task in tasks.values()][:1]
        answers.append(pb.AttachRequest(decision=pb.Decision(job_id=name, accepted=True)))
        answers.append(pb.AttachRequest(refusal=pb.Refusal(job_id=name, code="a", message="b")))
        answers.append(pb.AttachRequest(standing=pb.Standing(cap_units=1)))
        return desk, [each.SerializeToString() for each in answers]

    def take(body: bytes) -> None:
        desk, name = desks[0]
        try:
            message = pb.AttachRequest.FromString(body)
        except DecodeError:
            raise BadMessage("no message") from None
        desk.send("lab", message)
        if name not in desk.engine.runs:
            fresh()

    yield "submission", Target(take, fresh()[1])


def _tasks(places: Places) -> Iterator[tuple[str, Target]]:
    """Ask vaults: the first byte is the round."""
    for method, spec in places.specs.items():
        yield f"task {method}", Target(_asking(places, method, spec), examples.tasks(method))


def _asking(places: Places, method: str, spec: bytes) -> Take:
    held: list[tuple[Vault, Ledger, int]] = []

    def fresh() -> tuple[Vault, Ledger, int]:
        vault, ledger = _vault(places, method)
        decision = vault.consider(spec)
        if not decision.accepted:
            raise AssertionError(decision.message)
        held[:] = [(vault, ledger, 500)]
        return held[0]

    def take(body: bytes) -> None:
        vault, ledger, left = held[0] if held and held[0][2] else fresh()
        held[:] = [(vault, ledger, left - 1)]
        before = ledger.head
        try:
            vault.answer(job_id(spec), body[0] if body else 0, body[1:])
        except BadMessage:
            if ledger.head.spent != before.spent:
                raise AssertionError("a message that was refused was charged") from None
            raise

    return take


def _vault(places: Places, method: str) -> tuple[Vault, Ledger]:
    name, held = NAMES[0], places.organizations
    made = (held.of_clients if method in OVER_CLIENTS else held.of_people)[name]
    own_key = SimpleNamespace(generate=lambda: made.signer)
    with patch.object(create, "Ed25519PrivateKey", own_key):
        ledger = create.memory_ledger(LedgerConfig(name, {"": MAX_UNITS}, simulation=True))
    folder = Path(tempfile.mkdtemp(dir=places.folder))
    listed: Any = made.listed
    vault = Vault(
        made.dataset,
        ledger,
        SeededNoise(1),
        policy=held.policy(name, name, "triage", ""),
        coordinator=COORDINATOR_ID,
        today=lambda: dt.date(2026, 1, 1),
        align=(listed, AlignmentFolder(folder), Unattested()),
        keys=MemoryKeys(),
    )
    return vault, ledger


def _proposals(places: Places) -> Iterator[tuple[str, Target]]:
    """Propose jobs to a vault: whatever comes, it says yes or no, and no more."""
    held: list[tuple[Vault, Ledger, int]] = []

    def take(body: bytes) -> None:
        vault, ledger, left = held[0] if held and held[0][2] else (*_vault(places, "moments"), 200)
        held[:] = [(vault, ledger, left - 1)]
        decision = vault.consider(body)
        if decision.code == ColonnadeError.code:
            raise AssertionError("a proposal met a bug")
        if ledger.state.total:
            raise AssertionError("a proposal was charged")

    yield "proposal", Target(take, [*places.specs.values()])


# -- ledgers, receipts, certificates ---------------------------------------------------------------


def _ledgers(places: Places) -> Iterator[tuple[str, Target]]:
    lines, releases, heads = examples.ledger()

    def apply(text: str) -> None:
        state = LedgerState()
        for line in text.splitlines():
            apply_line(state, line)

    def mirror(body: bytes) -> None:
        HeadMirror._slots(body.ljust(8192, b"\0"))

    def head(body: bytes) -> None:
        try:
            message = pb.LedgerHead.FromString(body)
        except DecodeError:
            raise BadMessage("no head") from None
        head_from_proto(message, federation="study", party="crash")

    del places
    yield "ledger", Target(_text(apply), ["\n".join(lines[:-1]).encode()])
    yield (
        "export",
        Target(_text(lambda text: verify_export(text.splitlines())), ["\n".join(lines).encode()]),
    )
    yield "receipt", Target(receipt_from_bytes, releases)
    yield "mirror", Target(mirror, [HeadMirror._slot(1, heads)])
    yield "head", Target(head, [pb.LedgerHead(seq=1, chain_hash=bytes(32)).SerializeToString()])


def _certificates(places: Places) -> Iterator[tuple[str, Target]]:
    chain, request = examples.certificates(places.folder / "pki")

    def certificate(body: bytes) -> None:
        found = certificates_from_pem(body, "foreign")
        identity_of(found[0])
        check_chain(found[:-1], found[-1])

    yield "certificate", Target(certificate, [chain])
    yield "request", Target(request_from_pem, [request])
    yield "fingerprint", Target(_text(fingerprint_from_text), [b"12:" * 31 + b"34"])


# -- files -----------------------------------------------------------------------------------------


def _files(places: Places) -> Iterator[tuple[str, Target]]:
    home = places.organizations.folder / "people" / NAMES[0]
    schema = (home / "schema.toml").read_bytes()
    table = (home / "data" / COARSE_NAME).read_bytes()
    schemas = _text(lambda text: parse_schema(text, origin="schema.toml"))
    yield "schema", Target(schemas, [schema, *examples.SCHEMAS])
    policy = places.as_file("policy.toml", load_policy)
    yield "policy", Target(policy, examples.POLICIES)
    configs = _text(lambda text: parse_toml(text, PartyConfig, origin="party.toml"))
    yield "configuration", Target(configs, examples.CONFIGS)

    def opened(path: Path) -> None:
        with path.open("rb") as file:
            read_header(file, path)

    yield "table", Target(places.as_file("table", opened), [table])
    model = examples.model().to_json().encode()
    yield "model", Target(_text(LinearModel.from_json), [model])


# -- encryption, alignment, prediction -------------------------------------------------------------


def _protocols(places: Places) -> Iterator[tuple[str, Target]]:
    def ciphertext(body: bytes) -> None:
        unpack(body[1:], body[0] if body else 0)

    def announced(body: bytes) -> None:
        task = read(prediction_pb2.PredictionTask, body, "a task")
        announcements_from(task.keys)

    yield "ciphertext", Target(ciphertext, examples.ciphertexts(), (ValueError,))
    yield "masked words", Target(words_from_bytes, [bytes(64)], (ValueError,))
    yield "points", Target(points_from_bytes, [bytes(range(32)) * 2])
    yield "segments", Target(segments_from_bytes, examples.segments())
    yield "alignment state", Target(state_from_bytes, examples.alignment_states())
    outcome = places.as_file("outcome.alignment", read_outcome)
    yield "alignment outcome", Target(outcome, examples.outcomes())
    yield "prediction task", Target(announced, examples.prediction_tasks(), (ValueError,))
    yield (
        "prediction record",
        Target(Answered.from_bytes, examples.prediction_records(N_ROWS), (ValueError,)),
    )


@cache
def targets() -> dict[str, Target]:
    """Return all targets by name."""
    places = Places()
    groups = (
        _frames,
        _specifications,
        _submissions,
        _proposals,
        _tasks,
        _ledgers,
        _certificates,
        _files,
        _protocols,
    )
    return {name: made for group in groups for name, made in group(places)}
