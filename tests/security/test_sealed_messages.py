"""Ciphertexts and replies that are not what they should be: refused, with nothing charged."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.entropy import ShakeNoise
from support.sealed import JOB, before, request_of, signed, small_data, small_spec

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage, NotPrivate, RequestConflict
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate, Step
from colonnade.linear.ball import Projection
from colonnade.methods.sealed.kinds import SEAL, SealedStage
from colonnade.methods.sealed.packing import SEED_BYTES, SIGNATURE_BYTES, pack, unpack
from colonnade.methods.sealed.ring import DEGREE, MODULUS, Words
from colonnade.methods.sealed.tasks import Relayed, SealedTask, digest_of, statement
from colonnade.party.data.columns import HeldColumns
from colonnade.party.methods.sealed import SealedParty
from colonnade.party.methods.sealed_keys import FileKeys
from colonnade.party.methods.sealed_peers import PinnedPeers
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.mechanisms import record_of

pytest.importorskip("seal")
from colonnade.methods.sealed.ring import seal_ring
from colonnade.simulate.inprocess.sealed import parties

DATA = small_data((4, 5, 5), n_rows=4000)
SPEC = small_spec(DATA)
SEAL_ROUND, REPLY_ROUND, OPEN_ROUND = (
    SPEC.round_of(stage) for stage in (SealedStage.SEAL, SealedStage.REPLY, SealedStage.OPEN)
)


@pytest.fixture
def members() -> dict[str, SealedParty]:
    return parties(DATA, SPEC, JOB, ShakeNoise("messages"))


def refused(member: SealedParty, task: SealedTask, request: bytes = b"hostile") -> str:
    """Return why a task is refused; nothing may have been charged, read or written."""
    head = member.ledger.head
    with pytest.raises(BadMessage) as error:
        member.answer(task, request)
    assert member.ledger.head == head
    return str(error.value)


def payload_with(body: bytes, place: int, value: int) -> bytes:
    """Return a sealed body's payload with one coefficient replaced, whatever it is."""
    payload = body[:-SIGNATURE_BYTES]
    bits = np.unpackbits(np.frombuffer(payload[SEED_BYTES:], np.uint8), bitorder="little")
    word = np.array([value >> i & 1 for i in range(54)], np.uint8)
    bits[54 * place : 54 * (place + 1)] = word
    return payload[:SEED_BYTES] + np.packbits(bits, bitorder="little").tobytes()


# -- ciphertexts -----------------------------------------------------------------------------------


def sealed_by(task: SealedTask, party: str) -> Relayed:
    (found,) = [each for each in task.relayed if each.party == party]
    return found


def swapped(task: SealedTask, party: str, body: bytes) -> SealedTask:
    relayed = tuple(
        replace(each, body=body) if each.party == party else each for each in task.relayed
    )
    return replace(task, relayed=relayed)


Forge = Callable[[dict[str, SealedParty], bytes], bytes]
CIPHERTEXTS: dict[str, tuple[Forge, str]] = {
    "a coefficient equal to the modulus": (
        lambda m, b: signed(m["p0"], "seal.0", SEAL_ROUND, payload_with(b, 5, MODULUS)),
        "modulus",
    ),
    "a coefficient of all bits": (
        lambda m, b: signed(m["p0"], "seal.0", SEAL_ROUND, payload_with(b, 0, 2**54 - 1)),
        "modulus",
    ),
    "truncated": (lambda m, b: b[:-1], "bytes instead"),
    "a polynomial short": (
        lambda m, b: signed(m["p0"], "seal.0", SEAL_ROUND, b[: -SIGNATURE_BYTES - 27648]),
        "bytes instead",
    ),
    "longer": (lambda m, b: b + b"\0", "bytes instead"),
    "empty": (lambda m, b: b"", "bytes instead"),
    "a changed bit": (lambda m, b: bytes([b[0] ^ 1]) + b[1:], "pinned key"),
    "a changed signature": (lambda m, b: b[:-1] + bytes([b[-1] ^ 1]), "pinned key"),
    "signed by another party": (
        lambda m, b: signed(m["p1"], "seal.0", SEAL_ROUND, b[:-SIGNATURE_BYTES]),
        "pinned key",
    ),
    "of another round": (
        lambda m, b: signed(m["p0"], "seal.0", SEAL_ROUND + 1, b[:-SIGNATURE_BYTES]),
        "pinned key",
    ),
    "of another index": (
        lambda m, b: signed(m["p0"], "seal.1", SEAL_ROUND, b[:-SIGNATURE_BYTES]),
        "pinned key",
    ),
    "of another job": (
        lambda m, b: (
            b[:-SIGNATURE_BYTES]
            + m["p0"].ledger.sign(
                statement(
                    job="another",
                    round_=SEAL_ROUND,
                    party="p0",
                    kind="seal.0",
                    payload=b[:-SIGNATURE_BYTES],
                )
            )
        ),
        "pinned key",
    ),
}


