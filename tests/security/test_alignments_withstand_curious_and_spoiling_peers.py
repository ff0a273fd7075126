"""Attacks on an alignment: by a party, by the coordinator, and by what they count."""

import hashlib
import math
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.alignment import ids, members, prepared, signer
from support.entropy import ShakeNoise, shake

from colonnade.core.errors import BadMessage, RequestConflict
from colonnade.methods.alignment import sizes
from colonnade.methods.alignment.codec import (
    count_to_proto,
    key_to_proto,
    segment_from_proto,
    segment_to_proto,
    segments_to_bytes,
    to_bytes,
)
from colonnade.methods.alignment.crypto.chain import Segment, extend
from colonnade.methods.alignment.crypto.curve import hash_to_curve
from colonnade.methods.alignment.crypto.dummies import PatternDummies
from colonnade.methods.alignment.crypto.exchange import (
    Unattested,
    pair_keys,
    public_half,
    seal_dummies,
    sign_count,
    sign_key,
)
from colonnade.methods.alignment.crypto.points import points_from_bytes
from colonnade.methods.alignment.refusals import (
    BrokenChain,
    CanaryMismatch,
    HostilePoints,
    ListTooLong,
)
from colonnade.methods.alignment.schedule import FIRST_WAVE, Visit
from colonnade.methods.alignment.union import Overlap
from colonnade.privacy.membership import MembershipNoise
from colonnade.simulate.inprocess.alignment import AlignmentRun
from colonnade.v1 import alignment_pb2 as pb

LAW = MembershipNoise.within(1.0, 1e-9)
TWO = [range(30), range(20, 60)]
THREE = [range(30), range(20, 60), range(10, 25)]
Edit = Callable[[pb.AlignmentTask], None]


def up_to(run: AlignmentRun, round_: int) -> AlignmentRun:
    while run.state.round < round_:
        run.step()
    return run


def edited(run: AlignmentRun, name: str, edit: Edit) -> bytes:
    """Return the round's task for a party as a hostile coordinator would send it."""
    task = pb.AlignmentTask.FromString(run.steps.tasks(run.state)[name])
    edit(task)
    return to_bytes(task)


def other_points(count: int) -> bytes:
    return hash_to_curve(b"junk", [b"%d" % number for number in range(count)]).tobytes()


# A party that skips or spoils multiplications.


def cheating(
    cheater: str, change: Callable[[bytes, bytes], bytes], lists: list[range]
) -> AlignmentRun:
    """Return a run in which a party signs other points than it should: (in, out) -> points."""
    asked: dict[str, bytes] = {}

    def tamper_task(round_: int, name: str, task: bytes) -> bytes:
        asked[name] = task
        return task

    def tamper(round_: int, name: str, bodies: dict[str, bytes]) -> dict[str, bytes]:
        if name != cheater or sizes.HOPS not in bodies:
            return bodies
        given = [segment_from_proto(s) for s in pb.AlignmentTask.FromString(asked[name]).segments]
        mine = pb.AlignmentSegments.FromString(bodies[sizes.HOPS]).segments
        changed = []
        for before, after in zip(given, mine, strict=False):
            visit = Visit(before.owner, before.chunk, len(before.proofs))
            points = change(before.points, after.points)
            changed.append(extend(signer(cheater), run.steps.run, visit, points, before.proofs))
        return bodies | {sizes.HOPS: segments_to_bytes(changed)}

    run = prepared(members(lists), tamper=tamper, tamper_task=tamper_task, chunk=100)
    return run


def test_a_party_that_skips_multiplications_is_caught_by_the_canaries() -> None:
    run = cheating("p1", lambda before, after: before, THREE)
    with pytest.raises(CanaryMismatch) as refused:
        run.finish()
    assert refused.value.code == "canary_mismatch"


def test_a_party_that_spoils_a_fifth_of_the_points_is_caught_by_the_canaries() -> None:
    def spoil(before: bytes, after: bytes) -> bytes:
        points = points_from_bytes(after).copy()
        junk = hash_to_curve(after[:32], [b"%d" % number for number in range(len(points))])
        points[::5] = junk[::5]
        return points.tobytes()

    with pytest.raises(CanaryMismatch):  # it is missed with probability 0.8**64 < 1e-6
        cheating("p2", spoil, THREE).finish()


