"""A fourth method, registered from outside the package, runs like those inside.

`support.marginal` has its three units. The claims: its jobs are planned, priced, released through
the ledger, metered as predicted, continued by a coordinator that died, and reported.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.desk import Desk
from support.dying import Dying, lived
from support.federation import (
    CAP,
    NAMES,
    credentials_of,
    everyone,
    party,
    seeds,
    sites,
)
from support.marginal.coordinator import MarginalRegression, marginal_findings
from support.marginal.method import MARGINAL, MEANS, PRODUCTS, MarginalSpec
from support.marginal.party import MarginalAnswers

from colonnade.client import Client, JobOptions
from colonnade.client.builder import build_job
from colonnade.client.description import describe
from colonnade.core.errors import BadMessage
from colonnade.data.table import open_pair
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.gate import Gate
from colonnade.methods import registry as methods
from colonnade.methods.job import Job, job_id
from colonnade.party.data.columns import columns_for
from colonnade.party.methods import registry as parties
from colonnade.party.methods.base import JobContext
from colonnade.party.vault import party as vault_party
from colonnade.report import write_report
from colonnade.server.methods import registry as coordinators
from colonnade.server.methods.registry import CoordinatorSide, algorithm_of
from colonnade.server.store.base import State
from colonnade.simulate.federation import Federation, create_federation, free_port
from colonnade.wire.jobspec import job_from_bytes, job_to_bytes, question_of

PAIR = NAMES[:2]


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    methods.register(MARGINAL)
    coordinators.register(
        MARGINAL.kind, CoordinatorSide(MarginalRegression, findings=marginal_findings)
    )
    parties.register(MARGINAL.kind, MarginalAnswers)
    yield
    for known in (methods._METHODS, coordinators._SIDES, parties._SIDES):
        del known[MARGINAL.kind]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    """Return a federation whose parties' policies allow the new kind."""
    tables = sites(n_rows=2000, names=PAIR)
    return create_federation(tmp_path_factory.mktemp("made"), tables, cap_units=CAP, port=1)


