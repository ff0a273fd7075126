"""Nobody is left out of a job without a word, and no question is paid for twice by mistake."""

import dataclasses
from collections.abc import Iterator

import pytest
from support.desk import Desk, job_of

from colonnade.client import JobOptions, JobView, PartyOffer, PartyView
from colonnade.client.builder import build_job
from colonnade.client.participants import lack_in_rows, participants
from colonnade.client.predict_builder import PredictOptions, _check_present
from colonnade.core.errors import BadInput, DuplicateJob, PartyAbsent
from colonnade.core.fixedpoint import Bounds
from colonnade.methods.base import Unit
from colonnade.methods.frank_wolfe.spec import PartySampling
from colonnade.methods.job import Job, job_id
from colonnade.methods.prediction.refusals import PartyMissing
from colonnade.server.engine.progress import party_status, run_of, status_of
from colonnade.server.results import report_of
from colonnade.server.store.base import State
from colonnade.wire.jobspec import job_to_bytes, question_of


def offer(party: str, **changes: object) -> PartyOffer:
    made = PartyOffer(
        party=party,
        attached=True,
        dataset="ab" * 16,
        population=20_000,
        features={f"{party} {name}": Bounds(-3.0, 3.0) for name in "xyz"},
        fills={f"{party} {name}": 0.0 for name in "xyz"},
        label=("cost", Bounds(0.0, 9.0)),
        cap_units=2**50,
        used_units=0,
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk("hospital", "lab")
    yield made
    made.store.close()


# -- who takes part ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"attached": False}, r"lab.*away"),
        ({"attached": False, "dataset": "", "population": 0, "features": {}}, r"lab.*away"),
        ({"features": {}}, r"lab.*feature"),
        ({"unit": Unit.CLIENT}, r"lab.*clients"),
    ],
)
def test_who_is_absent_is_named_and_left_out_only_on_purpose(
    changes: dict[str, object], reason: str
) -> None:
    offers = [offer("hospital"), offer("lab", **changes), offer("insurer")]
    with pytest.raises(PartyAbsent, match=reason) as refused:
        build_job(offers, JobOptions(), target="cost")
    assert len(str(refused.value).splitlines()) == 1
    for chosen in (
        build_job(offers, JobOptions(), target="cost", without=["lab"]),
        build_job(offers, JobOptions(), target="cost", parties=["hospital", "insurer"]),
    ):
        assert [member.party for member in chosen.members] == ["hospital", "insurer"]


def test_a_party_that_is_named_may_come_later_if_its_table_is_known() -> None:
    away = offer("lab", attached=False)
    job = build_job(
        [offer("hospital"), away], JobOptions(), target="cost", parties=["hospital", "lab"]
    )
    assert [member.party for member in job.members] == ["hospital", "lab"]
    never = offer("lab", attached=False, dataset="", population=0, features={}, label=None)
    with pytest.raises(BadInput, match="never"):
        build_job(
            [offer("hospital"), never], JobOptions(), target="cost", parties=["hospital", "lab"]
        )


def test_many_absent_parties_are_counted() -> None:
    offers = [offer("hospital"), *(offer(f"p{i}", attached=False) for i in range(40))]
    with pytest.raises(PartyAbsent, match=r"p4.*35") as refused:
        participants(offers)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("parties", "without", "text"),
    [
        (["lab", "lab"], [], "once"),
        (None, ["bank"], "not enrolled"),
        (None, ["hospital", "lab"], "left out"),
    ],
)
def test_names_that_make_no_sense_are_refused(
    parties: list[str] | None, without: list[str], text: str
) -> None:
    with pytest.raises(BadInput, match=text):
        participants([offer("hospital"), offer("lab")], parties=parties, without=without)


def test_a_divided_table_takes_part_in_a_job_over_clients() -> None:
    offers = [offer("hospital", population=7, unit=Unit.CLIENT), offer("lab", attached=False)]
    with pytest.raises(PartyAbsent, match="lab"):
        participants(offers, lack=lack_in_rows)
    (only,) = participants(offers, without=["lab"], lack=lack_in_rows)
    assert only.party == "hospital"


def test_an_enrolled_party_that_never_attached_is_listed_as_away(desk: Desk) -> None:
    desk.attach("hospital")
    status = party_status(desk.engine, desk.engine.parties["lab"])
    assert (status.party, status.attached, status.dataset) == ("lab", False, "")


def test_scores_lack_nobody_unasked_and_only_the_receiver_receives() -> None:
    options, away = PredictOptions("hospital", "triage"), offer("lab", attached=False)
    names = ("hospital", "lab")
    with pytest.raises(PartyMissing):  # the request may declare a middle instead
        _check_present(names, options, {"hospital": offer("hospital"), "lab": away})
    gone = {"hospital": offer("hospital", attached=False), "lab": offer("lab")}
    with pytest.raises(BadInput, match="receive"):
        _check_present(names, options, gone)


# -- asked before --------------------------------------------------------------------------------


def refused(desk: Desk, job: Job) -> str:
    before = desk.stored()
    with pytest.raises(DuplicateJob) as error:
        desk.submit(job, again=False)
    assert desk.stored() == before  # nothing is kept, nothing is proposed
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 300  # what a caller is shown
    return str(error.value)