@pytest.mark.parametrize("name", CIPHERTEXTS)
def test_a_forged_ciphertext_is_refused(name: str, members: dict[str, SealedParty]) -> None:
    forge, why = CIPHERTEXTS[name]
    _, tasks = before(members, SPEC, REPLY_ROUND)
    body = sealed_by(tasks["p2"], "p0").body
    assert why in refused(members["p2"], swapped(tasks["p2"], "p0", forge(members, body)))
    released = members["p2"].answer(tasks["p2"], request_of(tasks["p2"]))  # the right one passes
    assert [release.key.kind for release in released] == ["reply.0", "reply.1"]


def test_random_bytes_are_refused(members: dict[str, SealedParty]) -> None:
    _, tasks = before(members, SPEC, REPLY_ROUND)
    body, make = sealed_by(tasks["p2"], "p0").body, np.random.default_rng(1)
    for _ in range(20):
        payload = body[:SEED_BYTES] + make.bytes(len(body) - SEED_BYTES - SIGNATURE_BYTES)
        hostile = signed(members["p0"], "seal.0", SEAL_ROUND, payload)
        # One in 10**11 of 54-bit words lies outside the ring, so most pass as ciphertexts: what
        # was signed by the peer is its word. Any of another size or key does not.
        cut = hostile[: int(make.integers(0, len(hostile)))]
        assert "bytes instead" in refused(members["p2"], swapped(tasks["p2"], "p0", cut))
        other = make.bytes(len(body))
        assert "pinned key" in refused(members["p2"], swapped(tasks["p2"], "p0", other))


def test_bodies_missing_repeated_or_out_of_order_are_refused(
    members: dict[str, SealedParty],
) -> None:
    _, tasks = before(members, SPEC, REPLY_ROUND)
    task = tasks["p2"]
    for relayed in (
        task.relayed[:1],
        (*task.relayed, task.relayed[0]),
        task.relayed[::-1],
        (replace(task.relayed[0], party="p1"), task.relayed[1]),
        (replace(task.relayed[0], kind="seal.1"), task.relayed[1]),
    ):
        assert "other bodies" in refused(members["p2"], replace(task, relayed=relayed))
    assert "relays bodies" in refused(members["p2"], replace(task, relayed=()))


def test_a_peer_whose_key_is_not_pinned_is_refused(members: dict[str, SealedParty]) -> None:
    _, tasks = before(members, SPEC, REPLY_ROUND)
    for peer in ("p0", "p1"):  # of the others the right keys are pinned
        pins = {each: key for each, key in members["p2"].peers.pins.items() if each != peer}
        lonely = replace(members["p2"], peers=PinnedPeers(SPEC, JOB, pins))
        assert refused(lonely, tasks["p2"]) == f"no ledger key of {peer!r} is pinned here"


def test_a_relay_that_plays_a_peer_is_refused(members: dict[str, SealedParty]) -> None:
    # A whole exchange under keys of the relay's own, signed by a ledger that nobody pinned.
    fake = parties(DATA, SPEC, JOB, ShakeNoise("relay"))
    _, theirs = before(fake, SPEC, REPLY_ROUND)
    _, tasks = before(members, SPEC, REPLY_ROUND)
    hostile = sealed_by(theirs["p2"], "p0").body
    assert "pinned key" in refused(members["p2"], swapped(tasks["p2"], "p0", hostile))


