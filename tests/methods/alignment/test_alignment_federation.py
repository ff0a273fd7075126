"""Alignments over gRPC: rows, prices, bytes, refusals, and what is left behind."""

import hashlib
from pathlib import Path

import pytest
from support.aligning import aligning, alignment_job, check_rows, homes, in_a_loop, people_of

from colonnade.client.align_builder import AlignOptions, extended
from colonnade.ledger.export import export_lines, verify_export
from colonnade.ledger.job_entries import Proposed
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.party.alignment.store import read_outcome
from colonnade.party.officer.case import sentences
from colonnade.party.officer.reading import cases
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.server.engine.progress import find_job, run_of
from colonnade.server.results import report_of
from colonnade.wire.jobspec import job_to_bytes

NAMES = ("hospital", "laboratory", "insurer")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["union", "left", "inner"])
@in_a_loop
async def test_parties_end_with_one_order_and_have_paid_once(tmp_path: Path, mode: str) -> None:
    people = people_of(NAMES)
    sides = homes(tmp_path, people)
    job = alignment_job(sides, mode=mode)
    assert isinstance(job.method, AlignmentJobSpec)
    async with aligning(sides) as hub:
        name = await hub.submit(job)
        assert await hub.ended(name) == "finished"
        engine, store = hub.serving.engine, hub.store

        def look() -> dict[str, object]:
            return report_of(engine, store, run_of(engine, store, find_job(engine, store, name)))

        report = await hub.serving.worker.read(look)
        rounds = range(200)
        left = await hub.serving.worker.read(
            lambda: [store.answers(name, at) or store.tasks(name, at) for at in rounds]
        )
        iterates = await hub.iterates(name)
        await hub.until(lambda: not any(side.ledger.state.left for side in sides.values()))
    check_rows({each: side.rows() for each, side in sides.items()}, people, mode)
    assert not any(left)  # no tag, point or row stays at the coordinator
    assert len(iterates) == 1
    assert len(iterates[0].body) < 5000
    price = job.method.alignment.noise.cost
    for side in sides.values():
        accounts = {a.name: a for a in verify_export(export_lines(side.ledger)).accounts}
        assert accounts[MEMBERSHIP].spent == price
        assert accounts[MEMBERSHIP].reserved == accounts[""].spent == 0
        assert accounts[MEMBERSHIP].delta == job.method.alignment.noise.delta
        assert not list(side.alignments.path.glob("*.state"))  # secrets are erased
        assert not list(side.alignments.path.glob(".*"))
        state = side.ledger.state
        kinds = {key.kind for key in state.stored if key not in state.purged}
        assert "tags" not in kinds
        assert "points" not in kinds
    check_report(report, people)


def test_an_officer_reads_an_alignment_under_the_cap_of_alignments(tmp_path: Path) -> None:
    sides = homes(tmp_path, people_of(NAMES[:2]))
    job = alignment_job(sides, epsilon=1.0)
    spec, side = job_to_bytes(job), sides["hospital"]
    facts = ("", "", "", job.name, job.kind, job.max_units("hospital"), "ask", 1, 0)
    entry = Proposed(hashlib.sha256(spec).hexdigest(), *facts, len(spec))
    side.ledger.decisions.propose(entry, spec)
    (case,) = cases(read_snapshot(side.files))
    assert [cap.what for cap in case.caps] == ["alignments"]
    said = " ".join(sentences(case))
    assert "your list of people together with 'laboratory': alignment, " in said
    assert "loss" not in said
    assert "It costs at most epsilon 1 (rho 0.5), 25.0 % of the cap of alignments" in said
    assert "Coordinator alone: " in said


def check_report(report: dict[str, object], people: dict[str, list[str]]) -> None:
    uplink = report["uplink"]
    assert isinstance(uplink, dict)
    for row in uplink["rows"]:
        assert row["payload_bytes"] == row["predicted_bytes"]
    assert uplink["payload_bytes"] > 32 * 3 * sum(map(len, people.values()))
    assert report["model"] is None
    found = report["alignment"]
    assert isinstance(found, dict)
    both = next(e for e in found["overlap"] if e["parties"] == ["hospital", "laboratory"])
    truth = len(set(people["hospital"]) & set(people["laboratory"]))
    # Two counts with dummies of scale 1 cut off at 9 and reported noise of scale 6: the sum of two
    # discrete Laplace numbers of scale 6 exceeds 150 with probability below 2 * 13 * exp(-25).
    assert abs(both["people"] - truth) < 150 + 2 * 9
    assert "exactly" in found["promise"]


