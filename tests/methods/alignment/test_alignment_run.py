"""Whole alignments in one process, compared with plain set operations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.alignment import ids, members, prepared, signer
from support.entropy import ShakeNoise, shake

from colonnade.core.errors import DatasetChanged, JobClosed, PolicyRefused
from colonnade.methods.alignment import sizes
from colonnade.methods.alignment.codec import run_name
from colonnade.methods.alignment.refusals import RepeatedIds, UnusableIds
from colonnade.methods.alignment.schedule import FIRST_WAVE, RoundSchedule
from colonnade.methods.alignment.spec import NO_ROW, Extension, Mode
from colonnade.party.methods.alignment.lists import Earlier
from colonnade.party.methods.alignment.state import state_to_bytes
from colonnade.server.methods.alignment_state import changes, header_to_bytes
from colonnade.simulate.inprocess.alignment import AlignmentMember, AlignmentRun
from colonnade.v1 import alignment_pb2 as pb

TWO = [range(40), range(25, 90)]
THREE = [range(50), range(30, 80), [*range(10), *range(45, 60), 200]]


def lists_of(n_parties: int) -> list[list[int]]:
    generator = np.random.default_rng(n_parties)
    return [generator.choice(60, 20 + 4 * k, replace=False).tolist() for k in range(n_parties)]


def expected(lists: Sequence[Sequence[int]], mode: Mode) -> set[bytes]:
    sets = [set(ids(each)) for each in lists]
    if mode is Mode.LEFT:
        return sets[0]
    return set.union(*sets) if mode is Mode.UNION else set.intersection(*sets)


def check_rows(run: AlignmentRun, wanted: set[bytes]) -> dict[bytes, int]:
    """Check that the same people have the same rows everywhere, and others others."""
    rows: dict[bytes, int] = {}
    for name, member in run.members.items():
        mine = run.rows(name)
        assert set(mine) == set(member.ids) & wanted
        for each, row in mine.items():
            assert rows.setdefault(each, row) == row
            assert 0 <= row < run.state.kept <= run.state.n_rows
    assert len(set(rows.values())) == len(rows)
    return rows


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("n_parties", [2, 3])
def test_people_have_one_row_each_and_modes_leave_out_whom_they_say(
    n_parties: int, mode: Mode
) -> None:
    lists = lists_of(n_parties)
    run = prepared(members(lists), mode=mode)
    run.finish()
    check_rows(run, expected(lists, mode))


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(Mode))
def test_eight_parties_agree(mode: Mode) -> None:
    lists = [[*range(k, 12), 20 + k] for k in range(8)]
    run = prepared(members(lists), mode=mode, chunk=300)
    run.finish()
    check_rows(run, expected(lists, mode))


@pytest.mark.parametrize(("lists", "chunk"), [(TWO, 40), (THREE, 7), (THREE, 1000)])
def test_every_message_has_exactly_the_predicted_bytes(
    lists: Sequence[Sequence[int]], chunk: int
) -> None:
    def tamper(round_: int, name: str, bodies: dict[str, bytes]) -> dict[str, bytes]:
        if sizes.COUNT not in bodies:  # a length is predicted below, when it is known
            place, lengths = run.spec.place(name), run.state.lengths or None
            predicted = sizes.answer_bytes(run.spec, place, round_, lengths)
            assert predicted == {kind: len(body) for kind, body in bodies.items()}
        return bodies

    def tamper_task(round_: int, name: str, task: bytes) -> bytes:
        lengths = run.state.lengths or None
        assert sizes.task_bytes(run.spec, run.spec.place(name), round_, lengths) == len(task)
        return task

    run = prepared(members(lists), chunk=chunk, tamper=tamper, tamper_task=tamper_task)
    run.finish()
    counts = run.state.lengths
    assert run.state.round == RoundSchedule(run.spec, counts).rounds
    for place, name in enumerate(run.members):
        sent = dict.fromkeys(sizes.KINDS, 0) | run.uplink[name]
        assert sizes.payload(run.spec, place, counts) == sent
        assert sizes.downlink(run.spec, place, counts) == run.downlink[name]
        most = sizes.payload(run.spec, place, run.spec.max_counts())
        assert sum(sent.values()) <= sum(most.values())


def test_an_id_costs_32_k_plus_16_bytes_up_and_32_k_plus_4_down() -> None:
    run = prepared(members(lists_of(3)))
    count, more = 40_000, 1024 * run.spec.chunk
    now, then = (count,) * 3, (count + more,) * 3
    up = [sum(sizes.payload(run.spec, 0, each).values()) for each in (now, then)]
    down = [sizes.downlink(run.spec, 0, each) for each in (now, then)]
    # Proofs, numbers and framing add up to some hundred bytes for each chunk of 40 here.
    per_chunk = 700
    assert 0 <= up[1] - up[0] - (32 * 3 + 16) * more < per_chunk * 1024
    assert 0 <= down[1] - down[0] - (32 * 3 + 4) * more < per_chunk * 1024


def outcome(run: AlignmentRun) -> tuple[bytes, ...]:
    return (*(state_to_bytes(state) for state in run.states.values()), header_to_bytes(run.state))


def test_a_kill_of_any_side_at_any_round_changes_no_byte() -> None:
    people = members(THREE)
    whole = prepared(people)
    sent: list[dict[str, dict[str, bytes]]] = []
    while not whole.steps.finished(whole.state):
        sent.append(
            {
                n: whole.parties[n].answer(whole.states[n], task)[1]
                for n, task in whole.steps.tasks(whole.state).items()
            }
        )
        whole.step()
    killed = prepared(people)
    for answers in sent:
        killed.restart_coordinator()
        for name, task in killed.steps.tasks(killed.state).items():
            killed.restart_party(name)
            assert killed.ask(name, task) == answers[name]  # and the answer is lost
            killed.restart_party(name)
        killed.restart_coordinator()
        killed.step()
    assert outcome(killed) == outcome(whole)
    assert killed.uplink == whole.uplink


def test_a_party_killed_before_it_stored_its_state_answers_the_same() -> None:
    run = prepared(members(TWO))
    while not run.steps.finished(run.state):
        for name, task in run.steps.tasks(run.state).items():
            before = run.states[name]
            lost = run.ask(name, task)
            run.states[name] = before
            run.restart_party(name)
            assert run.ask(name, task) == lost
        run.step()


def test_a_round_changes_few_of_the_coordinators_blobs() -> None:
    run = prepared(members(TWO), chunk=10)
    most = 0
    while run.state.round < FIRST_WAVE + 12:
        before = run.state
        run.step()
        most = max(most, sum(len(body) for body in changes(before, run.state).put.values()))
    whole = sum(len(body) for body in run.state.blobs.values())
    # A wave replaces the chunks on their way, three for each list, and adds one of tags.
    assert most <= 2 * (3 * (10 * 32 + 3 * 96 + 16) + 10 * 16)
    assert whole > most


def test_secrets_tags_and_order_are_gone_at_the_end() -> None:
    run = prepared(members(TWO))
    secrets = []
    for state in run.states.values():
        assert state.secrets is not None
        scalars = state.secrets.scalars
        secrets += [scalars.secret, scalars.blind, scalars.unblind, state.secrets.exchange]
        secrets.append(state.secrets.seed)
    assert all(any(s in state_to_bytes(each) for each in run.states.values()) for s in secrets)
    coordinator_seed = run.state.seed
    last = {}
    while not run.steps.finished(run.state):
        last = run.steps.tasks(run.state)
        run.step()
    for state in run.states.values():
        assert not any(secret in state_to_bytes(state) for secret in secrets)
        assert state.list_rows == b""
    assert run.state.blobs == {}
    assert coordinator_seed not in header_to_bytes(run.state)
    name = next(iter(run.members))
    assert run.ask(name, last[name]) == {sizes.ACCEPTED: b"\x08\x01"}  # a retry of the last round
    first = prepared(members(TWO))
    with pytest.raises(JobClosed):
        run.ask(name, first.steps.tasks(first.state)[name])


def test_a_party_with_other_ids_does_not_go_on() -> None:
    people = members(TWO)
    run = prepared(people)
    while run.state.round < FIRST_WAVE:
        run.step()
    people["p0"] = AlignmentMember(people["p0"].signer, [*people["p0"].ids[:-1], b"somebody else"])
    run.members = people
    run.restart_party("p0")
    with pytest.raises(DatasetChanged):
        run.step()


def test_lists_that_may_not_be_brought_are_refused_before_anything_is_drawn() -> None:
    people = members(TWO)
    spec, noise = prepared(people).spec, ShakeNoise("x")
    for bad, kind in (
        ([b"a", b"b", b"a"], RepeatedIds),
        ([], UnusableIds),
        (ids(range(1000)), UnusableIds),
    ):
        with pytest.raises(kind):
            AlignmentRun(
                spec, people | {"p0": AlignmentMember(signer("p0"), bad)}, noise, shake("x")
            )
    with pytest.raises(PolicyRefused):
        AlignmentRun(
            spec, people | {"p0": AlignmentMember(signer("p1"), ids([1]))}, noise, shake("x")
        )


def extended(
    run: AlignmentRun,
    lists: Sequence[Sequence[int]],
    *,
    runs: int = 1,
    **hooks: Any,
) -> AlignmentRun:
    people = {}
    for (name, member), each in zip(run.members.items(), lists, strict=True):
        old = run.rows(name)
        rows = np.array([old.get(id_, NO_ROW) for id_ in ids(each)], np.uint32)
        earlier: Earlier = run.parties[name].earlier(run.states[name], rows)
        people[name] = AlignmentMember(member.signer, ids(each), earlier)
    extension = Extension(run_name(run.spec), run.state.kept, runs=runs)
    return prepared(
        people, seed=f"extension {runs}", mode=run.spec.mode, extends=extension, **hooks
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(Mode))
def test_an_extension_moves_nobody_and_places_the_new(mode: Mode) -> None:
    first = prepared(members(THREE), mode=mode)
    first.finish()
    before = check_rows(first, expected(THREE, mode))
    more = [[*THREE[0], 300, 301], [*THREE[1], 300], [*THREE[2], 300]]
    second = extended(first, more)
    second.finish()
    after = check_rows(second, expected(more, mode))
    assert before.items() <= after.items()
    news = set(after) - set(before)
    assert news
    assert all(after[each] >= first.state.kept for each in news)
    third = extended(second, more, runs=2)
    third.finish()
    assert check_rows(third, expected(more, mode)) == after


def test_somebody_who_comes_to_a_second_party_keeps_the_row() -> None:
    first = prepared(members(TWO))
    first.finish()
    before = first.rows("p0")[b"person 3"]
    second = extended(first, [TWO[0], [*TWO[1], 3]])
    second.finish()
    assert second.rows("p1")[b"person 3"] == second.rows("p0")[b"person 3"] == before


def test_an_extension_shows_the_coordinator_no_vanished_dummies() -> None:
    claimed: set[int] = set()

    def tamper(round_: int, name: str, bodies: dict[str, bytes]) -> dict[str, bytes]:
        if sizes.TAGS in bodies:
            old_rows = pb.AlignmentTags.FromString(bodies[sizes.TAGS]).old_rows
            claimed.update(np.frombuffer(old_rows, "<u4").tolist())
        return bodies

    first = prepared(members(TWO))
    phantoms = first.state.phantoms
    first.finish()
    extended(first, TWO, tamper=tamper).finish()
    # All rows of the first run come again but for the phantoms, which nobody ever listed.
    assert len(claimed - {NO_ROW}) == first.state.n_rows - phantoms
