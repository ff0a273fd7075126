"""Jobs over a table's columns: whether they fit it, and what answers them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from colonnade.core.errors import BadMessage, ColonnadeError, DatasetChanged
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.methods.evaluation.spec import EvaluationSpec
from colonnade.methods.job import Job
from colonnade.party.data.columns import ColumnCache
from colonnade.party.data.dataset import Dataset
from colonnade.party.data.units import Units
from colonnade.party.engine.local import LOCAL, Engine
from colonnade.party.methods.base import Answers, JobContext
from colonnade.party.methods.registry import side_of
from colonnade.party.methods.sealed_keys import KeyStore
from colonnade.party.prediction.predictor import order_of
from colonnade.party.prediction.received import RecordedScores
from colonnade.party.prediction.store import PredictionFolder
from colonnade.party.vault.policies import PolicyInUse
from colonnade.wire.codec import Answer
from colonnade.wire.jobspec import job_from_bytes

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class ColumnJobs:
    """The jobs over columns that a party has admitted, and its table."""

    dataset: Dataset
    columns: ColumnCache
    ledger: Ledger
    gate: Gate
    units: Units
    policies: PolicyInUse
    keys: KeyStore | None
    drop_out: float
    engine: Engine = LOCAL
    _jobs: dict[str, Answers] = field(default_factory=dict)

    def has(self, job: str) -> bool:
        """Return whether a job was admitted and has not ended."""
        return job in self._jobs

    def answer(self, job: str, round_: int, body: bytes) -> Answer:
        """Release what a task of an admitted job asks for."""
        check_in_place(self.dataset)
        if not self.engine.reads_shared:
            self.columns.prepare(self._jobs[job].context.columns)
        return self._jobs[job].answer(round_, body)

    def close(self, job: str) -> None:
        """Forget an ended job and its columns."""
        if (ended := self._jobs.pop(job, None)) is not None:
            self.columns.forget(ended.context.columns)

    def admit(self, name: str, job: Job, agreed: Callable[[int], None]) -> None:
        """Set a job's greatest price aside, once the policy and people agree; or refuse it."""
        check_in_place(self.dataset)
        ledger, party = self.ledger, self.ledger.opened.party
        # First, so that a refusal does not tell which of the columns that the policy hides exist.
        allowed = self.policies.approve(job)
        side = side_of(job.kind)
        self.check_table(job)
        member = job.member(party)
        label = (job.label, job.label_bounds) if member.holds_label else None
        columns = self.columns.of_job(member.features, member.bounds, label, holdout=job.holdout)
        agreed(allowed.needed)
        context = JobContext(
            name,
            party,
            self.dataset.version,
            columns,
            self.gate,
            ledger,
            units=self.units,
            pins=allowed.pins(job.kind),
            keys=self.keys,
            scores=RecordedScores(
                PredictionFolder.beside(self.dataset.folder), ledger, order_of(self.dataset)
            ),
            engine=self.engine,
            drop_out=self.drop_out,
        )
        after = job.method.training if isinstance(job.method, EvaluationSpec) else ""
        if after in ledger.state.kept:
            side(job.method, context)  # one that is refused leaves what was kept for another
        with ledger.lock:
            new = name not in ledger.state.scoped.places
            self.units.set_aside(ledger, name, units=job.max_units(party), after=after)
        try:
            self._jobs[name] = side(job.method, context)
        except ColonnadeError:
            if new:  # refused after all: what was set aside is free again
                with ledger.lock:
                    ledger.close_job(name)
            raise

    def units_kept(self, name: str) -> int:
        """Return what a finished job keeps set aside for its evaluation."""
        state = self.ledger.state
        if name not in state.docket.proposals:
            return 0
        job = job_from_bytes(self.ledger.decisions.specification(name))
        left = state.left_of(name).get("", 0)
        return min(job.units_kept(state.first_entry().party), left)

    def check_table(self, job: Job) -> None:
        """Refuse a job that was made for another table."""
        check_table(job, self.ledger.opened.party, self.dataset, self.units)


def check_in_place(dataset: Dataset) -> None:
    """Refuse to go on if the folder holds another table by now, and tell the operator."""
    try:
        dataset.check()
    except DatasetChanged as error:
        logger.error("dataset_changed folder=%s %s", dataset.folder, error)
        raise


def check_table(job: Job, party: str, dataset: Dataset, units: Units) -> None:
    """Refuse a job that was made for another table."""
    table, member = dataset.coarse, job.member(party)
    header = table.header
    if member.dataset != dataset.version:
        raise BadMessage(f"the job is for another version of the table of party {party}")
    if member.alignment != header.alignment:
        raise BadMessage(f"the job is for another order of the rows of party {party}")
    units.check(job, party)
    facts = zip(table.fills, table.groups, strict=True)
    declared = dict(zip(table.names, facts, strict=True))
    groups = member.groups or ("",) * len(member.features)
    for name, fill, group in zip(member.features, member.fills, groups, strict=True):
        if name not in declared:
            raise BadMessage(f"party {party} has no feature {name!r}")
        own_fill, own_group = declared[name]
        if fill != own_fill:  # the model would say something else than was trained with
            raise BadMessage(
                f"the job says that a missing {name!r} counts as {fill:g}, and the schema of "
                f"party {party} says {own_fill:g}"
            )
        # Noise is calibrated to how many columns a row can move, which follows from groups.
        if group != own_group:
            raise BadMessage(f"the job and party {party} disagree on the group of {name!r}")
    if not {*member.encodings} <= {*header.encodings}:
        raise BadMessage(f"the job encodes a column of party {party} in another way")
    if member.holds_label and (header.label is None or header.label.name != job.label):
        raise BadMessage(f"party {party} has no label {job.label!r}")
