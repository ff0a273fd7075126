"""The progress of jobs, and what parties offer, as a coordinator reports them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from colonnade.client.hub_views import PartySession, session_from_proto
from colonnade.core.errors import BadMessage, JobEnded, StoreFailed
from colonnade.core.fixedpoint import Bounds
from colonnade.core.text import printable
from colonnade.data.encoding import Encoding
from colonnade.methods.alignment.normalise import PLAIN, Repeated
from colonnade.methods.base import Unit
from colonnade.v1 import job_pb2, jobs_pb2
from colonnade.wire.encodings import encoding_from_proto
from colonnade.wire.jobspec import feature_from_proto
from colonnade.wire.notes import advice_of, unused_note
from colonnade.wire.session import ENDINGS


@dataclass(frozen=True, slots=True)
class PartyView:
    """A party in a job's progress.

    Parameters
    ----------
    attached, accepted, awaited
        Whether it is connected, has accepted the job, and owes an answer.
    spent_units, max_units
        What the job has cost and may cost at most, in units of ``2**-50`` rho.
    payload_bytes
        What it has sent.
    features_used
        By the finished model; None in a job over clients.
    refusal
        Why it refused the job, if it did.
    waiting
        Why its decision is still pending, if it is.

    Examples
    --------
    >>> view = PartyView("laboratory", True, True, False, 0, 2**50, 0)
    >>> view.max_units == 2**50  # rho 1
    True
    """

    party: str
    attached: bool
    accepted: bool
    awaited: bool
    spent_units: int
    max_units: int
    payload_bytes: int
    features_used: int | None = None
    refusal: str = ""
    waiting: str = ""


@dataclass(frozen=True, slots=True)
class JobView:
    """Where a job stands.

    Parameters
    ----------
    state, reason
        ``proposed``, ``running``, ``finished``, ``failed`` or ``cancelled``; and why.
    submitted_at, ended_at
        Unix seconds of the coordinator's clock; 0 until the job has ended.
    purpose
        What the answer is for.
    over_clients
        Whether the unit of privacy is a client; then a party's spending is that of its client that
        paid most.

    Examples
    --------
    >>> view = JobView("ab12", "cost", "running", "", 3, 40, 1.7e9, 0.0, "analyst", ())
    >>> view.ended, view.rounds_done
    (False, 3)
    """

    job_id: str
    name: str
    state: str
    reason: str
    rounds_done: int
    rounds: int
    submitted_at: float
    ended_at: float
    submitted_by: str
    parties: tuple[PartyView, ...]
    over_clients: bool = False
    purpose: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of who paid and who took no part."""
        refused = (
            f"{each.party} refused the job ({each.refusal}); it took no part"
            for each in self.parties
            if each.refusal and self.over_clients  # another job fails of it, and says why
        )
        waiting = (
            f"{each.party}: {each.waiting}"
            for each in self.parties
            if each.waiting and not self.ended
        )
        unused = (
            unused_note(each.party, each.spent_units)
            for each in self.parties
            if each.features_used == 0 and each.spent_units
        )
        return (*refused, *waiting, *unused)

    @property
    def advice(self) -> str:
        """What to do about a job that failed; empty if nothing is known."""
        return advice_of(self.reason) if self.state == "failed" else ""

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ENDINGS