def finish(desk: Desk, job: Job) -> str:
    sent = [each for name in ("hospital", "lab") for each in desk.attach(name)]
    desk.deliver(sent + desk.submit(job, again=False))
    name = job_id(job_to_bytes(job))
    assert desk.engine.ended[name] is State.FINISHED
    return name


def test_a_question_that_was_paid_for_is_asked_again_only_on_purpose(desk: Desk) -> None:
    name = finish(desk, job_of("hospital", "lab", salt=1))
    told = refused(desk, job_of("hospital", "lab", salt=2))
    status = status_of(desk.engine, desk.store, desk.store.jobs()[0])
    cost = sum(party.spent_units for party in status.parties) / 2**50
    for part in (name[:12], "finished", f"rho {cost:.6g}", "2001-09-09 01:46:40Z"):
        assert part in told
    desk.submit(job_of("hospital", "lab", salt=2), again=True)
    assert len(desk.store.jobs()) == 2


def test_the_same_bytes_are_still_the_same_job(desk: Desk) -> None:
    job = job_of("hospital", "lab", salt=1)
    finish(desk, job)
    assert desk.submit(job, again=False) == []


def test_a_job_under_way_may_still_cost_something(desk: Desk) -> None:
    desk.submit(job_of("hospital", "lab", salt=1), again=False)
    assert "proposed" in refused(desk, job_of("hospital", "lab", salt=2))


def test_a_question_that_cost_nothing_may_be_asked_again(desk: Desk) -> None:
    first = job_of("hospital", "lab", salt=1)
    desk.submit(first, again=False)
    desk.do(desk.engine.cancel, job_id(job_to_bytes(first)), "an operator")
    desk.submit(job_of("hospital", "lab", salt=2), again=False)
    assert len(desk.store.jobs()) == 2


def test_a_coordinator_that_was_started_again_remembers(desk: Desk) -> None:
    finish(desk, job_of("hospital", "lab", salt=1))
    desk.start()
    refused(desk, job_of("hospital", "lab", salt=2))


def test_what_is_no_part_of_a_question() -> None:
    first = job_of("hospital", "lab", salt=1)
    same = [
        dataclasses.replace(first, salt=bytes(16)),
        dataclasses.replace(first, name="another name"),
        dataclasses.replace(first, party_timeout_s=77),
        job_of("lab", "hospital"),
    ]
    others = [
        dataclasses.replace(first, delta=1e-5),
        dataclasses.replace(first, label="z"),
        job_of("hospital", "lab", rounds=4),
        job_of("hospital"),
    ]
    question = question_of(job_to_bytes(first))
    assert {question_of(job_to_bytes(each)) for each in same} == {question}
    assert question not in {question_of(job_to_bytes(each)) for each in others}


# -- who paid for nothing ------------------------------------------------------------------------


def test_a_party_that_paid_and_is_not_used_is_named(desk: Desk) -> None:
    # One round in turn: the second party releases its means and is never asked for a feature.
    name = finish(desk, job_of("hospital", "lab", rounds=1, sampling=PartySampling.SERIAL))
    row = desk.store.jobs()[0]
    report = report_of(desk.engine, desk.store, run_of(desk.engine, desk.store, row))
    used = {each["party"] for each in report["model"]["features"] if each["coef"]}
    assert len(used) == 1
    (unused,) = report["unused"]
    assert {unused["party"], *used} == {"hospital", "lab"}
    assert unused["spent"]["units"] > 0
    assert unused["party"] in unused["note"]
    assert f"rho {unused['spent']['rho']:.6g}" in unused["note"]
    status = status_of(desk.engine, desk.store, row)
    counts = {party.party: party.features_used for party in status.parties}
    assert counts == {unused["party"]: 0, used.pop(): 1}
    assert name == row.job_id


def test_only_a_finished_model_has_unused_parties(desk: Desk) -> None:
    desk.submit(job_of("hospital", "lab"))
    row = desk.store.jobs()[0]
    found = status_of(desk.engine, desk.store, row)
    assert not any(party.HasField("features_used") for party in found.parties)
    assert report_of(desk.engine, desk.store, run_of(desk.engine, desk.store, row))["unused"] == []


def view(**changes: object) -> JobView:
    parties = (
        PartyView("hospital", True, True, False, 7, 9, 100, 3),
        PartyView("lab", True, True, False, 2**49, 2**50, 100, 0),
        PartyView("bank", True, True, False, 0, 9, 100, 0),
    )
    made = JobView("ab", "cost", "finished", "", 3, 3, 0.0, 1.0, "me", parties)
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def test_a_view_notes_who_paid_for_nothing() -> None:
    (note,) = view().notes
    assert "no feature of lab" in note
    assert "rho 0.5" in note
    assert "more epsilon, fewer columns" in note


def test_a_view_of_a_job_over_clients_notes_who_refused() -> None:
    parties = (PartyView("lab", True, False, False, 0, 9, 0, None, "no rule allows admm"),)
    (note,) = view(parties=parties, over_clients=True).notes
    assert "lab refused the job (no rule allows admm)" in note
