"""Whole jobs over localhost gRPC with TLS: the same bits as one process, and a true report."""

import asyncio
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.federation import (
    CAP,
    NAMES,
    WAIT_S,
    coordinator,
    credentials_of,
    everyone,
    founded,
    make_job,
    make_moments_job,
    party,
    reference,
)

from colonnade.client import Client
from colonnade.core.errors import (
    BadInput,
    NotEnrolled,
    PolicyRefused,
    StaleEpoch,
    UnknownJob,
)
from colonnade.methods.frank_wolfe.spec import PartySampling
from colonnade.methods.job import job_id
from colonnade.methods.problem import Labels, Loss
from colonnade.party.vault.meter import CONTROL
from colonnade.pki.identity import Identity
from colonnade.server.methods.registry import algorithm_of
from colonnade.simulate.federation import FEDERATION, free_port
from colonnade.v1 import job_pb2
from colonnade.wire.jobspec import job_to_bytes

JOBS: dict[str, tuple[int, dict[str, Any]]] = {
    "one party": (1, {}),
    "two parties": (2, {}),
    "four parties": (4, {}),
    "without intercept": (2, {"mean_units": 0}),
    "one after the other": (4, {"sampling": PartySampling.SERIAL, "rounds": 9}),
    "two of four": (4, {"sampling": PartySampling.NICE, "parties_per_round": 2, "rounds": 7}),
    # Some rounds ask nobody.
    "each by its own coin": (2, {"sampling": PartySampling.GIVEN, "probability": 0.3, "rounds": 9}),
    "labels sketched": (4, {"labels": Labels.SKETCHED}),
    "labels sketched, no intercept": (2, {"labels": Labels.SKETCHED, "mean_units": 0}),
    "logistic": (2, {"loss": Loss.LOGISTIC}),
    "two features a round": (2, {"features_per_round": 2}),
    "hadamard": (2, {"dense_sketch": True}),
}
MOMENTS: dict[str, tuple[int, dict[str, Any]]] = {
    "moments, one party": (1, {"share_units": 0, "cross_units": 0}),
    "moments, two parties": (2, {}),
    "moments, four parties": (4, {}),
    "moments, no sharing": (2, {"share_units": 0, "cross_units": 0}),
    "moments, labels sketched": (3, {"labels": Labels.SKETCHED}),
    "moments, screened": (2, {"keep": 2}),
    "moments, all at once": (3, {"labels": Labels.SKETCHED, "keep": 1, "loss": Loss.LOGISTIC}),
}


def check_report(report: dict[str, Any], logs: dict[str, Any]) -> None:
    """Check the numbers of a report against each other and against the parties' own logs."""
    for each in report["privacy"]["parties"]:
        assert 0 < each["spent"]["units"] <= each["max"]["units"] <= each["cap"]["units"] == CAP
        by_kind = sum(kind["spent"]["units"] for kind in each["by_kind"])
        by_round = sum(row["spent"].get(each["party"], 0) for row in report["privacy"]["by_round"])
        assert by_kind == by_round == each["spent"]["units"]
    uplink = report["uplink"]
    for row in uplink["rows"]:
        assert row["payload_bytes"] == row["predicted_bytes"], row
        assert row["retry_bytes"] == 0
    for name, log in logs.items():
        ours, theirs = Counter[tuple[int, str, str]](), Counter[tuple[int, str, str]]()
        for line in log:
            if line.job:
                ours[line.round, line.kind, "payload"] += line.payload_bytes
                ours[line.round, line.kind, "wire"] += line.wire_bytes
        for row in uplink["rows"]:
            if row["party"] == name:
                theirs[row["round"], row["kind"], "payload"] += row["payload_bytes"]
                theirs[row["round"], row["kind"], "wire"] += row["wire_bytes"]
        assert ours == theirs
        assert {kind for _, kind, _ in ours} > {CONTROL}
    # A job's lot may pass over a party in every round, never over all of them.
    kinds = {row["kind"] for row in uplink["rows"]}
    assert kinds & {"select", "gram"}


@pytest.mark.slow
@pytest.mark.parametrize("case", [*JOBS, *MOMENTS])
def test_a_federation_equals_one_process_with_the_same_noise_bit_for_bit(
    case: str, tmp_path: Path
) -> None:
    made = founded()
    count, changes = (JOBS | MOMENTS)[case]
    names = NAMES[:count]
    job = (make_moments_job if case in MOMENTS else make_job)(made, names, **changes)
    state, price = reference(made, job)

    async def run() -> None:
        async with everyone(made, names, tmp_path) as (hub, members):
            name = await hub.submit(job)
            assert await hub.ended(name) == "finished"
            steps = algorithm_of(job, name)
            last = steps.decode((await hub.iterates(name))[-1].body)
            for each in names:
                np.testing.assert_array_equal(last.coef[each], state.coef[each])
            assert steps.encode(last) == steps.encode(state)
            report = await asyncio.to_thread(_report, hub.address, name)
            assert report["rounds"] == {"planned": job.rounds, "done": job.rounds}
            check_report(report, {each: members[each].log() for each in names})
            spent = {each["party"]: each["spent"]["units"] for each in report["privacy"]["parties"]}
            assert spent == {each: members[each].spent() for each in names} == price
            await hub.until(lambda: not any(members[each].ledger.state.left for each in names))

    asyncio.run(run())


