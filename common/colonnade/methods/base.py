"""What a method of federated learning is to the rest of the program.

A job names its method by *kind*. Everything that differs between kinds is in one `Method` value,
which `registry.register` makes known, and in the specification that a job carries, a `MethodSpec`.
The coordinator's and the party's side of a kind are registered in `server.methods.registry` and
`party.methods.registry`. Nothing else looks at which method a job has.
"""

import enum
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from colonnade.core.fixedpoint import Bounds
from colonnade.data.encoding import Encoding
from colonnade.methods.groups import check_groups
from colonnade.methods.problem import Labels, Loss, Problem

MAX_PARTIES = 256
MAX_MEMBER_NAME = 64
MAX_ALIGNMENT_NAME = 80
MAX_FEATURES = 2**20
MAX_POPULATION = 10**9
MAX_CLIENTS = 2**20
MAX_ROUNDS = 10**6
# A task has up to 9 bytes for each of its numbers; it must fit a message of 8 MiB, and so must the
# two releases of a round.
MAX_TASK_ENTRIES = 900_000
MAX_RELEASE_BYTES = 3 << 20


class Unit(enum.Enum):
    """The unit of privacy: whom a guarantee is about.

    With record-level differential privacy neighbouring datasets differ in one person's row at every
    party; with user-level privacy in all rows of one client, which is at one party.
    """

    RECORD = "record"
    CLIENT = "client"

    def joint(self, units: Iterable[int]) -> int:
        """Return what one unit pays at most, from what it pays at each party."""
        return sum(units) if self is Unit.RECORD else max(units, default=0)


@dataclass(frozen=True, slots=True)
class Member:
    """One party's place in a job."""

    party: str
    dataset: str  # version of its table
    features: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    fills: tuple[float, ...]  # stand for missing values, as declared; clipped to the bounds
    holds_label: bool
    clients: int = 0  # whose rows it holds, where the unit of privacy is a client
    groups: tuple[str, ...] = ()  # of the features, empty for those in none; () for no groups
    encodings: tuple[Encoding, ...] = ()  # of raw columns that are no numbers of the same name
    alignment: str = ""  # what the order of its rows follows; the same for all in a job

    def __post_init__(self) -> None:
        for name in (self.party, *([self.dataset] if self.features else [])):
            if not 1 <= len(name) <= MAX_MEMBER_NAME or not name.isprintable():
                raise ValueError(
                    f"parties and versions have 1 to {MAX_MEMBER_NAME} printable characters"
                )
        if len(self.alignment) > MAX_ALIGNMENT_NAME or not self.alignment.isascii():
            raise ValueError("the name of an alignment or a roster is too long")
        if len(self.features) != len(self.bounds) or len(set(self.features)) != len(self.features):
            raise ValueError("a party's features need different names and bounds each")
        if len(self.fills) != len(self.features) or not all(map(math.isfinite, self.fills)):
            raise ValueError("a party's features need a finite fill each")
        check_groups(self.features, self.groups)
        names = [encoding.name for encoding in self.encodings]
        if len(set(names)) != len(names):
            raise ValueError("a raw column is encoded twice")


class PartLike(Protocol):
    """What a specification says of one party, at least."""

    @property
    def party(self) -> str:
        """The party."""

    @property
    def features(self) -> tuple[str, ...]:
        """Its features, in the order of the job."""

    @property
    def holds_label(self) -> bool:
        """Whether it uses the label."""


@dataclass(frozen=True, slots=True)
class Part:
    """One party's part: its features in order, and whether it holds the label."""

    party: str
    features: tuple[str, ...]
    holds_label: bool
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_groups(self.features, self.groups)


def parts_of(members: Iterable[Member]) -> tuple[Part, ...]:
    """Return the parts of a job's members."""
    return tuple(Part(each.party, each.features, each.holds_label, each.groups) for each in members)


def planned_parts(problem: Problem) -> tuple[Part, ...]:
    """Return the parts of a job that is planned."""
    return tuple(
        Part(
            party,
            tuple(features),
            holds_label=not problem.sketched or party == problem.label_owner,
            groups=tuple(problem.groups.get(party, ())),
        )
        for party, features in problem.features.items()
    )


class MethodSpec(Protocol):
    """A method's frozen specification: what both sides derive prices and sizes from."""

    kind: ClassVar[str]

    @property
    def parts(self) -> Sequence[PartLike]:
        """The parties' parts, in the order of the job's members."""

    @property
    def population(self) -> int:
        """How many the guarantee is about: records or clients."""

    @property
    def rounds(self) -> int:
        """Rounds after the first."""

    @property
    def labels(self) -> Labels:
        """Who holds the label."""

    @property
    def loss(self) -> Loss:
        """What is minimised."""

    @property
    def sketch_dim(self) -> int:
        """Rows of the sketching matrix; 0 for a method without one."""

    def max_units(self, party: str) -> int:
        """Return the most that the job can ever cost a unit of privacy at ``party``."""

    def max_releases(self, party: str) -> Mapping[str, int]:
        """Return how many releases of each kind the job can ever ask of ``party``."""

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""

    def task_entries(self, party: str) -> int:
        """Return the most numbers that a task for ``party`` carries."""


