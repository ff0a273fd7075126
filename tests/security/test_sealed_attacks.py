"""Attacks on the sealed exchange: what hostile peers chose, against the shipped code.

Each attack is also run against the bug that it needs, and works there: so it can see one.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.audit import rho_lower_bound
from support.entropy import ShakeNoise
from support.sealed import JOB, ErrorsOnly, before, request_of, signed, small_data, small_spec

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.methods.sealed import scheme
from colonnade.methods.sealed.charges import MAX_KEY_BITS, Product
from colonnade.methods.sealed.kinds import OPEN, SEAL, SealedStage, numbered
from colonnade.methods.sealed.packing import (
    HIGH_STEP,
    LOW_FIELD,
    LOW_STEP,
    SEED_BYTES,
    SIGNATURE_BYTES,
    Layout,
    numbers,
    pack,
    unpack,
)
from colonnade.methods.sealed.ring import DEGREE, MODULUS, add, times
from colonnade.methods.sealed.rows import RowScale
from colonnade.methods.sealed.scheme import (
    Ciphertexts,
    KeyContext,
    Multipliers,
    SecretKey,
    multiplied,
    opened,
)
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.methods.sealed.tasks import Relayed, SealedTask, digest_of
from colonnade.party.methods.sealed import SealedParty
from colonnade.party.methods.sealed_peers import context_of
from colonnade.privacy.accounting import rho_from_units
from colonnade.privacy.sampling import NoiseSource

pytest.importorskip("seal")
from colonnade.methods.sealed.ring import seal_ring
from colonnade.simulate.inprocess.sealed import parties

RING = seal_ring()
BALL = 1 << 14
DATA = small_data((4, 5), n_rows=4000)
SPEC = small_spec(DATA)


# -- a hostile replier: opening is a decryption oracle ---------------------------------------------


def read_key(
    members: dict[str, SealedParty], spec: SealedSpec, task: SealedTask, *, first: int
) -> tuple[IntArray, IntArray]:
    """Open replies of chosen c1; return which secret coefficients they showed, and their values.

    A reply with c0 = 0 and c1 = w x**(wanted - i) opens to w s_i at a wanted place: a low number
    shows one coefficient, in steps of eight deviations of the noise.
    """
    victim, cheat = members["p0"], members["p1"]
    reply, kind = numbered("reply", 0), numbered(OPEN, 1)
    layout = spec.product(reply, cheat.part).layout
    step = 8 * math.isqrt(spec.sigma2(kind, victim.part))
    rows = np.zeros((layout.replies(spec.n_gram(cheat.part)), layout.slots + DEGREE), np.int64)
    places = []
    for poly, row in enumerate(rows):
        for slot, wanted in enumerate(layout.wanted.tolist()):
            if slot:  # one chosen coefficient a polynomial shows at every wanted place
                continue
            index = first + poly
            shift = (wanted - index) % (2 * DEGREE)
            weight = step * LOW_STEP if shift < DEGREE else MODULUS - step * LOW_STEP
            row[layout.slots + shift % DEGREE] = weight
            places.append((poly, index))
    sealed = [each.body for each in before_sealed(members, spec)]
    body = signed(cheat, reply, task.round - 1, pack(rows), digest_of(sealed))
    (opening,) = victim.answer(
        replace(task, relayed=(Relayed("p1", reply, body),)), request_of(task)
    )
    code = spec.opening_code(kind, victim.part)
    table = code.decode(opening.body).reshape(-1, spec.n_gram(victim.part))
    found = np.array([round(float(table[poly, 0]) / step) for poly, _ in places])
    return np.array([index for _, index in places]), found


def before_sealed(members: dict[str, SealedParty], spec: SealedSpec) -> list[Relayed]:
    _, tasks = before(members, spec, spec.round_of(SealedStage.REPLY))
    return [each for each in tasks["p1"].relayed if each.party == "p0"]


def test_a_hostile_replier_learns_few_bits_of_the_key_and_asks_only_once() -> None:
    members = parties(DATA, SPEC, JOB, ShakeNoise("oracle"))
    _, tasks = before(members, SPEC, SPEC.round_of(SealedStage.OPEN))
    indexes, found = read_key(members, SPEC, tasks["p0"], first=0)
    secret = members["p0"].keys.load(context_of(JOB, SPEC.parts[0], SEAL, 0))
    assert secret is not None
    # It does read what the bound says it may: that many coefficients and no more.
    assert len(indexes) * 4 < 100 < MAX_KEY_BITS
    known = np.zeros(DEGREE, np.int64)
    known[indexes] = found
    assert decrypts(members, known) < 0.05
    assert decrypts(members, secret.secret) > 0.99
    # The key is spent: another question to it is refused.
    with pytest.raises(Exception, match="another request"):
        read_key(members, SPEC, tasks["p0"], first=len(indexes))


def decrypts(members: dict[str, SealedParty], secret: IntArray) -> float:
    """Return the correlation of p0's first column with what ``secret`` decrypts."""
    (sealed,) = before_sealed(members, SPEC)
    payload = sealed.body[:-SIGNATURE_BYTES]
    layout = SPEC.layout(SEAL, SPEC.parts[0])
    bodies = unpack(payload[SEED_BYTES:], (1 + layout.chunks) * DEGREE).reshape(-1, DEGREE)
    context = context_of(JOB, SPEC.parts[0], SEAL, 0)
    a = scheme.expand(payload[:SEED_BYTES], context, 1)
    raw = add(bodies[1], times(RING, a[None, :], secret)[0])[: layout.length]
    low, _ = numbers(raw)
    task = before(members, SPEC, SPEC.round_of(SealedStage.SEAL))[1]["p0"]
    truth = members["p0"].rows.steps(SEAL, task.projection, members["p0"].ledger)
    truth = truth[0, : layout.length]
    return abs(float(np.corrcoef(low, truth)[0, 1]))


