"""The frozen specification of an alignment, and what follows from it.

Its name is the SHA-256 of its bytes, which every signature and every hash of an id covers, so that
nothing of one run has a meaning in another.
"""

import enum
from dataclasses import dataclass
from typing import ClassVar

from colonnade.methods.alignment.normalise import IdRule
from colonnade.privacy.membership import MembershipNoise

MAX_PARTIES = 12  # there are 2**K - 1 patterns of presence, each with dummies
MAX_NAME = 64
SALT_BYTES = KEY_BYTES = RUN_BYTES = 32
CANARIES = 64  # of each pair of parties
NO_ROW = 2**32 - 1
MAX_ROWS = NO_ROW - 1
MAX_RUNS = 1000
# The chunks that a party returns in a round must fit one body, and a task one message.
MAX_BODY_BYTES = 3 << 20
_MAX_CHUNK = 1 << 16
# Every chunk is a round, and every round some entries of each party's ledger, for good.
MAX_CHUNKS = 10_000


class Mode(enum.Enum):
    """Which people get a row that jobs use."""

    UNION = "union"
    LEFT = "left"
    INNER = "inner"


@dataclass(frozen=True, slots=True)
class AlignmentPart:
    """One party's place: its name, the key that signs its messages, the most people it may list."""

    party: str
    public_key: bytes
    max_people: int
    features: ClassVar[tuple[str, ...]] = ()  # an alignment has no columns
    holds_label: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.party) <= MAX_NAME or not self.party.isprintable():
            raise ValueError(f"a party's name has 1 to {MAX_NAME} printable characters")
        if len(self.public_key) != KEY_BYTES:
            raise ValueError("a party's signing key has 32 bytes")
        if not 1 <= self.max_people <= MAX_ROWS:
            raise ValueError("a party lists at least one person and at most 2**32 - 2")


@dataclass(frozen=True, slots=True)
class Extension:
    """The earlier alignment whose rows stay where they are.

    A party lists new people only if they are ``min_new`` or more, and drops people who have left
    only if these are: fewer would single them out.
    Dummies and canaries of the ``runs`` before are listed again where they were: whoever saw them
    vanish would know how many they had been, and so the people.

    Privacy: rows are the same in both runs, so the coordinator sees under pseudonyms how many
    people of each earlier pattern have each pattern now. Dummies do not cover those transitions;
    only the counts of patterns themselves have fresh noise.
    """

    previous: bytes
    n_rows: int
    min_new: int = 1
    runs: int = 1

    def __post_init__(self) -> None:
        if len(self.previous) != RUN_BYTES or not 1 <= self.n_rows <= MAX_ROWS:
            raise ValueError("an extension names the earlier alignment and its rows")
        if not 1 <= self.min_new <= MAX_ROWS:
            raise ValueError("the fewest new people that a party may bring are at least 1")
        if not 1 <= self.runs <= MAX_RUNS:
            raise ValueError(f"an alignment is extended at most {MAX_RUNS} times")


@dataclass(frozen=True, slots=True)
class AlignmentSpec:
    """One alignment of the lists of several parties.

    Privacy: see `methods.alignment.dummies` for what holds if the parties follow the protocol, and
    against whom. Every party is charged ``noise.cost`` once, and ``noise.delta``.
    """

    kind: ClassVar[str] = "alignment"

    salt: bytes
    parts: tuple[AlignmentPart, ...]
    mode: Mode
    ids: IdRule
    noise: MembershipNoise
    chunk: int
    extends: Extension | None = None

    def __post_init__(self) -> None:
        names, keys = {p.party for p in self.parts}, {p.public_key for p in self.parts}
        if not 2 <= len(self.parts) <= MAX_PARTIES:
            raise ValueError(f"an alignment has 2 to {MAX_PARTIES} parties")
        if not len(names) == len(keys) == len(self.parts):
            raise ValueError("the parties need different names and different keys")
        if len(self.salt) != SALT_BYTES:
            raise ValueError("the salt must have 32 bytes")
        if not 1 <= self.chunk <= max_chunk(len(self.parts)):
            raise ValueError(
                f"a chunk of {len(self.parts)} parties has 1 to {max_chunk(len(self.parts))} points"
            )
        before = self.extends.n_rows if self.extends else 0
        most = before + sum(map(self.max_count, range(self.n_parties)))
        if most + self.noise.phantoms().most > MAX_ROWS:
            raise ValueError("the parties may list more people than there can be rows")
        if max(self.max_counts()) > MAX_CHUNKS * self.chunk:
            raise ValueError(f"a list may have more than {MAX_CHUNKS} chunks; make chunks larger")

    @property
    def n_parties(self) -> int:
        """How many parties there are."""
        return len(self.parts)

    def place(self, party: str) -> int:
        """Return the place of ``party`` in the order; `ValueError` if it has none."""
        for place, part in enumerate(self.parts):
            if part.party == party:
                return place
        raise ValueError("the party is not in the alignment")

    @property
    def runs_before(self) -> int:
        """How many runs this one extends."""
        return self.extends.runs if self.extends else 0

    def uses(self, pattern: int) -> bool:
        """Return whether jobs use the rows of people with this pattern of presence."""
        if self.mode is Mode.UNION:
            return True
        return pattern & 1 == 1 if self.mode is Mode.LEFT else pattern + 1 == 1 << self.n_parties

    @property
    def n_canaries(self) -> int:
        """Canaries in every list."""
        return CANARIES * (self.n_parties - 1)

    def max_count(self, place: int) -> int:
        """Return the most points that a list may have, with dummies and canaries."""
        added = (self.noise.most << (self.n_parties - 1)) + self.n_canaries
        return self.parts[place].max_people + (1 + self.runs_before) * added

    def max_counts(self) -> tuple[int, ...]:
        """Return the most points of every list."""
        return tuple(map(self.max_count, range(self.n_parties)))


def max_chunk(n_parties: int) -> int:
    """Return the most points in a chunk: as many chunks as there are other parties fit a body."""
    proofs = 96 * n_parties + 64
    return min(_MAX_CHUNK, (MAX_BODY_BYTES // (n_parties - 1) - proofs) // 32)


def default_chunk(n_parties: int) -> int:
    """Return a chunk such that a party returns about 1 MiB a round."""
    return (1 << 15) // (n_parties - 1)