def test_one_spoiled_position_is_not_caught_as_the_claim_says_and_moves_one_row() -> None:
    person = b"person 25"  # whom both list

    def spoil(before: bytes, after: bytes) -> bytes:
        at = place_in_list(run, person)
        chunk, place = divmod(at, run.spec.chunk)
        if before != segment_from_proto(stored(run, 0, chunk)).points:
            return after
        return after[: 32 * place] + other_points(1) + after[32 * (place + 1) :]

    run = cheating("p1", spoil, TWO)
    run.finish()
    ours, theirs = run.rows("p0"), run.rows("p1")
    parted = {each for each in ours.keys() & theirs.keys() if ours[each] != theirs[each]}
    assert parted == {person}


def stored(run: AlignmentRun, owner: int, chunk: int) -> pb.AlignmentSegment:
    return pb.AlignmentSegment.FromString(run.state.blobs.get(f"segment/{owner}/{chunk}", b""))


def place_in_list(run: AlignmentRun, person: bytes) -> int:
    """Return where a person stands in the list that the first party sends."""
    state = run.states["p0"]
    assert state.secrets is not None
    listed = run.parties["p0"]._list.made(state, state.secrets)
    return listed.ids_at(0, len(listed.entries)).index(b"\0" + person)


def test_a_party_that_signs_for_another_is_named() -> None:
    run = up_to(prepared(members(TWO)), FIRST_WAVE)
    bodies = run.ask("p1", run.steps.tasks(run.state)["p1"])
    message = pb.AlignmentSegments.FromString(bodies[sizes.POINTS])
    visit = Visit(1, 0, 0)
    forged = extend(signer("p0"), run.steps.run, visit, message.segments[0].points, ())
    with pytest.raises(BrokenChain, match="p1"):
        run.steps.check(run.state, "p1", {sizes.POINTS: segments_to_bytes([forged])})
    run.steps.check(run.state, "p1", bodies)


# Points of low order.


