"""A private linear model on rows that one organization holds: its own job on its own table.

Privacy: without a ledger the promise is that of one fit, (epsilon, delta) for one row replaced.
With one, every step's release goes through the gate and is charged in full, so that all fits, jobs
and purchases of the ledger together stay under its cap. The ledger is bound to the table: other
rows are refused until somebody says that they are about the same people.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from colonnade.core.errors import NotPrivate, ReleaseAbandoned, RequestConflict
from colonnade.data.model import LinearModel, ModelEncoding, ModelFeature, ModelLabel
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.party.data.binding import bind, check_binding, claim, note_use
from colonnade.party.data.bounding.purchases import bounds_job
from colonnade.party.data.clients import refuse_clients
from colonnade.party.fit_order import FitTable, LocalFit
from colonnade.privacy.accounting import rho_from_units
from colonnade.privacy.sampling import OsNoise
from colonnade.solvers.claims import Claim
from colonnade.solvers.fit import Fitted, fit_table, problem_of
from colonnade.solvers.iteration import Diverged, Gated, Trail
from colonnade.solvers.statistics import GramStatistics

Progress: TypeAlias = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class FitCharge:
    """What a fit did to a ledger, as rho."""

    ledger_id: str
    charged_now: float
    left: float


@dataclass(frozen=True, slots=True, eq=False)
class LocalModel:
    """A fitted model, what it promises and how it came about; all of it may be published."""

    job_id: str
    n_rows: int
    model: LinearModel
    claim: Claim
    trail: Trail
    charge: FitCharge | None
    statistics: GramStatistics | None = None  # what the releases of a Gram matrix tell besides


def fit_here(fit: LocalFit, *, progress: Progress | None = None) -> LocalModel:
    """Fit without a ledger: the promise is of this one fit."""
    fitted = fit_table(fit.solver_table(), fit.resolved, progress=progress, keep_trail=True)
    return _local_model(fit, fitted, party="local", charge=None)


def fit_charged(
    fit: LocalFit,
    ledger: Ledger,
    *,
    bind_reason: str | None = None,
    progress: Progress | None = None,
) -> LocalModel:
    """Fit with every release charged; the same order on the same rows replays and costs nothing.

    The whole price is set aside first: a fit is affordable as a whole, or refused before a row is
    read. One release a step: each depends on the ones before, a killed fit goes on where it was,
    and an auditor recomputes every price from its own mechanism.

    Parameters
    ----------
    fit
        Resolved with ``charged=True``.
    bind_reason
        Why other rows than the ledger was used with are about the same people, so that it goes on
        with them; it becomes an entry of the ledger.
    """
    table = fit.table
    if fit.resolved.noise != "exact":
        raise NotPrivate("a ledger accepts exact noise only")
    refuse_clients(ledger, divided=bool(table.rows.client_ids))
    if bind_reason is None:
        check_binding(table.rows, ledger)
    rows, resolved = fit.solver_table(), fit.resolved
    problem_of(rows, resolved.objective, resolved.solver)  # refused before anything is set aside
    spec = fit.spec()
    job = local_job(spec)
    before, digest = ledger.budget().spent, table.rows.digest
    _admit(fit, ledger, job, bind_reason)
    try:
        fitted = fit_table(
            rows,
            resolved,
            # Other rows under the same order are refused, not answered with the first rows' model.
            gated=Gated(Gate(ledger, OsNoise()), job, spec + ledger.seal(digest).encode()),
            progress=progress,
            keep_trail=True,
        )
    except RequestConflict:
        raise RequestConflict(
            "this very fit was made before, with other rows; a new one needs another name"
        ) from None
    except (Diverged, ReleaseAbandoned):
        _close(ledger, job)  # nothing more will be asked
        raise
    else:
        _close(ledger, job)
    finally:
        note_use(table.rows, ledger)
    budget, reserved = ledger.budget(), ledger.state.reserved.get("", 0)
    charge = FitCharge(
        ledger.opened.ledger_id,
        rho_from_units(budget.spent - before),
        rho_from_units(budget.remaining - reserved),
    )
    return _local_model(fit, fitted, party=ledger.opened.party, charge=charge)


def local_job(spec: bytes) -> str:
    """Return the job under which a ledger keeps a fit.

    It is named like a purchase of bounds, so that no coordinator is told of it or can close it.
    """
    return f"{bounds_job('fit')}-{hashlib.sha256(spec).hexdigest()}"


def _admit(fit: LocalFit, ledger: Ledger, job: str, bind_reason: str | None) -> None:
    """Set the whole price aside, or refuse; then bind the rows. A fit that is done needs none."""
    with ledger.lock:
        if job not in ledger.state.closed:
            ledger.admit(job, units=fit.resolved.plan.units(enforced=True))
        if bind_reason is None:
            claim(fit.table.rows, ledger)
        else:
            bind(fit.table.rows, ledger, reason=bind_reason)


def _close(ledger: Ledger, job: str) -> None:
    with ledger.lock:
        ledger.close_job(job)


def _local_model(
    fit: LocalFit, fitted: Fitted, *, party: str, charge: FitCharge | None
) -> LocalModel:
    table, job_id = fit.table, fit.job_id
    label = table.bounds[-1]
    model = LinearModel(
        job_id=job_id,
        loss=fit.resolved.objective.loss.response,  # how it predicts; the report names the loss
        label=ModelLabel(table.names[-1], label.low, label.high, _classes(table)),
        intercept_scaled=fitted.intercept_scaled,
        features=tuple(
            ModelFeature(party, name, bounds.low, bounds.high, fill, float(coef), group)
            for name, bounds, fill, coef, group in zip(
                table.names[:-1],
                table.bounds[:-1],
                table.fills,
                fitted.coef_scaled,
                table.groups,
                strict=True,
            )
        ),
        private=fitted.claim.private,
        encodings=tuple(
            ModelEncoding.of(party, each)
            for each in table.encodings
            if each.name != table.names[-1]
        ),
    )
    return LocalModel(
        job_id, table.n_rows, model, fitted.claim, fitted.trail, charge, fitted.statistics
    )


def _classes(table: FitTable) -> tuple[str, ...]:
    """Return the texts that the label's values stand for, if it was read from texts."""
    label = table.names[-1]
    return next((each.classes for each in table.encodings if each.name == label), ())
