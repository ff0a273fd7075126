"""The predictions that a party takes part in, beside its jobs."""

import datetime as dt
import functools
import logging
from collections.abc import Callable

import numpy as np

from colonnade.core.errors import BadMessage, PolicyRefused
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds, quantise
from colonnade.data.integer_scores import IntegerScores
from colonnade.data.model import LinearModel, ModelFeature
from colonnade.data.requantise import requantise
from colonnade.data.table import Table
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.methods.base import Member
from colonnade.methods.job import Job
from colonnade.methods.prediction.claims import learned
from colonnade.methods.prediction.refusals import PartyMissing
from colonnade.methods.prediction.spec import PART, PredictionSpec
from colonnade.party.data.columns import ColumnCache
from colonnade.party.data.dataset import Dataset
from colonnade.party.policy import Policy
from colonnade.party.prediction.answers import OwnPart, PredictionAnswers, table_digest
from colonnade.party.prediction.model import computed_model, training_job
from colonnade.party.prediction.people import extended_orders, names_of
from colonnade.party.prediction.store import PredictionFolder
from colonnade.pki.identity import Identity
from colonnade.privacy.disclosure import PREDICTION
from colonnade.wire.codec import Answer

logger = logging.getLogger(__name__)


class Predictor:
    """Approves predictions, answers their tasks and ends them."""

    def __init__(
        self,
        dataset: Dataset,
        columns: ColumnCache,
        *,
        ledger: Ledger,
        gate: Gate,
        policy: Policy,
        coordinator: Identity,
        today: Callable[[], dt.date],
    ) -> None:
        self._dataset, self._columns, self._ledger, self._gate = dataset, columns, ledger, gate
        self.policy, self._coordinator, self._today = policy, coordinator, today
        self._folder = PredictionFolder.beside(dataset.folder)
        self._open: dict[str, PredictionAnswers] = {}

    def has(self, job: str) -> bool:
        """Return whether a job is a prediction that was approved."""
        return job in self._open

    def admit(self, name: str, job: Job, agreed: Callable[[int], None]) -> None:
        """Approve a prediction, or refuse it; ``agreed`` raises until people agree who have to.

        Privacy: the policy comes first; then what the request says of the table, which is public;
        then signatures and coefficients; then what was answered before. No row is read.
        """
        spec = job.method
        if not isinstance(spec, PredictionSpec):
            raise PolicyRefused(f"this party does not answer jobs of kind {job.kind!r}")
        if job.purpose not in ("", spec.purpose):
            raise BadMessage("a prediction states one purpose, the one that its grant names")
        party = self._ledger.opened.party
        trained_as, trained = training_job(spec, party)
        allowance = self.policy.approve_prediction(
            spec, trained_as, party=party, coordinator=self._coordinator, today=self._today()
        )
        if unwanted := [each for each in spec.middle if each not in allowance.middle]:
            raise PartyMissing(f"the grant does not allow to leave out {unwanted[0]}")
        table, member = self._dataset.coarse, trained.member(party)
        self._check_table(job, member)
        model = computed_model(spec, trained_as, trained, ledger=self._ledger, keys=allowance.pins)
        _check_hidden(model, spec)
        part = self._part(model, member, table)
        part.check(len(spec.parts))
        order = order_of(self._dataset)
        answers = PredictionAnswers(
            name,
            spec,
            allowance,
            model,
            trained_as,
            part,
            self._dataset.version,
            order,
            extended_orders(self._dataset.folder, table.header.alignment),
            table_digest(self._dataset.version, order),
            self._gate,
            self._ledger,
            self._folder,
            functools.partial(names_of, self._dataset.folder, table.header.alignment),
        )
        answers.check_allowed()
        agreed(allowance.needed)
        with self._ledger.lock:
            self._ledger.admit(name, units=0, account=PREDICTION)
        self._open[name] = answers
        logger.info(
            "prediction_approved job=%s model=%s receiver=%s rows=%d parties=%d",
            name[:12],
            spec.model.hex()[:12],
            spec.receiver,
            spec.count,
            len(spec.parts),
        )
        for who, what in learned(spec.receiver, len(spec.parts), spec.middle):
            logger.info("prediction_tells who=%r what=%r", who, what)

    def answer(self, job: str, round_: int, body: bytes) -> Answer:
        """Release what a task asks for."""
        return self._open[job].answer(round_, body)

    def close(self, job: str, *, finished: bool) -> None:
        """Erase the secrets and parts of a run that ended, and the scores of one that failed."""
        with self._ledger.lock:
            parts = [
                key for key in self._ledger.state.stored if key.job == job and key.kind == PART
            ]
            self._ledger.purge_many([key for key in parts if self._ledger.has(key)])
        self._folder.erase(job, finished=finished)  # also of a run that this process never saw
        if (ended := self._open.pop(job, None)) is not None:
            self._columns.forget(ended.part.columns)

    def _check_table(self, job: Job, trained: Member) -> None:
        """Refuse rows of another order, or columns that mean something else than in training."""
        table, member = self._dataset.coarse, job.member(trained.party)
        if member.alignment != table.header.alignment:
            raise BadMessage(f"the request is for another order of the rows of {trained.party}")
        if job.method.population != table.n_rows:
            raise BadMessage(f"the table of {trained.party} has {table.n_rows} rows")
        fills = dict(zip(table.names, table.fills, strict=True))
        for name, fill in zip(trained.features, trained.fills, strict=True):
            if fills.get(name) != fill:
                raise BadMessage(f"{trained.party} has no {name!r} that is filled as in training")
        if not {*trained.encodings} <= {*table.header.encodings}:
            raise BadMessage(f"{trained.party} encodes a column in another way than in training")

    def _part(self, model: LinearModel, member: Member, table: Table) -> OwnPart:
        """Return this party's coefficients and its columns under the training job's bounds."""
        numbers = IntegerScores.of(model).coef
        own = [
            (feature, number)
            for feature, number in zip(model.features, numbers, strict=True)
            if feature.party == member.party
        ]
        columns = self._columns.of_job(member.features, member.bounds, None)
        declared = dict(zip(table.names, table.bounds, strict=True))
        fills = [_on_grid(feature, declared[feature.name]) for feature, _ in own]
        return OwnPart(columns, tuple(number for _, number in own), tuple(fills))


def _on_grid(feature: ModelFeature, declared: Bounds) -> int:
    """Return the fill of a feature as a table would store it and training read it."""
    fill = np.array([feature.fill])
    if feature.bounds == declared:
        return int(quantise(fill, declared, grid=GRID)[0])
    fine = quantise(fill, declared, grid=FINE_GRID)
    return int(requantise(fine, declared=declared, tight=feature.bounds)[0])


def _check_hidden(model: LinearModel, spec: PredictionSpec) -> None:
    """Refuse a model in which only one party besides the receiver has a part to hide.

    Privacy: a sum of two parts hides each of them from the receiver; a part beside one that is zero
    in every row is shown as it is. With one other party in all there is nothing to hide behind, and
    whoever grants it is told so.
    """
    others = {part.party for part in spec.parts} - {spec.receiver}
    coefs = zip(model.features, IntegerScores.of(model).coef, strict=True)
    used = {feature.party for feature, number in coefs if number} & others
    if len(others) > 1 and len(used) == 1:
        raise PolicyRefused(
            f"the model uses columns of {used.pop()} alone besides the receiver's: every score "
            "would show its exact part"
        )


def order_of(dataset: Dataset) -> str:
    """Return what the order of a table's rows follows: row numbers mean people within it only."""
    return dataset.coarse.header.alignment or dataset.version