@pytest.mark.parametrize("u", [0, 1, 2**255 - 20])
def test_low_order_points_are_hostile_input_to_both_sides(
    u: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hostile(segment: Segment) -> Segment:
        points = u.to_bytes(32, "little") + segment.points[32:]
        visit = Visit(segment.owner, segment.chunk, 0)
        return extend(signer("p0"), run.steps.run, visit, points, ())

    run = up_to(prepared(members(TWO)), FIRST_WAVE)
    bodies = run.ask("p0", run.steps.tasks(run.state)["p0"])
    sent = segment_from_proto(pb.AlignmentSegments.FromString(bodies[sizes.POINTS]).segments[0])
    with pytest.raises(HostilePoints):
        run.steps.check(run.state, "p0", {sizes.POINTS: segments_to_bytes([hostile(sent)])})
    run.step()

    def edit(task: pb.AlignmentTask) -> None:  # owner and coordinator together
        given = segment_from_proto(task.segments[0])
        assert given.owner == 0
        task.segments[0].CopyFrom(segment_to_proto(hostile(given)))

    def work(*_: object, **__: object) -> object:
        raise AssertionError("points were multiplied")

    task = edited(run, "p1", edit)
    for module in ("party", "own_list"):
        monkeypatch.setattr(f"colonnade.party.methods.alignment.{module}.multiply", work)
    with pytest.raises(HostilePoints) as refused:
        run.ask("p1", task)
    assert refused.value.code == "hostile_points"


def test_an_exchange_key_of_low_order_is_refused() -> None:
    run = up_to(prepared(members(TWO)), 1)

    def edit(task: pb.AlignmentTask) -> None:
        key = sign_key(signer("p0"), Unattested(), run.steps.run, 0, bytes(32))
        task.keys[0].public_key, task.keys[0].signature = key.public_key, key.signature

    with pytest.raises(HostilePoints):
        run.ask("p1", edited(run, "p1", edit))


# A dictionary through the coordinator.


def test_a_coordinator_cannot_have_its_own_points_multiplied() -> None:
    run = up_to(prepared(members(TWO)), FIRST_WAVE + 1)
    stranger = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"stranger").digest())

    def forge(task: pb.AlignmentTask) -> None:
        given = task.segments[0]
        points = other_points(len(given.points) // 32)
        visit = Visit(given.owner, given.chunk, 0)
        given.CopyFrom(segment_to_proto(extend(stranger, run.steps.run, visit, points, ())))

    def swap(task: pb.AlignmentTask) -> None:
        task.segments[0].points = other_points(len(task.segments[0].points) // 32)

    def reorder(task: pb.AlignmentTask) -> None:
        points = task.segments[0].points
        task.segments[0].points = points[32:] + points[:32]

    def longer(task: pb.AlignmentTask) -> None:
        task.segments[0].points += other_points(1)

    def other_chunk(task: pb.AlignmentTask) -> None:
        task.segments[0].chunk += 1

    def twice(task: pb.AlignmentTask) -> None:
        task.segments.add().CopyFrom(task.segments[0])

    def unsigned(task: pb.AlignmentTask) -> None:
        task.segments[0].proofs = b""

    edits: list[tuple[Edit, type[BadMessage]]] = [
        (forge, BrokenChain),
        (swap, BrokenChain),
        (reorder, BrokenChain),
        (longer, ListTooLong),
        (other_chunk, BrokenChain),
        (twice, BadMessage),
        (unsigned, BrokenChain),
    ]
    for edit, kind in edits:
        with pytest.raises(kind):
            run.ask("p1", edited(run, "p1", edit))
    run.finish()  # a refusal leaves nothing behind


def test_a_hop_that_was_left_out_is_noticed_by_the_next() -> None:
    run = up_to(prepared(members(THREE), chunk=1000), FIRST_WAVE + 1)
    first_hand = run.state.blobs["segment/0/0"]
    run.step()

    def edit(task: pb.AlignmentTask) -> None:
        at = next(k for k, s in enumerate(task.segments) if s.owner == 0)
        task.segments[at].ParseFromString(first_hand)

    with pytest.raises(BrokenChain):
        run.ask("p2", edited(run, "p2", edit))


@pytest.mark.parametrize("more", [-1, 1])
def test_a_chunk_has_the_size_that_its_owners_signed_length_leaves_for_it(more: int) -> None:
    people = members(TWO)
    run = up_to(prepared(people), FIRST_WAVE + 1)

    def another_size(task: pb.AlignmentTask) -> None:  # the owner itself signs it
        given = segment_from_proto(task.segments[0])
        points = (given.points + other_points(1))[: len(given.points) + 32 * more]
        visit = Visit(given.owner, given.chunk, 0)
        signed = extend(people["p0"].signer, run.steps.run, visit, points, ())
        task.segments[0].CopyFrom(segment_to_proto(signed))

    with pytest.raises(ListTooLong):
        run.ask("p1", edited(run, "p1", another_size))
    run.finish()  # a refusal leaves nothing behind


def test_a_list_is_multiplied_once_and_a_replay_gives_the_same_bytes() -> None:
    people = members(TWO)
    run = up_to(prepared(people), FIRST_WAVE + 1)
    task = run.steps.tasks(run.state)["p1"]
    bodies = run.ask("p1", task)
    assert run.ask("p1", task) == bodies

    def another_list(task: pb.AlignmentTask) -> None:  # rightly signed by its owner
        given = segment_from_proto(task.segments[0])
        points = other_points(len(given.points) // 32)
        visit = Visit(given.owner, given.chunk, 0)
        signed = extend(people["p0"].signer, run.steps.run, visit, points, ())
        task.segments[0].CopyFrom(segment_to_proto(signed))

    with pytest.raises(RequestConflict):
        run.ask("p1", edited(run, "p1", another_list))
    run.restart_party("p1")
    with pytest.raises(RequestConflict):
        run.ask("p1", edited(run, "p1", another_list))


def test_rounds_are_asked_in_order() -> None:
    run = prepared(members(TWO))
    with pytest.raises(BadMessage):
        run.ask("p0", to_bytes(pb.AlignmentTask(round=1)))
    with pytest.raises(BadMessage):
        run.ask("p0", to_bytes(pb.AlignmentTask(round=0, macs=b"x")))
    with pytest.raises(BadMessage):
        run.ask("p0", b"\xff\xff")


def test_lengths_are_signed_and_capped() -> None:
    run = up_to(prepared(members(TWO)), FIRST_WAVE)
    most = run.spec.max_count(0)

    def signed(count: int) -> Edit:
        def edit(task: pb.AlignmentTask) -> None:
            made = sign_count(signer("p0"), run.steps.run, 0, count)
            task.counts[0].CopyFrom(count_to_proto(made))

        return edit

    def unsigned(task: pb.AlignmentTask) -> None:
        task.counts[0].count += 1

    def missing(task: pb.AlignmentTask) -> None:
        del task.counts[0]

    for edit, kind in (
        (signed(most + 1), ListTooLong),
        (signed(run.spec.n_canaries), ListTooLong),
        (unsigned, BrokenChain),
        (missing, BrokenChain),
    ):
        with pytest.raises(kind):
            run.ask("p1", edited(run, "p1", edit))
    too_long = to_bytes(count_to_proto(sign_count(signer("p0"), run.steps.run, 0, most + 1)))
    before = up_to(prepared(members(TWO)), FIRST_WAVE - 1)
    with pytest.raises(ListTooLong):
        before.steps.check(before.state, "p0", {sizes.COUNT: too_long})


def test_signatures_of_one_run_mean_nothing_in_another() -> None:
    one, other = (up_to(prepared(members(TWO), seed=seed), FIRST_WAVE) for seed in ("one", "other"))
    assert one.steps.run != other.steps.run
    with pytest.raises(BrokenChain):
        other.ask("p1", one.steps.tasks(one.state)["p1"])


# Keys and dummies under way.


def test_a_coordinator_cannot_put_itself_between_two_parties() -> None:
    run = up_to(prepared(members(TWO)), 1)

    def edit(task: pb.AlignmentTask) -> None:
        task.keys[0].public_key = other_points(1)

    with pytest.raises(BrokenChain):
        run.ask("p1", edited(run, "p1", edit))


def test_a_party_refuses_another_key_under_its_own_name() -> None:
    run = up_to(prepared(members(TWO)), 1)

    def edit(task: pb.AlignmentTask) -> None:  # rightly signed, and not what this process drew
        made = sign_key(signer("p1"), Unattested(), run.steps.run, 1, public_half(bytes(32)))
        task.keys[1].CopyFrom(key_to_proto(made))

    with pytest.raises(BadMessage, match="key"):
        run.ask("p1", edited(run, "p1", edit))


def test_altered_boxes_and_too_many_dummies_are_refused() -> None:
    run = up_to(prepared(members(TWO)), 2)

    def flip(task: pb.AlignmentTask) -> None:
        task.boxes[0] = bytes([task.boxes[0][0] ^ 1]) + task.boxes[0][1:]

    secrets = run.states["p0"].secrets
    assert secrets is not None
    pair = pair_keys(secrets.exchange, run.steps.run, run.states["p0"].keys, 0, 1)

    def greedy(task: pb.AlignmentTask) -> None:
        many = PatternDummies(3, bytes(32), run.spec.noise.most + 1)
        task.boxes[0] = seal_dummies(pair, [many], 1)

    def short(task: pb.AlignmentTask) -> None:
        task.boxes[0] = seal_dummies(pair, [], 1)

    for edit, kind in ((flip, BrokenChain), (greedy, ListTooLong), (short, BrokenChain)):
        with pytest.raises(kind):
            run.ask("p1", edited(run, "p1", edit))


def test_the_coordinator_sees_no_seed_and_no_number_of_dummies() -> None:
    run = up_to(prepared(members(THREE), noise=LAW), 2)
    sent = b"".join(box for boxes in run.state.boxes for box in boxes)
    for state in run.states.values():
        assert state.secrets is not None
        assert not any(d.seed in sent for d in state.secrets.dummies)
    lengths = {len(box) for box in run.state.boxes[0]}
    assert lengths == {sizes.box_bytes(run.spec, 0)}


# Rows.


def test_rows_told_differently_to_two_parties_are_noticed() -> None:
    def swap_rows(round_: int, name: str, task: bytes) -> bytes:
        message = pb.AlignmentTask.FromString(task)
        if name == "p1" and message.HasField("rows"):
            rows = np.frombuffer(message.rows.rows, "<u4")
            message.rows.rows = rows[::-1].tobytes()
        return to_bytes(message)

    def other_total(round_: int, name: str, task: bytes) -> bytes:
        message = pb.AlignmentTask.FromString(task)
        if name == "p1" and message.HasField("rows"):
            message.rows.n_rows += 1
        return to_bytes(message)

    for tamper_task in (swap_rows, other_total):
        with pytest.raises(CanaryMismatch):
            prepared(members(TWO), tamper_task=tamper_task).finish()


def test_impossible_rows_are_refused() -> None:
    def told(change: Callable[[pb.AlignmentRows], None]) -> Callable[[int, str, bytes], bytes]:
        def tamper_task(round_: int, name: str, task: bytes) -> bytes:
            message = pb.AlignmentTask.FromString(task)
            if message.HasField("rows"):
                change(message.rows)
            return to_bytes(message)

        return tamper_task

    def repeat(rows: pb.AlignmentRows) -> None:
        rows.rows = rows.rows[:4] + rows.rows[:4] + rows.rows[8:]

    def beyond(rows: pb.AlignmentRows) -> None:
        rows.n_rows = 3

    def huge(rows: pb.AlignmentRows) -> None:
        rows.n_rows = 10**6

    def unused(rows: pb.AlignmentRows) -> None:
        rows.kept = rows.n_rows + 1

    def short(rows: pb.AlignmentRows) -> None:
        rows.rows = rows.rows[:-4]

    for change in (repeat, beyond, huge, unused, short):
        with pytest.raises(BadMessage):
            prepared(members(TWO), tamper_task=told(change)).finish()


# What counts tell.


@pytest.mark.parametrize("target", [7, 999])  # listed by the other party, and not
def test_a_list_of_one_id_learns_the_answer_only_under_the_phantoms(target: int) -> None:
    run = prepared(members([range(30), [target]]), noise=LAW)
    phantoms = run.state.phantoms
    secrets = up_to(run, FIRST_WAVE).states["p1"].secrets
    assert secrets is not None
    known = {d.pattern: d.count for d in secrets.dummies}
    result = run.finish()
    # The attacker subtracts all that it knows: lengths, and the dummies of its own sets.
    ours, theirs = run.state.lengths[1], run.state.lengths[0]
    left = result.n_rows - ours - theirs + known[3] + run.spec.n_canaries
    assert left == phantoms - (target < 30)


def advantage(law: MembershipNoise, draws: int) -> float:
    """Return how much better than a coin the best threshold on phantoms tells 0 from 1."""
    run = prepared(members(TWO), noise=law)
    noise, entropy = ShakeNoise("attack"), shake("attack")
    drawn = np.array([run.steps.start(noise, entropy).phantoms for _ in range(draws)])
    half = draws // 2
    here, there = drawn[:half], drawn[half:] + 1
    cuts = range(int(drawn.min()), int(drawn.max()) + 2)
    return max(float((there >= cut).mean() - (here >= cut).mean()) for cut in cuts)


def test_membership_by_the_number_of_rows_is_hardly_better_than_guessing() -> None:
    # Of laws that differ by a shift of one, the best test wins by the largest probability: for the
    # phantoms' scale tanh(1 / (2 scale)). Its estimate from 2 x 2000 draws has deviation
    # sqrt(2 x 0.25 / 2000) = 0.016; four of them, for the best of some cuts.
    bound = math.tanh(1.0 / (2.0 * LAW.phantoms().scale))
    assert advantage(LAW, 4000) < bound + 0.064
    half = MembershipNoise(LAW.scale // 2, LAW.shift)
    assert advantage(half, 4000) > bound + 0.064  # half the noise would be seen


def estimate(seed: str, people: int) -> int:
    """Return the reported number of people at both of two parties, from all draws of a run."""
    run = prepared(members(TWO), seed=seed, noise=LAW)
    counted = np.zeros(3, np.int64)
    for state in run.states.values():
        assert state.secrets is not None
        for dummies in state.secrets.dummies:
            counted[dummies.pattern - 1] += dummies.count
    counted[2] += people + run.spec.n_canaries
    return Overlap.of(counted, np.array(run.state.report_noise), run.spec).at_all(0, 1)


def test_two_runs_do_not_subtract_to_one_person() -> None:
    differences = [estimate(f"a{k}", 101) - estimate(f"b{k}", 100) for k in range(150)]
    report, q = LAW.report().scale, math.exp(-1.0 / LAW.scale)
    r = math.exp(-1.0 / report)
    variance = 2.0 * q / (1.0 - q) ** 2 + 2.0 * r / (1.0 - r) ** 2
    # The deviation of 150 such differences (kurtosis about 4.5) is known to
    # sqrt(3.5 / (4 x 150)) = 8 %; half the noise would have half of it.
    assert abs(float(np.std(differences)) / math.sqrt(2.0 * variance) - 1.0) < 0.3
    assert abs(float(np.mean(differences)) - 1.0) < 4.0 * math.sqrt(2.0 * variance / 150)


def test_equal_runs_report_different_counts_and_rows() -> None:
    results, rows = [], []
    for seed in ("one", "other"):
        run = prepared(members(TWO), seed=seed, noise=LAW, chunk=200)
        results.append(run.finish())
        rows.append(run.rows("p0"))
    assert results[0].overlap != results[1].overlap
    assert results[0].n_rows != results[1].n_rows
    assert rows[0] != rows[1]


def test_the_order_of_a_list_is_not_that_of_the_table() -> None:
    run = up_to(prepared(members(TWO), chunk=1000), FIRST_WAVE)
    again = prepared(members(TWO), chunk=1000, seed="other")
    orders = []
    for each in (run, up_to(again, FIRST_WAVE)):
        state = each.states["p0"]
        assert state.secrets is not None
        listed = each.parties["p0"]._list.made(state, state.secrets)
        places = {entry: at for at, entry in enumerate(listed.ids_at(0, len(listed.entries)))}
        orders.append([places[b"\0" + id_] for id_ in ids(range(30))])
    assert orders[0] != orders[1]
    assert all(order != sorted(order) for order in orders)
