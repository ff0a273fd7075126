"""Values that a client returns: a plan, a job as submitted, a report."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from colonnade.client.views import JobView
from colonnade.core.errors import BadInput, BadMessage
from colonnade.data.model import LinearModel
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.job import Job
from colonnade.report import write_report
from colonnade.wire.jobspec import job_from_bytes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What a job will do and cost, from public numbers; nothing is spent by looking.

    Parameters
    ----------
    spec
        The bytes to submit: `Client.submit` takes the plan, too.
    description
        What ``colonnade job submit --dry-run --json`` prints.

    Examples
    --------
    >>> plan = JobPlan(b"", {"method": "moments", "joint_max_epsilon": 0.98, "delta": 1e-6})
    >>> plan.method, plan.epsilon
    ('moments', 0.98)
    """

    spec: bytes
    description: Mapping[str, Any]

    @property
    def job(self) -> Job:
        """The job, decoded."""
        return job_from_bytes(self.spec)

    @property
    def method(self) -> str:
        """The kind of method."""
        return str(self.description["method"])

    @property
    def rounds(self) -> int:
        """Rounds after the first."""
        return int(self.description["rounds"])

    @property
    def delta(self) -> float:
        """The delta of every epsilon."""
        return float(self.description["delta"])

    @property
    def epsilon(self) -> float:
        """What the job may cost a unit of privacy at all parties together, at most."""
        return float(self.description["joint_max_epsilon"])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before anything is spent."""
        idle = tuple(str(each["note"]) for each in self.description.get("expected_idle", ()))
        return (*idle, *self.description.get("evaluation", {}).get("warnings", ()))

    @property
    def epsilon_by_party(self) -> dict[str, float]:
        """What the job may cost a unit of privacy at each party, at most."""
        parties = self.description["parties"].items()
        return {party: float(part["max_epsilon"]) for party, part in parties}


@dataclass(frozen=True, slots=True)
class JobDetails:
    """Where a job stands, and its specification as submitted.

    Examples
    --------
    >>> view = JobView("ab12", "cost", "finished", "", 40, 40, 1.7e9, 1.7e9, "analyst", ())
    >>> JobDetails(view, b"").view.ended
    True
    """

    view: JobView
    spec: bytes

    @property
    def job(self) -> Job:
        """The job, decoded; `BadMessage` if this program does not know its method."""
        return job_from_bytes(self.spec)

    def again(self) -> Job:
        """Return the same job under a new name; `BadInput` unless it failed or was cancelled."""
        if self.view.state not in ("failed", "cancelled"):
            raise BadInput(
                f"job {self.view.job_id[:12]} is {self.view.state}; only one that failed or was "
                "cancelled is retried"
            )
        job = replace(self.job, salt=secrets.token_bytes(16))
        if isinstance(job.method, AlignmentJobSpec):  # a party has a run of one name once
            fresh = replace(job.method.alignment, salt=secrets.token_bytes(32))
            return replace(job, method=AlignmentJobSpec(fresh))
        return job


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job's report: all that its parties released, and what follows from it.

    Parameters
    ----------
    document
        The object of ``report.json``; ``report["uplink"]`` is short for
        ``report.document["uplink"]``.

    Examples
    --------
    >>> report = JobReport({"job_id": "ab12", "state": "failed", "model": None, "unused": []})
    >>> report.state, report.model, report["unused"]
    ('failed', None, [])
    """

    document: dict[str, Any]

    def __repr__(self) -> str:
        return f"JobReport(job_id={self.document.get('job_id')!r})"  # of a document of many pages

    def __getitem__(self, field: str) -> Any:
        return self.document[field]

    @property
    def job_id(self) -> str:
        """The job's name."""
        return self._at("job_id", kind=str)

    @property
    def state(self) -> str:
        """``finished``, ``failed``, ``cancelled``, ``running`` or ``proposed``."""
        return self._at("state", kind=str)

    @property
    def model(self) -> LinearModel | None:
        """The fitted model; None before the first round is done."""
        found = self._at("model", kind=lambda value: value)
        return None if found is None else read_model(found)

    @property
    def statement(self) -> str:
        """The privacy promise, in a sentence."""
        return self._at("privacy", "statement", kind=str)

    @property
    def delta(self) -> float:
        """The delta of every epsilon."""
        return self._at("privacy", "delta", kind=float)

    @property
    def epsilon(self) -> float:
        """What was promised to a unit of privacy at all parties together, with bounds bought."""
        return self._at("privacy", "joint", kind=_promised)

    @property
    def epsilon_by_party(self) -> dict[str, float]:
        """What was promised to a unit of privacy at each party, with bounds bought."""

        def by_party(parties: Any) -> dict[str, float]:
            return {str(each["party"]): _promised(each) for each in parties}

        return self._at("privacy", "parties", kind=by_party)

    @property
    def payload_bytes(self) -> int:
        """What all parties sent."""
        return self._at("uplink", "payload_bytes", kind=int)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know that the numbers alone do not say."""
        return self._at("unused", kind=lambda found: tuple(str(each["note"]) for each in found))

    def write(self, folder: str | Path) -> Path:
        """Write ``report.json``, ``report.html`` and ``model.json``; return the folder."""
        place = Path(folder)
        write_report(self.document, place)
        if (model := self.model) is not None:
            (place / "model.json").write_text(model.to_json(), "utf-8")
        return place

    def _at(self, *keys: str, kind: Callable[[Any], T]) -> T:
        """Return a field as ``kind``; a coordinator may have sent anything."""
        try:
            found: Any = self.document
            for key in keys:
                found = found[key]
            return kind(found)
        except (KeyError, TypeError, ValueError):
            raise BadMessage(f"the report's field {'.'.join(keys)} cannot be read") from None


def read_model(document: object) -> LinearModel:
    """Return the model that a coordinator sent."""
    try:
        return LinearModel.from_object(document, origin="the coordinator's model")
    except BadInput as error:
        raise BadMessage(str(error)) from None


def _promised(spend: Mapping[str, Any]) -> float:
    """Return the epsilon of bounds and job; of the job alone if what bounds cost is not known."""
    total = spend.get("total")
    return float((spend if total is None else total)["max"]["epsilon"])