def test_a_second_ciphertext_with_the_same_key_and_index_is_refused(
    members: dict[str, SealedParty],
) -> None:
    _, tasks = before(members, SPEC, REPLY_ROUND)
    task, replier = tasks["p2"], members["p2"]
    replier.answer(task, request_of(task))
    body = sealed_by(task, "p0").body
    other = signed(members["p0"], "seal.0", SEAL_ROUND, payload_with(body, DEGREE, 12345))
    head = replier.ledger.head
    # The same task's bytes as far as the caller knows: the digest covers what was relayed.
    with pytest.raises(RequestConflict):
        replier.answer(swapped(task, "p0", other), request_of(task))
    assert replier.ledger.head == head


def test_groups_with_one_seed_are_refused() -> None:
    spec = replace(SPEC, groups=2)
    members = parties(DATA, spec, JOB, ShakeNoise("groups"))
    _, tasks = before(members, spec, REPLY_ROUND)
    first, second = (each.body for each in tasks["p1"].relayed if each.party == "p0")
    assert first[:SEED_BYTES] != second[:SEED_BYTES]
    forged = signed(
        members["p0"],
        "seal.1",
        SEAL_ROUND,
        first[:SEED_BYTES] + second[SEED_BYTES:-SIGNATURE_BYTES],
    )
    relayed = tuple(
        replace(each, body=forged) if each.kind == "seal.1" else each
        for each in tasks["p1"].relayed
    )
    assert "one seed" in refused(members["p1"], replace(tasks["p1"], relayed=relayed))


# -- replies ---------------------------------------------------------------------------------------


def answers_of(members: dict[str, SealedParty]) -> str:
    _, tasks = before(members, SPEC, REPLY_ROUND)
    return digest_of([sealed_by(tasks["p1"], "p0").body])


def resigned(m: dict[str, SealedParty], payload: bytes, **other: object) -> bytes:
    facts = {"kind": "reply.0", "round_": REPLY_ROUND, "answers": answers_of(m), **other}
    return signed(m["p1"], payload=payload, **facts)  # type: ignore[arg-type]


