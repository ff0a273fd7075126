"""Secure sums over a cohort: the rules, each against what happens without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from support.entropy import shake

from colonnade.core.arrays import IntArray
from colonnade.core.errors import RequestConflict
from colonnade.ledger.create import LedgerConfig, create_ledger, memory_ledger, open_ledger
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger, Released
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.masking.cohort import Attempt, Survivors, bind, unmask
from colonnade.masking.errors import BadAnnouncement, BadPart
from colonnade.masking.kinds import KEY, OPENED, SHARES, SURVIVORS
from colonnade.masking.masks import expand, words_from_bytes
from colonnade.masking.rules import CohortRules
from colonnade.masking.schedule import Announcement, Peer, Protocol, Run, RunSecrets, announce
from colonnade.masking.shamir import PRIME, combine, split
from colonnade.party.methods.cohort_sum import MASKED, SHARED, CohortMember
from colonnade.privacy.accounting import MAX_UNITS, RHO_UNIT, units_down
from colonnade.privacy.distributed import GaussianShare
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.sampling import NoiseSource
from colonnade.privacy.simulation import SeededNoise, ZeroNoise

JOB, DIM, RADIUS = "job", 6, 2**20
RULES = CohortRules(maskers=10, colluding=2)
WHOLE = DiscreteGaussian.within(units_down(0.1), l2_sensitivity2=4 * RADIUS**2)
SHARE = GaussianShare.of(WHOLE, RULES.honest, DIM)
ACCOUNTS = ("a", "b")


def at(number: int) -> Attempt:
    """Return the first attempt at a round."""
    return Attempt(number, number)


@dataclass
class Cohort:
    """Ten maskers with two clients each, and a coordinator that passes messages on."""

    noise: NoiseSource | None = None
    first: Ledger | None = None  # of the masker at place 0, if not one in memory
    quiet: Sequence[int] = ()  # maskers that leave out their part of the noise
    ledgers: list[Ledger] = field(default_factory=list)
    members: list[CohortMember] = field(default_factory=list)

    def __post_init__(self) -> None:
        for place in range(RULES.maskers):
            config = LedgerConfig(f"p{place}", {"": MAX_UNITS}, simulation=True)
            given = self.first if place == 0 else None
            self.ledgers.append(memory_ledger(config) if given is None else given)
            self.ledgers[-1].admit_many(JOB, ACCOUNTS, units=100 * SHARE.cost)
        keys = [bytes.fromhex(ledger.opened.public_key) for ledger in self.ledgers]
        peers = tuple(Peer(f"p{place}", key) for place, key in enumerate(keys))
        run = Run(Protocol.COHORT, b"request", bytes(32), bytes(32), peers, 1)
        for place, ledger in enumerate(self.ledgers):
            noise = ZeroNoise() if place in self.quiet else SeededNoise(place)
            gate = Gate(ledger, self.noise or noise)
            self.members.append(CohortMember(RULES, run, place, JOB, bytes(32), gate, ledger, "a"))

    def exact(self, place: int, accounts: Sequence[str] = ACCOUNTS) -> IntArray:
        draw = np.random.default_rng(place)
        rows = draw.integers(-RADIUS, RADIUS, (2, DIM))
        chosen: IntArray = rows[[ACCOUNTS.index(account) for account in accounts]].sum(axis=0)
        return chosen

    def announced(self, round_: int, there: Sequence[int]) -> dict[int, Announcement]:
        return {place: self.members[place].announce(at(round_)) for place in there}

    def sealed(
        self, round_: int, announced: Mapping[int, Announcement], there: Sequence[int]
    ) -> dict[int, dict[int, bytes]]:
        """Return by receiver what those who are there sent it."""
        sent = {place: self.members[place].share(at(round_), announced) for place in there}
        return {
            receiver: {s: bodies[receiver] for s, bodies in sent.items() if s != receiver}
            for receiver in announced
        }

    def masked(
        self,
        round_: int,
        announced: Mapping[int, Announcement],
        sealed: Mapping[int, Mapping[int, bytes]],
        there: Sequence[int],
    ) -> dict[int, bytes]:
        bodies = {}
        for place in there:

            def compute(accounts: Sequence[str], place: int = place) -> IntArray:
                return self.exact(place, accounts)

            first, _ = self.members[place].mask(
                at(round_), announced, sealed[place], ACCOUNTS, SHARE, compute, request=b"ask"
            )
            assert isinstance(first, Released)
            bodies[place] = first.body
        return bodies


@dataclass
class Round:
    """A round up to the confirmations."""

    cohort: Cohort
    number: int
    announced: dict[int, Announcement]
    sealed: dict[int, dict[int, bytes]]
    shared: list[int]
    masked: dict[int, bytes]

    @classmethod
    def run(
        cls,
        cohort: Cohort,
        number: int = 1,
        *,
        announce: Sequence[int] = range(10),
        share: Sequence[int] = range(10),
        mask: Sequence[int] = range(10),
    ) -> "Round":
        announced = cohort.announced(number, announce)
        sealed = cohort.sealed(number, announced, share)
        masked = cohort.masked(number, announced, sealed, mask)
        return cls(cohort, number, announced, sealed, list(share), masked)

    def confirm(self, place: int, survivors: Sequence[int]) -> bytes:
        member = self.cohort.members[place]
        return member.confirm(at(self.number), self.announced, self.shared, survivors)

    def open(
        self, place: int, survivors: Sequence[int], signatures: Mapping[int, bytes]
    ) -> dict[int, bytes]:
        return self.cohort.members[place].open(
            at(self.number), self.announced, self.sealed[place], survivors, signatures
        )

    def total(self, opening: Sequence[int] | None = None) -> IntArray:
        survivors = sorted(self.masked)
        signatures = {place: self.confirm(place, survivors) for place in survivors}
        shares = {place: self.open(place, survivors, signatures) for place in opening or survivors}
        run = self.cohort.members[0].run
        sets = Survivors.of(RULES, self.digest(), self.shared, survivors)
        parts = {place: words_from_bytes(body) for place, body in self.masked.items()}
        return unmask(RULES, run, sets, self.announced, parts, shares).view(np.int64)

    def digest(self) -> bytes:
        place = min(self.announced)
        schedule = self.cohort.members[place]._schedule(at(self.number), self.announced)
        return bind(schedule, sorted(self.shared)).digest


def sum_of(cohort: Cohort, places: Sequence[int]) -> IntArray:
    total: IntArray = np.sum([cohort.exact(place) for place in places], axis=0)
    return total


# -- what it is for ------------------------------------------------------------------------------


def test_the_sum_is_exact_and_a_part_alone_says_nothing() -> None:
    cohort = Cohort(ZeroNoise())
    made = Round.run(cohort)
    assert np.array_equal(made.total(), sum_of(cohort, range(10)))
    for body in made.masked.values():
        # Uniform words of 64 bits: one of 60 is below 2**40 once in a quarter of a million runs.
        assert min(abs(words_from_bytes(body).view(np.int64)).tolist()) > 2**40


@pytest.mark.parametrize(
    ("announce", "share", "mask", "opening"),
    [
        (range(10), range(10), range(9), range(9)),  # a tenth is gone after it shared
        (range(9), range(9), range(9), range(9)),  # a tenth was never there
        (range(10), range(9), range(8), range(1, 8)),  # one at each stage; t = 7 open
        (range(10), range(10), (9, 7, 5, 3, 1, 0, 2), (9, 7, 5, 3, 1, 0, 2)),
    ],
)
def test_whoever_is_left_sums_without_those_who_dropped_out(
    announce: Sequence[int], share: Sequence[int], mask: Sequence[int], opening: Sequence[int]
) -> None:
    cohort = Cohort(ZeroNoise())
    made = Round.run(cohort, announce=announce, share=share, mask=mask)
    assert np.array_equal(made.total(opening), sum_of(cohort, mask))


# -- rule 1: one survivor set, one kind of share -------------------------------------------------


def test_the_threshold_leaves_no_room_for_two_survivor_sets() -> None:
    for maskers in range(4, 40):
        for colluding in range(maskers):
            try:
                rules = CohortRules(maskers, colluding)
            except ValueError:
                continue
            assert rules.threshold - colluding >= 3
            # Honest maskers confirm once: two sets would need this many of them.
            assert 2 * (rules.threshold - colluding) > maskers - colluding
    assert (RULES.threshold, RULES.honest) == (7, 5)
    with pytest.raises(ValueError, match="too few"):
        CohortRules(4, 2)


def test_a_masker_confirms_one_survivor_set_a_round() -> None:
    made = Round.run(Cohort())
    first = made.confirm(0, range(9))
    assert made.confirm(0, range(9)) == first  # a retry
    with pytest.raises(RequestConflict):
        made.confirm(0, range(8))
    with pytest.raises(BadPart):
        made.confirm(9, range(9))  # it masked, and is not to be told that it did not


def test_a_coordinator_that_names_different_drop_outs_opens_nothing() -> None:
    made = Round.run(Cohort())
    one, other = [*range(9)], [*range(1, 10)]
    half = {place: made.confirm(place, one) for place in range(5)}
    rest = {place: made.confirm(place, other) for place in range(5, 10)}
    for place, sets in ((0, one), (7, other)):
        with pytest.raises(BadPart):
            made.open(place, sets, {**half, **rest})
    # Nor does a masker open what it did not confirm itself, whoever else did.
    with pytest.raises(BadPart):
        made.open(0, other, {**half, **rest})


def test_a_masker_opens_only_what_it_confirmed_itself() -> None:
    made = Round.run(Cohort())
    made.confirm(0, range(9))
    others = {place: made.confirm(place, range(10)) for place in range(1, 10)}
    with pytest.raises(BadPart):
        made.open(0, range(10), others)  # nine agree, and it was told something else
    assert made.open(1, range(10), others)


def test_a_masker_that_was_told_of_other_peers_confirms_nothing() -> None:
    cohort = Cohort()
    announced = cohort.announced(1, range(10))
    sealed = cohort.sealed(1, announced, range(10))
    few = {place: {s: b for s, b in sealed[place].items() if s != 9} for place in range(10)}
    cohort.masked(1, announced, few, [0])  # masks without the tenth
    with pytest.raises(BadPart):
        cohort.members[0].confirm(at(1), announced, range(10), range(10))


def test_of_each_peer_one_kind_of_share_is_given_once() -> None:
    cohort = Cohort()
    made = Round.run(cohort)
    signatures = {place: made.confirm(place, range(9)) for place in range(9)}
    first = made.open(0, range(9), signatures)
    assert made.open(0, range(9), signatures) == first
    with pytest.raises(BadPart):  # the ninth's self-mask, after its key
        made.open(0, range(10), signatures)
    with pytest.raises(BadPart):  # confirmations that do not verify
        made.open(1, range(9), dict.fromkeys(range(9), bytes(64)))


def test_the_key_of_a_masker_said_to_be_gone_opens_no_seals() -> None:
    # Its masked vector came, late or kept back; its key is opened, and the coordinator has passed
    # on all sealed shares. With a key that masks and seals it would read the shares of the
    # self-mask, take off all masks, and be left with one masker's sum under its part of the noise.
    cohort = Cohort(ZeroNoise())
    made, gone, rest = Round.run(cohort), 9, range(9)
    signatures = {place: made.confirm(place, rest) for place in rest}
    opened = {place: made.open(place, rest, signatures)[gone] for place in rest}
    private = combine(opened, RULES.threshold)
    stolen = replace(cohort.members[gone]._schedule(at(1), made.announced), private=private)
    assert stolen.mask_key(0)  # what the key is opened for
    seals = cohort.members[gone]._seals(at(1), made.announced)
    for place in rest:
        for keys in (stolen.public_keys, seals.public_keys):
            for sender, receiver, body in (
                (gone, place, made.sealed[place][gone]),
                (place, gone, made.sealed[gone][place]),
            ):
                key = replace(stolen, public_keys=keys).seal_key(sender, receiver)
                with pytest.raises(InvalidTag):
                    ChaCha20Poly1305(key).decrypt(bytes(12), body, None)


def test_a_second_deal_of_one_rounds_key_is_refused() -> None:
    cohort = Cohort()
    announced = cohort.announced(1, range(10))
    cohort.members[0].share(at(1), announced)
    fewer = {place: announced[place] for place in range(9)}
    with pytest.raises(RequestConflict):
        cohort.members[0].share(at(1), fewer)


def test_an_attempt_masks_one_sum_of_one_set_of_clients() -> None:
    # Two would have the same masks, and subtract to two clients under two parts of the noise.
    cohort = Cohort()
    announced = cohort.announced(1, range(10))
    sealed = cohort.sealed(1, announced, range(10))

    def ask(accounts: Sequence[str], kind: str = MASKED) -> list[object]:
        return [
            *cohort.members[0].mask(
                at(1),
                announced,
                sealed[0],
                accounts,
                SHARE,
                lambda paid: cohort.exact(0, paid),
                request=b"ask",
                kind=kind,
            )
        ]

    assert isinstance(ask(["a"])[0], Released)
    for accounts, kind in ((["b"], MASKED), (["a"], "other"), (["a", "b"], MASKED)):
        with pytest.raises(RequestConflict):
            ask(accounts, kind)
    assert cohort.ledgers[0].budget("b").spent == 0
    assert cohort.ledgers[0].budget("a").spent == SHARE.cost


# -- rules 2, 3 and 5: new masks and noise, enough of it, and its price --------------------------


def test_a_repeated_round_has_new_masks_and_noise_and_is_charged_anew() -> None:
    cohort = Cohort()
    first, second = Round.run(cohort, 1), Round.run(cohort, 2)
    assert all(first.masked[place] != second.masked[place] for place in range(10))
    assert first.digest() != second.digest()
    assert not np.array_equal(first.total(), second.total())
    for ledger in cohort.ledgers:
        assert {ledger.budget(account).spent for account in ACCOUNTS} == {2 * SHARE.cost}


def test_clients_pay_when_the_masked_vector_leaves_whether_it_opens_or_not() -> None:
    cohort = Cohort()
    announced = cohort.announced(1, range(10))
    sealed = cohort.sealed(1, announced, range(10))
    ledger = cohort.ledgers[0]
    assert ledger.state.total == 0
    bodies = cohort.masked(1, announced, sealed, [0])
    spent = [ledger.budget(account).spent for account in ACCOUNTS]
    assert spent == [SHARE.cost] * 2
    assert cohort.masked(1, announced, sealed, [0]) == bodies  # a retry replays
    assert [ledger.budget(account).spent for account in ACCOUNTS] == spent
    assert SHARE.cost == pytest.approx(WHOLE.cost, rel=1e-9)
    assert SHARE.cost_alone > 4 * SHARE.cost  # printed as: if all others collude


@pytest.mark.slow
def test_any_honest_survivors_bring_the_noise_that_is_promised() -> None:
    cohort, gaps = Cohort(), []
    for number in range(1, 13):
        made = Round.run(cohort, number, mask=range(7))
        gaps.append(made.total() - sum_of(cohort, range(7)))
    # Seven parts of a fifth of the variance: 72 draws whose mean square over the promised variance
    # is 1.4, with a deviation of 1.4 sqrt(2 / 72) = 0.23. Half the noise would give 0.35; without
    # the two that may collude 1 is left.
    ratio = float(np.mean(np.stack(gaps).astype(float) ** 2)) / WHOLE.sigma2
    assert 0.7 < ratio < 2.1


@pytest.mark.slow
@pytest.mark.parametrize(("quiet", "least", "most"), [(2, 0.45, 1.9), (6, 0.0, 0.4)])
def test_the_noise_is_what_is_promised_if_those_who_may_collude_add_none(
    quiet: int, least: float, most: float
) -> None:
    # Three of ten are gone and some of the seven survivors add no noise. Without the two that may
    # collude five fifths of the promised variance are left: 72 draws whose mean square over it is
    # 1, with a deviation of sqrt(2 / 72) = 0.17. Half the noise would give 0.25 (0.04). Without six
    # of them one fifth is left (0.03), which is what is printed as `cost_alone`.
    cohort, gaps = Cohort(quiet=range(quiet)), []
    for number in range(1, 13):
        made = Round.run(cohort, number, mask=range(7))
        gaps.append(made.total() - sum_of(cohort, range(7)))
    ratio = float(np.mean(np.stack(gaps).astype(float) ** 2)) / WHOLE.sigma2
    assert least < ratio < most
    assert SHARE.cost_alone == pytest.approx(5 * SHARE.cost, rel=1e-6)


def test_parts_divide_the_whole_variance_and_their_price_has_tau() -> None:
    whole = DiscreteGaussian(1000, 4)
    assert GaussianShare.of(whole, 3, DIM).sigma2 == 334  # rounded up: never less than promised
    # Nominal rho is exactly 1; tau is charged, though it is below one unit.
    assert GaussianShare(16, 3, 96, 1).cost == RHO_UNIT + 1


def test_below_the_threshold_nothing_opens() -> None:
    cohort = Cohort()
    announced = cohort.announced(1, range(10))
    with pytest.raises(BadPart):
        cohort.members[0].share(at(1), {place: announced[place] for place in range(6)})
    made = Round.run(cohort, 2, mask=range(6))
    with pytest.raises(BadPart):
        made.confirm(0, range(6))
    enough = Round.run(cohort, 3)
    with pytest.raises(BadPart, match="shares"):
        enough.total(opening=range(6))


def test_noise_that_is_divided_otherwise_is_refused() -> None:
    cohort = Cohort()
    announced = cohort.announced(1, range(10))
    sealed = cohort.sealed(1, announced, range(10))
    other = replace(SHARE, parts=RULES.maskers)
    with pytest.raises(ValueError, match="divided"):
        cohort.members[0].mask(
            at(1),
            announced,
            sealed[0],
            ACCOUNTS,
            other,
            lambda _: np.zeros(DIM, np.int64),
            request=b"ask",
        )
    assert cohort.ledgers[0].state.total == 0


# -- rules 4 and 6: no noise in state, and a pinned roster ---------------------------------------


def test_what_a_masker_does_later_does_not_depend_on_noise_that_it_drew() -> None:
    cohort = Cohort()

    def later() -> list[bytes]:
        secrets = [
            member._secrets(at(2)).private + member._own_seed(at(2)) for member in cohort.members
        ]
        return secrets + [cohort.exact(place).tobytes() for place in range(10)]

    before = later()
    Round.run(cohort, 1).total()
    assert later() == before
    # What is stored of a round is the masked vector and messages that follow from keys and sets.
    kinds = {key.kind for key in cohort.ledgers[0].state.stored}
    assert kinds == {KEY, SHARES, SHARED, MASKED, SURVIVORS, OPENED}
    free = [key for key in cohort.ledgers[0].state.stored if key.kind != MASKED]
    assert {cohort.ledgers[0].state.charges[key].units for key in free} == {0}


def test_a_key_that_the_roster_does_not_pin_is_refused() -> None:
    cohort, stranger = Cohort(), Cohort()
    announced = cohort.announced(1, range(10))
    announced[3] = stranger.announced(1, [3])[3]
    with pytest.raises(BadAnnouncement):
        cohort.members[0].share(at(1), announced)
    announced = cohort.announced(2, range(10))
    announced[3] = announced[4]
    with pytest.raises(BadAnnouncement):
        cohort.members[0].share(at(2), announced)


def test_a_masker_refuses_another_key_under_its_own_name() -> None:
    cohort = Cohort()
    announced, run = cohort.announced(1, range(10)), cohort.members[0].run
    other = RunSecrets.draw(shake("another draw"))  # rightly signed: by a copy of this party, say
    mine = announce(
        run, 0, other, table=bytes(32), signer=cohort.ledgers[0], named=at(1).named(run)
    )
    for shown in (announced | {0: mine}, {p: each for p, each in announced.items() if p != 0}):
        with pytest.raises(BadAnnouncement):
            cohort.members[0].share(at(1), shown)
    assert not cohort.ledgers[0].has(ReleaseKey(JOB, 1, SHARES, "a"))


@pytest.mark.parametrize("now", [Attempt(2, 2), Attempt(1, 2), Attempt(2, 1)])
def test_an_announcement_serves_one_attempt_at_one_round(now: Attempt) -> None:
    cohort = Cohort()
    old = cohort.announced(1, [3])
    announced = {place: cohort.members[place].announce(now) for place in range(10) if place != 3}
    with pytest.raises(BadAnnouncement):
        cohort.members[0].share(now, {**announced, 3: old[3]})


def test_maskers_shown_different_sets_of_sharers_have_masks_that_do_not_cancel() -> None:
    cohort = Cohort(ZeroNoise())
    announced = cohort.announced(1, range(10))
    sealed = cohort.sealed(1, announced, range(10))
    few = {place: {s: b for s, b in sealed[place].items() if s != 9} for place in range(9)}
    parts = cohort.masked(1, announced, sealed, range(5)) | cohort.masked(
        1, announced, few, range(5, 9)
    )
    # All secrets in hand, as if everything were opened: self-masks off, and the masks with those
    # who masked nothing. Were masks not bound to the set, the sum of the nine would be left.
    total = np.zeros(DIM, np.uint64)
    for place, body in parts.items():
        member = cohort.members[place]
        total += words_from_bytes(body) - expand(member._own_seed(at(1)), DIM)
        schedule = bind(member._schedule(at(1), announced), range(10))
        if place < 5:  # was told that the tenth shared
            total -= expand(schedule.mask_key(9), DIM)
    left = total.view(np.int64) - sum_of(cohort, range(9))
    assert min(abs(left).tolist()) > 2**40  # uniform words: see above


def test_shares_of_another_round_do_not_open() -> None:
    cohort = Cohort()
    first, second = cohort.announced(1, range(10)), cohort.announced(2, range(10))
    sealed = cohort.sealed(1, first, range(10))
    cohort.sealed(2, second, range(10))
    with pytest.raises(BadPart):
        cohort.masked(2, second, sealed, [0])


def test_a_recovered_ledger_masks_nothing_under_keys_of_the_lost_one(tmp_path: Path) -> None:
    # A backup from before the job knows neither the job nor what was masked. Its key is the same,
    # so that peers still know the party, and the coordinator has all messages of the attempt: under
    # the same masks a second sum, of other clients, would bare the difference of the two.
    folder = LedgerFiles(tmp_path / "ledger")
    create_ledger(folder, LedgerConfig("p0", {"": MAX_UNITS}, simulation=True))
    before = folder.database.read_bytes(), folder.log.read_bytes()
    cohort = Cohort(ZeroNoise(), first=open_ledger(folder))
    made, old = Round.run(cohort), cohort.members[0]
    cohort.ledgers[0].close()
    folder.database.write_bytes(before[0])
    folder.log.write_bytes(before[1])
    recover_ledger(folder, LedgerFiles(tmp_path / "new"))
    ledger = open_ledger(LedgerFiles(tmp_path / "new"))
    ledger.admit_many(JOB, ACCOUNTS, units=100 * SHARE.cost)
    new = replace(old, ledger=ledger, gate=Gate(ledger, ZeroNoise()))
    assert new.announce(at(1)) != made.announced[0]
    with pytest.raises(BadAnnouncement):  # all that the coordinator has of the attempt
        new.mask(
            at(1),
            made.announced,
            made.sealed[0],
            ["a"],
            SHARE,
            lambda paid: cohort.exact(0, paid),
            request=b"ask",
        )
    assert not ledger.state.charges.keys() & {ReleaseKey(JOB, 1, MASKED, "a")}
    ledger.close()


# -- secret shares -------------------------------------------------------------------------------


def test_any_threshold_of_shares_gives_the_secret_back_and_fewer_give_another() -> None:
    secret = bytes(range(32))
    shares = split(secret, 4, range(9), b"entropy")
    for chosen in ((0, 1, 2, 3), (8, 5, 2, 0), tuple(range(9))):
        assert combine({place: shares[place] for place in chosen}, 4) == secret
    three = {place: shares[place] for place in (0, 1, 2)}
    with pytest.raises(ValueError, match="few"):
        combine(three, 4)
    # With any other fourth share three of them fit any other secret.
    assert combine({**three, 3: bytes(33)}, 4) != secret
    assert pow(3, PRIME - 1, PRIME) == pow(5, PRIME - 1, PRIME) == 1  # Fermat: it is a prime
