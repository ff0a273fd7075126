"""Dummy people, which make the counts that an alignment shows differentially private.

What the coordinator sees follows, up to pseudonyms, from how many people have each pattern of
presence: a set of parties that list them. So for every non-empty set its first member draws a
number of dummy ids and lets the other members know them, and all of them list these.

Privacy, against the coordinator alone, if all parties follow the protocol: whatever one person's
pattern is changed to, all counts together are ``(epsilon, delta)``-DP with ``epsilon = 2 / scale``.
Two counts move by one each. A count's noise is ``shift + X``, where ``X`` has the discrete Laplace
law of scale ``scale`` conditioned on ``|X| <= shift``. Where both neighbours have positive
probability their ratio is at most ``exp(1 / scale)`` for each of the two counts; the rest is one
end of each of two laws, ``delta = 2 P(X = shift)`` (the truncated Laplace mechanism: Geng, Ding,
Guo and Kumar 2020, here on integers and shifted).

Privacy, against any parties without the coordinator: they know the dummies of the sets that they
are in. Changing whether one other party ``j`` lists a person moves ``j``'s announced length by one
(noise of the dummies that ``j`` alone has, scale ``b``); given that, the number of rows by one
(phantoms, which the coordinator draws with scale ``2 b``) and the reported counts by three in L1
norm (discrete Laplace noise of scale ``6 b``). Together ``1/b + 1/(2 b) + 3/(6 b) = 2/b``: the same
epsilon, by basic composition (Dwork and Roth 2014, Theorem 3.16).

Neither holds against the coordinator together with a party: those learn who is on that party's
list and where, exactly. Modes other than ``union`` tell the parties which of their people stay.
"""

from dataclasses import dataclass

SEED_BYTES = 32


def first_member(pattern: int) -> int:
    """Return the lowest party of a set, written as one bit a party."""
    return (pattern & -pattern).bit_length() - 1


def patterns_led_by(party: int, n_parties: int) -> tuple[int, ...]:
    """Return the sets whose first member is ``party``, in order."""
    return tuple(p for p in range(1, 1 << n_parties) if first_member(p) == party)


@dataclass(frozen=True, slots=True, repr=False)
class PatternDummies:
    """The dummies of one set, as its members know them."""

    pattern: int
    seed: bytes
    count: int

    def ids(self) -> list[bytes]:
        """Return their ids: no real id has this form, for it begins with another byte."""
        return [b"\1" + self.seed + index.to_bytes(4, "big") for index in range(self.count)]
