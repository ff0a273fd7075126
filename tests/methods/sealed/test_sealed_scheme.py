"""Encryption of a sealed job: known answers, a second implementation, exact distributions."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.entropy import ShakeNoise
from support.sealed import ErrorsOnly, dot

from colonnade.core.arrays import IntArray
from colonnade.methods.sealed.charges import Product, ciphertext
from colonnade.methods.sealed.packing import LOW_STEP, Layout
from colonnade.methods.sealed.ring import DEGREE, MODULUS, add, times
from colonnade.methods.sealed.rows import RowScale
from colonnade.methods.sealed.scheme import (
    ERROR_SIGMA2,
    Ciphertexts,
    KeyContext,
    Multipliers,
    SecretKey,
    expand,
    multiplied,
    opened,
    uncovered,
)
from colonnade.privacy.sampling import NoiseSource
from colonnade.privacy.simulation import ZeroNoise

pytest.importorskip("seal")
from colonnade.methods.sealed.ring import seal_ring

RING = seal_ring()
CONTEXT = KeyContext("job", "hospital", "seal.0")
BALL = 1 << 14


def sealed(
    key: SecretKey, layout: Layout, rows: IntArray, noise: NoiseSource
) -> tuple[list[Ciphertexts], IntArray]:
    """Return ciphertexts as the gate makes them, and the raw messages."""
    (messages,) = layout.messages(rows)
    bare = uncovered(key, CONTEXT, messages, first=0, ring=RING)
    bodies = ciphertext(len(bare), key="k", peers=["p"]).perturb(bare, noise)
    return [Ciphertexts(key.seed, CONTEXT, bodies)], messages


def made_rows(layout: Layout, columns: int, seed: int) -> tuple[IntArray, IntArray]:
    make = np.random.default_rng(seed)
    return (
        make.integers(-30, 31, (layout.columns, layout.rows)),
        make.integers(-30, 31, (columns, layout.rows)),
    )


@pytest.mark.parametrize("layout", [Layout(3000, 5), Layout(3000, 1, lanes=3)], ids=repr)
def test_without_errors_opened_products_are_exact(layout: Layout) -> None:
    rows, others = made_rows(layout, 4, 1)
    key = SecretKey.draw(ShakeNoise("key"))
    bodies, _ = sealed(key, layout, rows, ZeroNoise())
    replies = multiplied(
        bodies, layout, Multipliers(lambda: others, RING), noise=ShakeNoise("masks"), ring=RING
    )
    raw = opened([key], layout, replies)
    assert np.array_equal(layout.products(raw, 4), others @ rows.T)


def test_with_errors_high_products_are_exact_and_low_ones_nearly() -> None:
    layout = Layout(3000, 6)
    rows, others = made_rows(layout, 4, 2)
    noise = ErrorsOnly("all")
    key = SecretKey.draw(noise)
    bodies, _ = sealed(key, layout, rows, noise)
    bare = multiplied(bodies, layout, Multipliers(lambda: others, RING), noise=noise, ring=RING)
    scale = RowScale(3000, 3000, 6, BALL, 100)
    mechanism = Product(scale, RowScale(3000, 3000, 4, BALL, 100), layout).reply(1 << 30)
    raw = opened([key], layout, mechanism.perturb(bare, noise))
    found, exact = layout.products(raw, 4), others @ rows.T
    assert np.array_equal(found[:, 1::2], exact[:, 1::2])
    # Raw errors: 3000 rows of deviation 17.6 times errors of 6.4, and two products of polynomials
    # of 4096 coefficients with deviations of 6.4.
    deviation = math.sqrt(3000 * 310 * 41 + 2 * 4096 * 41 * 41) / LOW_STEP
    off = (found - exact)[:, 0::2]
    assert np.abs(off).max() < 5 * deviation  # of 12: 1 in 10**5
    assert off.std() > deviation / 3  # there are errors at all


def test_a_second_implementation_decrypts_the_same(tmp_path: Path) -> None:
    sealapi = pytest.importorskip("tenseal.sealapi")
    layout = Layout(2000, 4)
    rows, others = made_rows(layout, 2, 3)
    noise = ErrorsOnly("tenseal")
    key = SecretKey.draw(noise)
    bodies, messages = sealed(key, layout, rows, noise)
    replies = multiplied(bodies, layout, Multipliers(lambda: others, RING), noise=noise, ring=RING)
    oracle = Oracle(sealapi, tmp_path, key)
    for index in (0, 1, layout.chunks):  # the public key, the first rows and the last
        (a,) = RING.inverse(expand(key.seed, CONTEXT, index)[None, :])
        found = oracle.decrypt(bodies[0].bodies[index], a)
        # It rounds to multiples of q / t, 32 up to 1 in 10**11: at 2**35 (a high number of 30) off
        # by less than 1; an error of 6.4 reaches half of 32 in 1 of 80 coefficients.
        expected = Oracle.rounded(messages[index])
        assert np.abs(found - expected).max() <= 1
        assert np.mean(found != expected) < 0.03
    padded = np.zeros((len(replies), DEGREE), np.int64)
    padded[:, layout.wanted] = replies[:, : layout.slots]
    raw = opened([key], layout, replies)
    for reply, whole, mine in zip(replies, padded, raw, strict=True):
        found = oracle.decrypt(whole, reply[layout.slots :])[layout.wanted]
        assert np.abs(found - Oracle.rounded(mine)).max() <= 1


class Oracle:
    """Decrypts with TenSEAL's copy of SEAL; only the secret polynomial is ours."""

    def __init__(self, sealapi: Any, folder: Path, key: SecretKey) -> None:
        self.api, self.folder = sealapi, folder
        api = sealapi
        parameters = api.EncryptionParameters(api.SCHEME_TYPE.BFV)
        parameters.set_poly_modulus_degree(DEGREE)
        parameters.set_coeff_modulus(api.CoeffModulus.Create(DEGREE, [54]))
        parameters.set_plain_modulus(1 << 49)
        self.context = api.SEALContext(
            parameters,
            True,
            api.SEC_LEVEL_TYPE.TC128,
        )
        one = np.zeros(DEGREE, np.int64)
        one[0] = 1
        form = self._pair(one, one).parms_id()
        words = np.where(key.secret < 0, key.secret + (1 << 49), key.secret).astype("<u8")
        head = pytest.importorskip("seal").Plaintext(DEGREE).to_bytes()[: -8 * DEGREE]
        plain = self._load(api.Plaintext(), head + words.tobytes())
        api.Evaluator(self.context).transform_to_ntt_inplace(plain, form)
        plain.save(str(folder / "secret"))
        secret = api.SecretKey()
        secret.load(self.context, str(folder / "secret"))
        self.decryptor = api.Decryptor(self.context, secret)

    @staticmethod
    def rounded(raw: IntArray) -> IntArray:
        """Return raw coefficients in the oracle's plaintext steps, signed."""
        centred = np.where(raw > MODULUS // 2, raw - MODULUS, raw).astype(object)
        return np.array([(2 * v * (1 << 49) + MODULUS) // (2 * MODULUS) for v in centred], np.int64)

    def decrypt(self, c0: IntArray, c1: IntArray) -> IntArray:
        out = self.api.Plaintext()
        self.decryptor.decrypt(self._pair(c0, c1), out)
        found = np.zeros(DEGREE, np.int64)
        found[: out.coeff_count()] = [out[i] for i in range(out.coeff_count())]
        return np.where(found >= 1 << 48, found - (1 << 49), found)

    def _pair(self, one: IntArray, two: IntArray) -> Any:
        words = one.astype("<u8").tobytes() + two.astype("<u8").tobytes()
        return self._load(self.api.Ciphertext(), RING._plain_head + words)

    def _load(self, into: Any, body: bytes) -> Any:
        # The two libraries differ in the version that their headers say.
        path = self.folder / "body"
        path.write_bytes(body.replace(b"\x5e\xa1\x10\x04\x04", b"\x5e\xa1\x10\x04\x03"))
        into.load(self.context, str(path))
        return into


def test_what_is_expanded_is_uniform_below_the_modulus_and_bound_to_its_use() -> None:
    a = expand(bytes(32), CONTEXT, 0)
    assert int(a.min()) >= 0
    assert int(a.max()) < MODULUS
    # The mean of 4096 uniform numbers errs by q / sqrt(12 * 4096); five deviations are 2.3 %.
    assert float(a.mean()) == pytest.approx(MODULUS / 2, rel=0.023)
    others = [
        expand(bytes(32), CONTEXT, 1),
        expand(b"\x01" + bytes(31), CONTEXT, 0),
        expand(bytes(32), KeyContext("other", "hospital", "seal.0"), 0),
        expand(bytes(32), KeyContext("job", "insurer", "seal.0"), 0),
        expand(bytes(32), KeyContext("job", "hospital", "label.0"), 0),
        expand(bytes(32), KeyContext("jobh", "ospital", "seal.0"), 0),
    ]
    assert all(not np.array_equal(a, other) for other in others)
    assert np.array_equal(a, expand(bytes(32), CONTEXT, 0))


def test_rejected_words_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    # At the real modulus a word is rejected once in 10**11 times; here half of them are.
    from colonnade.methods.sealed import scheme

    monkeypatch.setattr(scheme, "MODULUS", 1 << 53)
    a = scheme.expand(bytes(32), CONTEXT, 0)
    assert a.size == DEGREE
    assert int(a.max()) < 1 << 53


class Recording(ShakeNoise):
    """Notes what is drawn."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.drawn: list[tuple[int, int]] = []

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        self.drawn.append((sigma2, size))
        return super().discrete_gaussian(sigma2, size)


def test_secrets_errors_and_masks_are_discrete_gaussians_of_the_stated_variance() -> None:
    noise, layout = Recording("r"), Layout(500, 2)
    rows, others = made_rows(layout, 3, 4)
    key = SecretKey.draw(noise)
    bodies, messages = sealed(key, layout, rows, noise)
    assert noise.drawn == [(ERROR_SIGMA2, DEGREE), (ERROR_SIGMA2, 2 * DEGREE)]
    noise.drawn.clear()
    multiplied(bodies, layout, Multipliers(lambda: others, RING), noise=noise, ring=RING)
    assert noise.drawn == [(ERROR_SIGMA2, 3 * DEGREE)]  # one for each reply
    # What they come to in the ciphertexts: c0 + a s - m is the error.
    for index, body in enumerate(bodies[0].bodies):
        (product,) = times(RING, expand(key.seed, CONTEXT, index)[None, :], key.secret)
        error = add(body, product) - messages[index]
        error = np.where(error > MODULUS // 2, error - MODULUS, error)
        error = np.where(error < -(MODULUS // 2), error + MODULUS, error)
        # A variance of 4096 samples errs by sqrt(2 / 4096) of itself; five deviations are 11 %.
        assert float(error.var()) == pytest.approx(ERROR_SIGMA2, rel=0.11)
    assert float(key.secret.var()) == pytest.approx(ERROR_SIGMA2, rel=0.11)


def test_every_reply_has_a_fresh_encryption_of_zero() -> None:
    layout = Layout(500, 2)
    rows, others = made_rows(layout, 1, 5)
    noise = ShakeNoise("fresh")
    key = SecretKey.draw(noise)
    bodies, _ = sealed(key, layout, rows, noise)
    (smalls,) = layout.multipliers(others)
    tables = [
        (body, RING.inverse(expand(key.seed, CONTEXT, index)[None, :])[0])
        for index, body in enumerate(bodies[0].bodies)
    ]
    _, plain = dot(tables[1:], list(smalls))
    twice = [
        multiplied(bodies, layout, Multipliers(lambda: others, RING), noise=noise, ring=RING)
        for _ in range(2)
    ]
    tails = [reply[0, layout.slots :] for reply in twice]
    assert not np.array_equal(tails[0], tails[1])
    for tail in tails:  # all coefficients are masked, not some
        assert np.count_nonzero(tail == plain) < 5
    same = np.concatenate([others, others])
    both = multiplied(bodies, layout, Multipliers(lambda: same, RING), noise=noise, ring=RING)
    assert not np.array_equal(both[0], both[1])  # nor is a mask shared between columns


def test_only_wanted_coefficients_of_the_first_part_leave() -> None:
    layout = Layout(500, 3)
    rows, others = made_rows(layout, 2, 6)
    key = SecretKey.draw(ShakeNoise("k"))
    bodies, _ = sealed(key, layout, rows, ShakeNoise("e"))
    reply = multiplied(
        bodies, layout, Multipliers(lambda: others, RING), noise=ShakeNoise("m"), ring=RING
    )
    assert reply.shape == (2, 2 + DEGREE)


def test_a_key_shows_nothing_of_itself() -> None:
    key = SecretKey.draw(ShakeNoise("k"))
    assert str(key) == repr(key) == "SecretKey(...)"
    assert len(key.name(CONTEXT)) == 64
    assert key.name(CONTEXT) != key.name(KeyContext("job", "hospital", "seal.1"))