@pytest.fixture(scope="module")
def job(made: Federation, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Return a job as an operator gets it: planned by the method from what parties offer."""

    def plan(address: str) -> Job:
        with Client(address, credentials_of(made, "analyst")) as client:
            options = JobOptions(method=MARGINAL.kind, epsilon=2.0)
            return build_job(client.parties(), options, target="y")

    async def run() -> Job:
        async with everyone(made, PAIR, tmp_path_factory.mktemp("planned")) as (hub, _):
            return await asyncio.to_thread(plan, hub.address)

    return asyncio.run(run())


def reference(made: Federation, job: Job) -> bytes:
    """Return the last state of the job in one process, with the noise of `seeds`."""
    name = job_id(job_to_bytes(job))
    algorithm, noises, sides = algorithm_of(job, name), seeds(PAIR), {}
    for member in job.members:
        tables, label = (
            open_pair(made.folder / member.party / "data"),
            (job.label, job.label_bounds),
        )
        ledger = memory_ledger(LedgerConfig(member.party, {"": CAP}, simulation=True))
        context = JobContext(
            name,
            member.party,
            member.dataset,
            columns_for(*tables, member.features, member.bounds, label),
            Gate(ledger, noises[member.party]),
            ledger,
        )
        sides[member.party] = parties.answers_of(job, context)
    state = algorithm.start()
    while not algorithm.finished(state):
        round_, answers = algorithm.round_of(state), {}
        for each, task in algorithm.tasks(state).items():
            answers[each] = {r.key.kind: r.body for r in sides[each].answer(round_, task)}
            algorithm.check(state, each, answers[each])
        state = algorithm.absorb(state, answers)
    return algorithm.encode(state)


def report_of(made: Federation, address: str, name: str) -> dict[str, Any]:
    with Client(address, credentials_of(made, "analyst")) as client:
        return client.report(name).document


def test_it_is_planned_priced_and_described_by_its_own_value(job: Job) -> None:
    spec = job.method
    assert isinstance(spec, MarginalSpec)
    assert job_from_bytes(job_to_bytes(job)) == job
    found = describe(job, [])
    assert (found["method"], found["rows"], found["rounds"]) == (MARGINAL.kind, 2000, 1)
    assert 1.9 < found["joint_max_epsilon"] <= 2.0
    sizes = {kind: spec.body_bytes(PAIR[0], kind) for kind in (MEANS, PRODUCTS)}
    assert found["parties"][PAIR[0]]["max_payload_bytes"] == sizes


def test_it_runs_over_grpc_with_ledger_metering_and_report(
    made: Federation, job: Job, tmp_path: Path
) -> None:
    async def run() -> None:
        async with everyone(made, PAIR, tmp_path) as (hub, members):
            name = await hub.submit(job)
            assert await hub.ended(name) == "finished"
            assert (await hub.iterates(name))[-1].body == reference(made, job)
            report = await asyncio.to_thread(report_of, made, hub.address, name)
            check_report(report, job)
            for each in PAIR:
                state = members[each].ledger.state
                assert [key.kind for key in state.stored] == [MEANS, PRODUCTS]
                assert members[each].spent() == job.max_units(each)
                noted = sum(line.payload_bytes for line in members[each].log())
                counted = [row for row in report["uplink"]["rows"] if row["party"] == each]
                assert noted == sum(row["payload_bytes"] for row in counted) > 0
            await hub.until(lambda: not any(members[each].ledger.state.left for each in PAIR))
            write_report(report, tmp_path / "report")
            assert MARGINAL.kind in (tmp_path / "report" / "report.html").read_text()

    asyncio.run(run())


def check_report(report: dict[str, Any], job: Job) -> None:
    """Check what the report says of prices, bytes and the model."""
    assert (report["method"], report["rounds"]) == (MARGINAL.kind, {"planned": 1, "done": 1})
    for row in report["uplink"]["rows"]:
        assert row["payload_bytes"] == row["predicted_bytes"], row
    for each in report["privacy"]["parties"]:
        assert each["spent"]["units"] == each["max"]["units"] == job.max_units(each["party"])
        assert [kind["kind"] for kind in each["by_kind"]] == [MEANS, PRODUCTS]
    # The label is 1 where the first features of both parties have a positive sum, so that each has
    # a correlation of 0.56 with it; the noise of a covariance is a few thousandths, and that of
    # the sample 1 / sqrt(2000).
    for covariances in report["marginal"]["covariances"].values():
        assert np.argmax(np.abs(covariances)) == 0
        assert covariances[0] > 0.05
    assert [len(coef) for coef in report["path"][-1]["coef"].values()] == [3, 3]
    assert report["path"][-1]["coef"][PAIR[0]][0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_coordinator_that_dies_at_every_commit_ends_with_the_same_bits(
    made: Federation, job: Job, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_party, "_FIRST_WAIT_S", 0.03)
    monkeypatch.setattr(vault_party, "_LONGEST_WAIT_S", 0.2)
    url, port = f"sqlite:///{tmp_path}/hub.db", free_port()

    async def run() -> int:
        async with AsyncExitStack() as stack:
            members = [
                await stack.enter_async_context(party(made, each, f"127.0.0.1:{port}", tmp_path))
                for each in PAIR
            ]
            # Each life is one commit longer: some die before the job, some in each of its rounds.
            for commits in range(1, 100):
                store = Dying(url, commits, after=after)
                if (last := await lived(made, job, store, port=port)) is not None:
                    assert last == reference(made, job)
                    assert {each.spent() for each in members} == {job.max_units(PAIR[0])}
                    return commits
        raise AssertionError("the job never ended")

    assert asyncio.run(run()) > 2


def test_a_kind_that_one_side_does_not_know_is_refused_with_a_code(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, salted = job_to_bytes(job), job_to_bytes(replace(job, salt=bytes(16)))
    other = job_to_bytes(replace(job, delta=job.delta / 2))
    desk = Desk(*PAIR)
    monkeypatch.delitem(coordinators._SIDES, MARGINAL.kind)
    desk.refused(BadMessage, "does not run jobs of kind", desk.engine.submit, spec, "operator")
    monkeypatch.delitem(methods._METHODS, MARGINAL.kind)
    with pytest.raises(BadMessage) as refused:
        job_from_bytes(spec)
    assert refused.value.code == "bad_message"
    # Whoever has run such jobs can still tell whether another job asks the same.
    assert question_of(spec) == question_of(salted) != question_of(other)


def test_a_party_without_the_method_declines_and_the_job_ends(
    made: Federation, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with everyone(made, PAIR, tmp_path) as (hub, members):
            name = await hub.submit(job)
            assert await hub.ended(name) == State.FAILED.value
            decisions = await hub.serving.worker.do(lambda: hub.store.decisions(name))
            assert {row.code for row in decisions} == {"policy_refused"}
            for each in members.values():  # noted, and nothing is set aside
                kinds = [json.loads(line)["type"] for line in each.ledger.lines()]
                assert kinds[-2:] == ["proposed", "declined"]
                assert "admitted" not in kinds

    monkeypatch.delitem(parties._SIDES, MARGINAL.kind)
    asyncio.run(run())


def test_a_kind_has_one_meaning() -> None:
    methods.register(MARGINAL)  # again is no harm
    with pytest.raises(ValueError, match="another method"):
        methods.register(replace(MARGINAL, section="other"))
    with pytest.raises(ValueError, match="coordinator's side"):
        coordinators.register(MARGINAL.kind, CoordinatorSide(MarginalRegression))
    with pytest.raises(ValueError, match="party's side"):
        parties.register(MARGINAL.kind, parties._SIDES["moments"])