@in_a_loop
async def test_a_party_whose_policy_says_nothing_of_alignments_refuses(tmp_path: Path) -> None:
    sides = homes(tmp_path, people_of(NAMES[:2]))
    policy = tmp_path / "laboratory" / "policy.toml"
    policy.write_text(policy.read_text().replace('peers = ["*"]', 'peers = ["insurer"]'))
    async with aligning(sides) as hub:
        name = await hub.submit(alignment_job(sides))
        assert await hub.ended(name) == "failed"
        (row,) = await hub.serving.worker.do(lambda: hub.store.jobs())
        assert "aligned with those of hospital" in row.reason
        # What the others had set aside is free again.
        await hub.until(lambda: not any(side.ledger.state.left for side in sides.values()))
    for side in sides.values():
        assert side.ledger.budget(MEMBERSHIP).spent == 0


@in_a_loop
async def test_a_list_with_repeated_people_is_refused_by_its_code_alone(tmp_path: Path) -> None:
    people = people_of(NAMES[:2])
    people["laboratory"].append(people["laboratory"][0])
    sides = homes(tmp_path, people)
    async with aligning(sides) as hub:
        name = await hub.submit(alignment_job(sides))
        assert await hub.ended(name) == "failed"
        (row,) = await hub.serving.worker.do(lambda: hub.store.jobs())
    assert "repeated_ids" in row.reason
    assert "NHS" not in row.reason
    assert "1 row" not in row.reason
    assert sides["laboratory"].ledger.budget(MEMBERSHIP).spent == 0


@in_a_loop
async def test_an_extension_over_the_wire_moves_nobody_and_is_paid_for_again(
    tmp_path: Path,
) -> None:
    people = people_of(NAMES[:2])
    sides = homes(tmp_path, people)
    for side in sides.values():
        policy = side.folder / "policy.toml"
        policy.write_text(policy.read_text() + "min_new = 1\n")
    first = alignment_job(sides, epsilon=1.0)
    assert isinstance(first.method, AlignmentJobSpec)
    async with aligning(sides) as hub:
        assert await hub.ended(await hub.submit(first)) == "finished"
        before = {name: side.rows() for name, side in sides.items()}
        kept = sides["hospital"].outcome().n_rows
        for name, side in sides.items():
            side.people = [*side.people, *(f"NHS new {at}" for at in range(5)), f"NHS of {name}"]
            with (side.folder / "people.csv").open("a", newline="\r\n") as file:
                file.writelines(f"{person},1\n" for person in side.people[len(before[name]) :])
        spec, told = first.method.alignment, {"kept": kept}
        wrong = extended(AlignOptions(), spec, {"kept": kept - 1}, min_new=1)
        refused = await hub.submit(
            alignment_job(sides, extends=wrong.extends, rule=spec.ids, epsilon=1.0)
        )
        assert await hub.ended(refused) == "failed"
        right = extended(AlignOptions(), spec, told, min_new=1)
        job = alignment_job(sides, extends=right.extends, rule=spec.ids, epsilon=1.0)
        assert await hub.ended(await hub.submit(job)) == "finished"
    for name, side in sides.items():
        outcomes = [read_outcome(path) for path in side.alignments.path.glob("*.alignment")]
        (later,) = (each for each in outcomes if each.spec.extends is not None)
        rows = {person: later.row_of([person]) for person in side.people}
        assert before[name].items() <= rows.items()
        assert all((row or 0) >= kept for person, row in rows.items() if "new" in person)
        # Refused runs cost nothing, finished ones the same each.
        assert side.ledger.budget(MEMBERSHIP).spent == 2 * spec.noise.cost
    assert later.n_rows > kept