@dataclass(frozen=True, slots=True)
class PartyOffer:
    """What an enrolled party can bring to a job, with the bounds to use.

    Parameters
    ----------
    dataset
        Version of its table.
    population
        How many its table holds, in its unit of privacy.
    features, fills
        Bounds of each feature, and what stands for a missing value, as declared.
    label
        Its label's name and bounds, if it has one.
    cap_units, used_units
        Of its ledger, in units of ``2**-50`` rho.
    unit
        Whom its ledger's accounts protect.
    told_at
        When it reported its budget, in Unix seconds of the coordinator's clock.
    bounds_units
        What it paid for bounds of these columns; part of what it used.
    groups
        Of the features that are levels of a category: its name.
    encodings
        How raw columns become these, unless they are numbers of the same name.
    alignment
        What the order of its rows follows: an alignment, a roster, or nothing.
    align_people
        The most people whom it lets an alignment list.
    align_ids, align_repeated
        How it lets an alignment write ids, and what happens to a person who is listed twice.
    ledger_key
        Signs its messages in an alignment or a sealed job.
    sealed_peers, sealed_columns, sealed_shield
        With whom it takes part in sealed jobs, by the ledger keys that it pinned, and with how many
        columns at most; nobody unless its policy says so. What its rows are to be shielded for, in
        units; 0 for no shield.
    session
        What the coordinator knows of its latest session.

    Examples
    --------
    >>> from colonnade.core.fixedpoint import Bounds
    >>> bounds = {"iron": Bounds(0.0, 60.0)}
    >>> offer = PartyOffer(
    ...     "laboratory", True, "00" * 16, 5000, bounds, {"iron": 30.0}, None, 2**50, 2**49
    ... )
    >>> offer.left_units == 2**49  # rho 0.5
    True
    """

    party: str
    attached: bool
    dataset: str
    population: int
    features: dict[str, Bounds]
    fills: dict[str, float]
    label: tuple[str, Bounds] | None
    cap_units: int
    used_units: int
    unit: Unit = Unit.RECORD
    told_at: float = 0.0
    bounds_units: int = 0
    groups: dict[str, str] = field(default_factory=dict)
    encodings: tuple[Encoding, ...] = ()
    alignment: str = ""
    align_people: int = 0
    align_ids: tuple[str, ...] = (PLAIN,)
    align_repeated: str = Repeated.REFUSE.value
    ledger_key: bytes = b""
    sealed_peers: dict[str, bytes] = field(default_factory=dict)
    sealed_columns: int = 0
    sealed_shield: int = 0
    session: PartySession = field(default_factory=PartySession)

    @property
    def left_units(self) -> int:
        """What a job may still cost the party."""
        return max(0, self.cap_units - self.used_units)

    @property
    def clients(self) -> int:
        """How many clients it has for a job over clients: an undivided table is one."""
        return self.population if self.unit is Unit.CLIENT else 1


def _state(number: int) -> str:
    """Return the name of a state, also of one that this program does not know."""
    if number not in jobs_pb2.JobState.values():
        return "unknown"
    return jobs_pb2.JobState.Name(number).removeprefix("JOB_STATE_").lower()


def view_from_proto(job: jobs_pb2.JobStatus) -> JobView:
    """Decode where a job stands; what a coordinator says is made safe to print."""
    return JobView(
        job_id=printable(job.job_id),
        name=printable(job.name),
        state=_state(job.state),
        reason=printable(job.reason),
        rounds_done=job.rounds_done,
        rounds=job.rounds,
        submitted_at=job.submitted_at,
        ended_at=job.ended_at,
        submitted_by=printable(job.submitted_by),
        parties=tuple(
            PartyView(
                printable(party.party),
                party.attached,
                party.accepted,
                party.awaited,
                party.spent_units,
                party.max_units,
                party.payload_bytes,
                party.features_used if party.HasField("features_used") else None,
                printable(party.refusal),
                printable(party.waiting),
            )
            for party in job.parties
        ),
        over_clients=job.unit == job_pb2.UNIT_CLIENT,
        purpose=printable(job.purpose),
    )


def finished(last: JobView | None) -> JobView:
    """Return where a job stood last; `JobEnded` if it failed or was cancelled."""
    if last is None:
        raise StoreFailed("the coordinator said nothing of the job")
    if last.state != "finished":
        raise JobEnded(f"job {last.job_id[:12]} {last.state}: {last.reason}")
    return last


def offers_from_proto(parties: Iterable[jobs_pb2.PartyStatus]) -> list[PartyOffer]:
    """Return what parties offer; `BadMessage` if a coordinator shows what cannot be."""
    try:
        return [offer_from_proto(party) for party in parties]
    except ValueError as error:
        raise BadMessage(f"the coordinator shows an offer that cannot be: {error}") from None


def offer_from_proto(party: jobs_pb2.PartyStatus) -> PartyOffer:
    """Decode what a party offers; its texts are made safe to print."""
    return PartyOffer(
        party=printable(party.party),
        attached=party.attached,
        dataset=printable(party.dataset),
        population=party.population,
        features=dict(map(feature_from_proto, party.features)),
        fills={feature.name: feature.fill for feature in party.features},
        label=feature_from_proto(party.label) if party.HasField("label") else None,
        cap_units=party.cap_units,
        used_units=party.used_units,
        unit=Unit.CLIENT if party.unit == job_pb2.UNIT_CLIENT else Unit.RECORD,
        told_at=party.told_at,
        bounds_units=party.bounds_units,
        groups={feature.name: feature.group for feature in party.features if feature.group},
        encodings=tuple(map(encoding_from_proto, party.encodings)),
        alignment=printable(party.alignment),
        align_people=party.align_people,
        align_ids=tuple(map(printable, party.align_ids)),
        align_repeated=printable(party.align_repeated),
        ledger_key=party.ledger_key,
        sealed_peers={printable(each.party): each.ledger_key for each in party.sealed.peers},
        sealed_columns=party.sealed.columns,
        sealed_shield=party.sealed.shield_units,
        session=session_from_proto(party),
    )