def test_without_the_rule_of_one_opening_the_same_replier_reads_the_whole_key() -> None:
    # Eight numbers at a time, with the noise left out so that it goes quickly: the oracle as such.
    key = SecretKey.draw(ShakeNoise("whole"))
    layout = Layout(2048, 8)
    weight = 1 << 40
    rows = np.zeros((64, layout.slots + DEGREE), np.int64)
    for poly, row in enumerate(rows):
        shift = -poly % (2 * DEGREE)
        row[layout.slots + shift % DEGREE] = weight if shift < DEGREE else MODULUS - weight
    raw = opened([key], layout, rows)[:, 0]
    read = np.rint(np.where(raw > MODULUS // 2, raw - MODULUS, raw) / weight).astype(int)
    assert np.array_equal(read, key.secret[:64])


# -- a hostile encryptor: chosen a, chosen public key ----------------------------------------------


def rows_in_c1(reply: IntArray, slots: int, scale: int) -> IntArray:
    """Read a column out of c1 = scale * reversed(y), as it is if a is a constant."""
    tail = reply[slots:]
    centred = np.where(tail > MODULUS // 2, tail - MODULUS, tail)
    poly = np.rint(centred / scale).astype(np.int64)
    return np.concatenate([poly[:1], -poly[:0:-1]])


def hostile_reply(rows: IntArray) -> tuple[IntArray, Layout]:
    """Return the reply to ciphertexts and a public key that are anything an encryptor can send."""
    layout = Layout(rows.shape[1], 1)
    bodies = np.zeros((1 + layout.chunks, DEGREE), np.int64)
    bodies[:, 0] = 1 << 40
    sealed = Ciphertexts(bytes(SEED_BYTES), KeyContext(JOB, "p0", "seal.0"), bodies)
    scale = RowScale(rows.shape[1], rows.shape[1], 1, BALL, 100)
    mechanism = Product(scale, scale, layout).reply(1 << 30)
    bare = multiplied(
        [sealed], layout, Multipliers(lambda: rows, RING), noise=ShakeNoise("hostile"), ring=RING
    )
    return mechanism.perturb(bare, ShakeNoise("noise")), layout


def test_no_row_shows_in_a_reply_whatever_the_encryptor_sends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(2).integers(-30, 31, (1, DEGREE))
    reply, layout = hostile_reply(rows)
    read = rows_in_c1(reply[0], layout.slots, 1 << 20)
    assert np.mean(read == rows[0]) < 0.01
    tail = reply[0, layout.slots :]
    counts, _ = np.histogram(tail, bins=16, range=(0, MODULUS))
    # 256 in each of 16 bins: chi-squared with 15 degrees of freedom exceeds 45 once in 10**4.
    assert float(((counts - 256) ** 2 / 256).sum()) < 45

    def chosen(seed: bytes, context: KeyContext, index: int) -> IntArray:
        return np.full(DEGREE, 1 if index == 0 else 1 << 20, np.uint64)  # values of a constant

    # Were ``a`` the encryptor's to choose, every row would be read, whatever the noise.
    monkeypatch.setattr(scheme, "expand", chosen)
    reply, layout = hostile_reply(rows)
    assert np.mean(rows_in_c1(reply[0], layout.slots, 1 << 20) == rows[0]) > 0.99


# -- wrapping before noise -------------------------------------------------------------------------


def shown(publish: object, pair: tuple[int, int]) -> float:
    """Return a lower bound on the rho of publishing either raw coefficient of ``pair``."""
    samples: list[FloatArray] = []
    for raw in pair:
        found = publish(np.full(20_000, raw, np.int64), ShakeNoise(f"wrap {raw}"))  # type: ignore[operator]
        samples.append(found.astype(float))
    # Beyond the edge a number is near the other end of the field: the farther raw one is lower.
    return rho_lower_bound(samples[1], samples[0])


def test_a_row_at_the_edge_of_a_field_moves_nothing_by_the_field() -> None:
    # A column whose scale was misdeclared: its sum lies at the edge of the low field, and one row
    # moves it by one deviation of noise, which costs rho 0.5.
    sigma = 1 << 14
    scale = RowScale(1000, 1000, 1, BALL, 100)
    mechanism = replace(
        Product(scale, scale, Layout(1000, 1)).opening(sigma**2),
        numbers=20_000,
        move2=sigma,
        radius2=sigma,
    )
    assert rho_from_units(mechanism.cost) == pytest.approx(0.5)
    edge = LOW_FIELD // 2
    pair = (LOW_STEP * (edge - sigma // 2), LOW_STEP * (edge + sigma // 2))

    def shipped(raw: IntArray, noise: NoiseSource) -> IntArray:
        return numbers(mechanism.perturb(raw, noise))[0]

    def wrapped_first(raw: IntArray, noise: NoiseSource) -> IntArray:
        return numbers(raw)[0] + noise.discrete_gaussian(sigma**2, raw.size)

    assert 0.2 < shown(shipped, pair) <= 0.5
    assert shown(wrapped_first, pair) > 2.0  # the whole field apart


def test_rounding_first_would_show_what_lies_below_a_step() -> None:
    # The party hands the gate raw coefficients, not numbers: an odd one stays odd.
    members = parties(DATA, SPEC, JOB, ErrorsOnly("raw"))
    _, tasks = before(members, SPEC, SPEC.round_of(SealedStage.OPEN))
    seen: list[IntArray] = []
    victim, gate = members["p0"], members["p0"].gate
    draw = gate._draw

    def spy(keys: object, values: list[IntArray], encode: object) -> object:
        seen.extend(values)
        return draw(keys, values, encode)  # type: ignore[arg-type]

    gate._draw = spy  # type: ignore[method-assign, assignment]
    victim.answer(tasks["p0"], request_of(tasks["p0"]))
    (raw,) = seen
    assert np.count_nonzero(raw % LOW_STEP) > 0.9 * raw.size
    assert int(raw.max()) > HIGH_STEP  # both numbers, not split


# -- what a peer can do that does not follow the protocol ------------------------------------------


def test_a_peer_that_weighs_one_row_reads_it_which_is_what_is_said() -> None:
    """Show why the promise names peers that follow the protocol."""
    layout, make = Layout(2000, 2), np.random.default_rng(4)
    rows = make.integers(-30, 31, (2, 2000))
    key, noise = SecretKey.draw(ShakeNoise("weigh")), ShakeNoise("e")
    context = KeyContext(JOB, "p0", "seal.0")
    (messages,) = layout.messages(rows)
    bare = scheme.uncovered(key, context, messages, first=0, ring=RING)
    sealed = [Ciphertexts(key.seed, context, bare)]
    victim, weight = 777, 500
    bad = np.zeros((1, 2000), np.int64)
    bad[0, victim] = weight
    replies = multiplied(sealed, layout, Multipliers(lambda: bad, RING), noise=noise, ring=RING)
    raw = opened([key], layout, replies)
    scale = RowScale(2000, 2000, 2, BALL, 60)
    mechanism = Product(scale, replace(scale, columns=1), layout).opening((1 << 12) ** 2)
    noisy = mechanism.perturb(raw.ravel(), noise).reshape(raw.shape)
    found = layout.products(noisy, 1)[0]
    # 30 steps times 500 is some four deviations of this noise.
    assert np.abs(found / weight - rows[:, victim]).max() < 5 * (1 << 12) / weight