REPLIES: dict[str, tuple[Forge, str]] = {
    "a coefficient outside the ring": (
        lambda m, b: resigned(m, b"\xff" * 7 + b[7:-SIGNATURE_BYTES]),
        "modulus",
    ),
    "truncated": (lambda m, b: b[:-9], "bytes instead"),
    "bits at the end": (
        lambda m, b: resigned(
            m, b[: -SIGNATURE_BYTES - 1] + bytes([b[-SIGNATURE_BYTES - 1] | 0x80])
        ),
        "not zero",
    ),
    "a changed bit": (lambda m, b: bytes([b[0] ^ 1]) + b[1:], "pinned key"),
    "to another ciphertext": (
        lambda m, b: resigned(m, b[:-SIGNATURE_BYTES], answers="0" * 64),
        "pinned key",
    ),
    "to nothing": (lambda m, b: resigned(m, b[:-SIGNATURE_BYTES], answers=""), "pinned key"),
    "to another party": (
        lambda m, b: resigned(m, b[:-SIGNATURE_BYTES], kind="reply.1"),
        "pinned key",
    ),
    "of another round": (
        lambda m, b: resigned(m, b[:-SIGNATURE_BYTES], round_=REPLY_ROUND + 1),
        "pinned key",
    ),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_forged_reply_is_refused(name: str, members: dict[str, SealedParty]) -> None:
    forge, why = REPLIES[name]
    _, tasks = before(members, SPEC, OPEN_ROUND)
    task = tasks["p0"]
    body = sealed_by(task, "p1").body
    assert SPEC.product("reply.0", SPEC.part("p1")).layout.slots % 4  # so that bits are left over
    assert why in refused(members["p0"], swapped(task, "p1", forge(members, body)))
    released = members["p0"].answer(task, request_of(task))
    assert [release.key.kind for release in released] == ["open.1", "open.2"]


def test_nothing_is_opened_that_was_not_sealed_or_whose_key_is_gone(
    members: dict[str, SealedParty],
) -> None:
    _, tasks = before(members, SPEC, OPEN_ROUND)
    fresh = parties(DATA, SPEC, JOB, ShakeNoise("fresh"))["p0"]
    fresh = replace(fresh, peers=members["p0"].peers)
    assert "not sealed" in refused(fresh, tasks["p0"])
    members["p0"].end()
    assert "erased" in refused(members["p0"], tasks["p0"])


def test_a_chosen_second_part_of_zeros_is_opened_like_any_other(
    members: dict[str, SealedParty],
) -> None:
    # SEAL would raise an exception for it, after the charge.
    _, tasks = before(members, SPEC, OPEN_ROUND)
    task = tasks["p0"]
    body = sealed_by(task, "p1").body
    count = SPEC.product("reply.0", SPEC.part("p1"))
    shape = count.layout.replies(count.multiplied.columns), count.layout.slots + DEGREE
    zeros = resigned(members, pack(np.zeros(shape, np.int64)))
    assert len(zeros) == len(body)
    released = members["p0"].answer(swapped(task, "p1", zeros), request_of(task))
    assert len(released) == 2
    assert not members["p0"].ledger.state.abandoned


# -- tasks -----------------------------------------------------------------------------------------


def test_tasks_of_other_shapes_are_refused(members: dict[str, SealedParty]) -> None:
    _, tasks = before(members, SPEC, SEAL_ROUND)
    task, member = tasks["p1"], members["p1"]
    wrong = Projection(np.ones((2, 3), np.int64), np.zeros(2, np.int64))
    assert "another size" in refused(member, replace(task, projection=wrong))
    assert "another size" in refused(member, replace(task, projection=None))
    assert "another size" in refused(member, replace(task, label=task.projection))
    assert "relays bodies" in refused(member, replace(task, relayed=(Relayed("p0", "x", b""),)))
    assert "round" in refused(member, replace(task, round=9))
    assert "round" in refused(member, replace(task, round=-1))
    _, tasks = before(members, SPEC, OPEN_ROUND)
    assert "asks nothing" in refused(members["p2"], SealedTask(OPEN_ROUND))


# -- replays ---------------------------------------------------------------------------------------


def test_stored_bytes_are_replayed_even_when_the_key_is_gone(
    members: dict[str, SealedParty],
) -> None:
    _, tasks = before(members, SPEC, SEAL_ROUND)
    first = members["p0"].answer(tasks["p0"], b"r")
    again = members["p0"].answer(tasks["p0"], b"r")
    members["p0"].end()
    after = members["p0"].answer(tasks["p0"], b"r")
    bodies = [[release.body for release in each] for each in (first, again, after)]
    assert bodies[0] == bodies[1] == bodies[2]
    with pytest.raises(RequestConflict):
        members["p0"].answer(tasks["p0"], b"another")


class Killed(BaseException):
    """The process ended here."""


def on_disk(
    member: SealedParty, folder: Path, at: Callable[[Step], None] | None = None
) -> SealedParty:
    """Return the party with keys in files, and a gate that may be killed."""
    gate = Gate(member.ledger, ShakeNoise(f"again {at}"), **({} if at is None else {"at": at}))
    return replace(member, gate=gate, keys=FileKeys(folder))


@pytest.mark.parametrize("step", [Step.CHARGED, Step.COMPUTED, Step.DRAWN])
def test_killed_before_it_is_stored_it_seals_again_under_the_same_key_and_charge(
    step: Step, members: dict[str, SealedParty], tmp_path: Path
) -> None:
    def kill(reached: Step) -> None:
        if reached is step and sealing:
            raise Killed

    sealing = False
    _, tasks = before(members, SPEC, SEAL_ROUND)
    doomed = on_disk(members["p0"], tmp_path, kill)
    gram = doomed.spec.round_kinds(SEAL_ROUND, doomed.part)[0]
    doomed._statistic(tasks["p0"], gram, b"r", lambda: np.zeros(15, np.int64))
    sealing = True
    with pytest.raises(Killed):
        doomed.answer(tasks["p0"], b"r")
    spent = doomed.ledger.budget().spent
    restarted = on_disk(members["p0"], tmp_path)
    released = restarted.answer(tasks["p0"], b"r")
    assert [each.key.kind for each in released] == ["gram", "seal.0"]
    assert restarted.ledger.budget().spent == spent
    key = ReleaseKey(JOB, SEAL_ROUND, "seal.0")
    record = record_of(restarted.ledger.state.charges[key].mechanism)
    (path,) = tmp_path.rglob("*.key")
    assert path.read_bytes()[:SEED_BYTES] == released[1].body[:SEED_BYTES]
    assert len(str(record["key"])) == 64


def test_charged_and_killed_without_its_key_it_does_not_seal_under_another(
    members: dict[str, SealedParty], tmp_path: Path
) -> None:
    def kill(reached: Step) -> None:
        if reached is Step.CHARGED:
            raise Killed

    _, tasks = before(members, SPEC, SEAL_ROUND)
    members["p0"]._statistic(tasks["p0"], "gram", b"r", lambda: np.zeros(15, np.int64))
    doomed = on_disk(members["p0"], tmp_path, kill)
    steps = partial(doomed.rows.steps, SEAL, tasks["p0"].projection, doomed.ledger)
    with pytest.raises(Killed):
        doomed.sealing.bodies(SEAL_ROUND, SEAL, ["seal.0"], request=b"r", steps=steps)
    doomed.keys.erase(JOB)
    assert "erased" in refused(on_disk(members["p0"], tmp_path), tasks["p0"], b"r")


# -- no branch on data, no other door --------------------------------------------------------------


class Counting:
    """A ring that notes how much it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def forward(self, polynomials: IntArray) -> Words:
        self.asked.append(("forward", len(polynomials)))
        return seal_ring().forward(polynomials)

    def inverse(self, values: Words) -> IntArray:
        self.asked.append(("inverse", len(values)))
        return seal_ring().inverse(values)


def test_a_table_of_constants_is_answered_with_the_same_steps_and_sizes() -> None:
    traces = []
    for constant in (False, True):
        ring = Counting()
        members = parties(DATA, SPEC, JOB, ShakeNoise("zeros"), ring=ring)
        _, tasks = before(members, SPEC, REPLY_ROUND)
        member = members["p2"]
        if constant:
            features = np.zeros_like(member.columns.features)
            member = replace(member, columns=HeldColumns(features, None))
            zero = Projection(
                np.zeros_like(tasks["p2"].projection.coef),  # type: ignore[union-attr]
                np.zeros_like(tasks["p2"].projection.offset),  # type: ignore[union-attr]
            )
            tasks["p2"] = replace(tasks["p2"], projection=zero)
        ring.asked.clear()
        released = member.answer(tasks["p2"], b"r")
        assert not member.ledger.state.abandoned
        traces.append((ring.asked, [len(each.body) for each in released]))
    assert traces[0] == traces[1]
    assert len(traces[0][0]) > 3


def test_seeded_noise_cannot_seal_for_a_real_ledger() -> None:
    ledger = memory_ledger(LedgerConfig("p0", {"": MAX_UNITS}))
    with pytest.raises(NotPrivate):
        Gate(ledger, ShakeNoise("seeded"))


def test_bytes_on_the_wire_have_no_header_and_no_order(members: dict[str, SealedParty]) -> None:
    _, tasks = before(members, SPEC, REPLY_ROUND)
    body = sealed_by(tasks["p1"], "p0").body
    layout = SPEC.layout(SEAL, SPEC.parts[0])
    assert len(body) == 32 + (1 + layout.chunks) * 27648 + 64
    values = unpack(body[SEED_BYTES:-SIGNATURE_BYTES], (1 + layout.chunks) * DEGREE)
    counts, _ = np.histogram(values, bins=64, range=(0, MODULUS))
    expected = values.size / 64
    # Uniform: chi-squared with 63 degrees of freedom exceeds 115 once in 10**4 times.
    assert float(((counts - expected) ** 2 / expected).sum()) < 115
    assert hashlib.sha256(body).hexdigest() in "\n".join(members["p0"].ledger.lines())