S = TypeVar("S", bound=MethodSpec)


@dataclass(frozen=True, slots=True)
class Method(Generic[S]):
    """One kind of method: what the program asks of it besides its two sides.

    Parameters
    ----------
    kind
        The name in jobs, policies and reports.
    unit
        The unit of privacy of every job of this kind.
    encode, decode
        Between a specification and the bytes that jobs carry. Decoding gets the job's members and
        population, and raises `ValueError` (`KeyError` for an open choice) for anything that it
        does not know: `colonnade.methods.messages` helps.
    question
        Return the bytes of a specification without what is no part of the question that the job
        asks (timeouts), with the members in the order that is given as places.
    check
        Raise `ValueError` unless the job's members fit the specification.
    describe
        Return what people want to know of one party's part, as JSON values.
    options
        Hyperparameters that belong to this method alone, by the names of ``JobOptions``.
    plan
        Recommend a specification from public numbers and from options; None if the method is not
        planned from a `Problem`.
    with_rows
        Return a specification for fewer rows with noise in the same relation to signal, which is
        how the accuracy to expect is simulated.
    idle
        Return the parties of which no column is likely to be in the model, from public numbers:
        by party, the standard error of its columns' correlations with the label.
    warm
        Run each compiled kernel of the method once, on zeros.
    section
        Key of the method's own part of a report, or empty.
    model
        Whether a job ends in a model. One that does not has no features, no label and nobody's
        table; what it ends in is the method's own.
    account
        The ledger account that pays, where the unit of privacy is a record.
    fits
        Whether a job fits its model, and so may hold rows out.
    promise
        Return what is promised at a delta, in words, where it rests on more than the party itself.
    """

    kind: str
    unit: Unit
    encode: Callable[[S], bytes]
    decode: Callable[[bytes, Sequence[Member], int], S]
    question: Callable[[bytes, Sequence[int]], bytes] = lambda body, _order: body
    check: Callable[[S, Sequence[Member]], None] = lambda _spec, _members: None
    describe: Callable[[S, str], Mapping[str, Any]] = lambda _spec, _party: {}
    options: tuple[str, ...] = ()
    plan: Callable[[Problem, Any], "MethodPlan[Any]"] | None = None
    with_rows: Callable[[S, int], S] | None = None
    idle: Callable[[S], Mapping[str, float]] = lambda _spec: {}
    warm: Callable[[], None] = lambda: None
    section: str = ""
    model: bool = True
    account: str = ""
    fits: bool = True
    promise: Callable[[S, float], str] = lambda _spec, _delta: ""


def payload(spec: MethodSpec, party: str) -> dict[str, int]:
    """Return the most bytes of each kind that ``party`` can ever send, known beforehand."""
    counts = spec.max_releases(party).items()
    return {kind: count * spec.body_bytes(party, kind) for kind, count in counts if count}


class PlannedSpec(MethodSpec, Protocol):
    """A specification that is planned from a `Problem`."""

    def units_by_kind(self, party: str) -> Mapping[str, int]:
        """Return the most that the releases of each kind can ever cost ``party``."""


P = TypeVar("P", bound=PlannedSpec)


@dataclass(frozen=True, slots=True)
class MethodPlan(Generic[P]):
    """A recommended specification, and what it was recommended for.

    ``details`` are the method's own part of a summary, as JSON values.
    """

    problem: Problem
    spec: P
    details: Mapping[str, object] = field(default_factory=dict)

    def units(self) -> int:
        """Return what the job costs all parties together."""
        return sum(self.spec.max_units(part.party) for part in self.spec.parts)

    def split(self) -> dict[str, float]:
        """Return the part of the budget that each kind costs, over all parties."""
        units = dict[str, int]()
        for part in self.spec.parts:
            for kind, most in self.spec.units_by_kind(part.party).items():
                units[kind] = units.get(kind, 0) + most
        return {kind: total / self.problem.rho_units for kind, total in units.items()}

    def max_bytes(self) -> dict[str, dict[str, int]]:
        """Return the most payload bytes by party and kind."""
        return {part.party: payload(self.spec, part.party) for part in self.spec.parts}

    def summary(self) -> dict[str, object]:
        """Return what a person asks of a plan, as JSON values."""
        return {
            **self.details,
            "budget_split": self.split(),
            "max_payload_bytes": self.max_bytes(),
        }