def _report(address: str, name: str) -> dict[str, Any]:
    with Client(address, credentials_of(founded(), "analyst")) as client:
        return client.report(name).document


def test_an_operator_submits_lists_watches_shows_and_cancels(tmp_path: Path) -> None:
    made, names = founded(), NAMES[:2]
    job = replace(make_job(made, names), requested_by=f"spiffe://{FEDERATION}/operator/analyst")
    spec = job_to_bytes(job)

    def operate(address: str) -> None:
        with Client(address, credentials_of(made, "analyst")) as client:
            offers = client.parties()
            assert [offer.party for offer in offers] == sorted(NAMES[:3])
            assert {offer.party for offer in offers if offer.attached} == set(names)
            assert all(offer.left_units == CAP for offer in offers)
            assert offers[0].label == ("y", job.label_bounds)
            assert dict(offers[0].features) == dict(
                zip(job.members[0].features, job.members[0].bounds, strict=True)
            )
            name = client.submit(spec)
            assert name == job_id(spec) == client.submit(spec)
            views = list(client.watch(name))
            assert views[-1].state == "finished"
            assert [view.rounds_done for view in views] == sorted(v.rounds_done for v in views)
            shown = client.show(name[:8])
            view, kept = shown.view, shown.spec
            assert kept == spec
            assert view == client.jobs()[0] == views[-1]
            assert view.submitted_by == f"spiffe://{FEDERATION}/operator/analyst"
            other = client.submit(make_job(made, [*names, NAMES[2]], salt=1))
            assert client.cancel(other).state == "cancelled"
            assert [view.state for view in client.jobs()] == ["cancelled", "finished"]
            assert len(client.jobs(limit=1)) == 1
            for wrong in ("", "zz", "\n"):
                with pytest.raises(UnknownJob):
                    client.show(wrong)
            unknown = job_pb2.JobSpec.FromString(spec)
            unknown.members[0].MergeFromString(b"\xa0\x3f\x01")
            with pytest.raises(BadInput, match="know"):
                client.submit(unknown.SerializeToString())
            for nobody in ("", f"spiffe://{FEDERATION}/operator/somebody"):
                with pytest.raises(PolicyRefused, match="asks"):
                    client.submit(job_to_bytes(replace(job, requested_by=nobody)))
            with pytest.raises(NotEnrolled):
                client.submit(make_job(made, NAMES))

    async def run() -> None:
        async with (
            everyone(made, names, tmp_path) as (hub, _),
            party(made, NAMES[2], hub.address, tmp_path) as third,
        ):
            await hub.attached(NAMES[2])
            third.stop.set()  # it has enrolled, and is away now
            await third.task
            await asyncio.to_thread(operate, hub.address)

    asyncio.run(run())


def test_a_party_sees_its_own_jobs_and_submits_and_cancels_none(tmp_path: Path) -> None:
    made, names = founded(), NAMES[:3]
    mine, others = make_job(made, names[:2]), make_job(made, names[1:])

    def look(address: str, name: str, hidden: str) -> None:
        with Client(address, credentials_of(made, names[0])) as client:
            assert [view.job_id for view in client.jobs()] == [name]
            assert client.show(name).spec == job_to_bytes(mine)
            assert client.report(name)["job_id"] == name
            for call in (client.show, client.report, lambda job: list(client.watch(job))):
                with pytest.raises(PolicyRefused, match="in this job"):
                    call(hidden)
            for forbidden in (lambda: client.submit(mine), lambda: client.cancel(name)):
                with pytest.raises(PolicyRefused, match="operators"):
                    forbidden()

    async def run() -> None:
        async with everyone(made, names, tmp_path) as (hub, _):
            name, hidden = await hub.submit(mine), await hub.submit(others)
            for job in (name, hidden):
                assert await hub.ended(job) == "finished"
            await asyncio.to_thread(look, hub.address, name, hidden)

    asyncio.run(run())


def test_two_jobs_at_once_keep_apart(tmp_path: Path) -> None:
    made, names = founded(), NAMES[:2]
    jobs = [make_job(made, names, salt=salt) for salt in range(2)]

    async def run() -> None:
        async with everyone(made, names, tmp_path) as (hub, members):
            submitted = [await hub.submit(job) for job in jobs]
            for name in submitted:
                assert await hub.ended(name) == "finished"
            for name, job in zip(submitted, jobs, strict=True):
                report = await asyncio.to_thread(_report, hub.address, name)
                own = {
                    each: [line for line in members[each].log() if line.job == name]
                    for each in names
                }
                check_report(report, own)
                assert report["rounds"]["done"] == job.rounds

    asyncio.run(run())


def test_a_job_that_the_policy_refuses_fails_with_the_reason_and_costs_nothing(
    tmp_path: Path,
) -> None:
    made, names = founded(), NAMES[:2]
    strict = tmp_path / "policy.toml"
    text = (made.folder / names[1] / "policy.toml").read_text()
    strict.write_text(text.replace("max_rounds = 100000", "max_rounds = 4"))

    async def run() -> None:
        async with (
            coordinator(made) as hub,
            party(made, names[0], hub.address, tmp_path) as first,
            party(made, names[1], hub.address, tmp_path, policy=strict) as second,
        ):
            await hub.attached(*names)
            name = await hub.submit(make_job(made, names))
            assert await hub.ended(name) == "failed"
            report = await asyncio.to_thread(_report, hub.address, name)
            assert report["reason"] == (
                f"party {names[1]} refused the job (policy_refused): "
                "5 rounds are more than the 4 allowed"
            )
            assert report["model"] is None
            await hub.until(lambda: not first.ledger.state.left)
            assert first.spent() == second.spent() == 0

    asyncio.run(run())


def test_a_second_process_of_one_party_fences_the_first(tmp_path: Path) -> None:
    made, name = founded(), NAMES[0]

    async def run() -> None:
        (tmp_path / "second").mkdir()
        async with (
            everyone(made, [name], tmp_path) as (hub, members),
            party(
                made, name, hub.address, tmp_path / "second", ledger=members[name].ledger
            ) as second,
        ):
            with pytest.raises(StaleEpoch):
                await asyncio.wait_for(members[name].task, WAIT_S)
            assert name in hub.serving.engine.attached
            assert not second.task.done()

    asyncio.run(run())


def test_insecure_works_on_loopback_with_names_that_are_believed(tmp_path: Path) -> None:
    made, names = founded(), NAMES[:2]
    job = make_job(made, names)
    identity = f"spiffe://{FEDERATION}/party/"
    hub_uri = f"spiffe://{FEDERATION}/coordinator/hub"

    def submit(address: str) -> str:
        who = Identity(FEDERATION, "operator", "anyone")
        with Client(address, None, identity=who) as client:
            return client.submit(job)

    async def run() -> None:
        async with coordinator(made, secure=False) as hub:
            plain: dict[str, Any] = {"insecure": True, "coordinator_identity": hub_uri}
            first = party(
                made, names[0], hub.address, tmp_path, identity=identity + names[0], **plain
            )
            second = party(
                made, names[1], hub.address, tmp_path, identity=identity + names[1], **plain
            )
            async with first, second:
                await hub.attached(*names)
                name = await asyncio.to_thread(submit, hub.address)
                assert await hub.ended(name) == "finished"

    asyncio.run(run())
    with pytest.raises(BadInput, match="TLS"):
        Client("hub.example.org:7443", None)


@pytest.mark.slow
def test_insecure_processes_say_so_and_run_a_job(tmp_path: Path) -> None:
    made, name = founded(), NAMES[2]
    address = f"127.0.0.1:{free_port()}"
    hub_file, party_file = tmp_path / "hub.toml", made.folder / name / "insecure.toml"
    hub_file.write_text(
        f'listen = "{address}"\ninsecure = true\nfederation = "{FEDERATION}"\n'
        'database = "sqlite:///hub.db"\n'
    )
    party_file.write_text(
        f'coordinator = "{address}"\ninsecure = true\ndata = "data"\nledger = "ledger"\n'
        f'policy = "policy.toml"\nidentity = "spiffe://{FEDERATION}/party/{name}"\n'
        f'coordinator_identity = "spiffe://{FEDERATION}/coordinator/hub"\n'
    )
    command = [sys.executable, "-m", "colonnade.cli.main"]
    commands = [
        [*command, "coordinator", "--config", str(hub_file)],
        [*command, "party", "run", "--config", str(party_file)],
    ]
    with ExitStack() as stack:
        processes = []
        for each in commands:  # the party dials when the coordinator listens
            pipes = subprocess.Popen(each, stdout=subprocess.PIPE, text=True)
            processes.append(stack.enter_context(pipes))
            stack.callback(pipes.kill)
            assert pipes.stdout is not None
            assert pipes.stdout.readline().startswith("INSECURE: no TLS, names are believed")
            assert pipes.stdout.readline().startswith(("listening on", "attached"))
        who = Identity(FEDERATION, "operator", "anyone")
        with Client(address, None, identity=who) as client:
            job = client.submit(make_job(made, [name], rounds=2))
            assert [view.state for view in client.watch(job)][-1] == "finished"
        for running in processes:
            running.terminate()
            assert running.wait(WAIT_S) == 0
