"""Buy tighter bounds for a party's columns: once for a version of its table, for all jobs.

Privacy: twenty releases through the gate, one for each step of the bisection that
`optim.quantiles` describes and prices. The whole price is set aside before a row is read, so a
purchase is never left half way for want of budget.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from colonnade.core.arrays import Int32Array, IntArray
from colonnade.core.errors import (
    BadInput,
    JobClosed,
    ReleaseAbandoned,
    ReleasePurged,
    RequestConflict,
)
from colonnade.core.fixedpoint import Bounds
from colonnade.core.table import Table, TableColumn, open_pair
from colonnade.optim.quantiles import LEVELS, STEPS, QuantilePlan, count_at_most, tight_bounds
from colonnade.party.clients import is_divided, refuse_clients
from colonnade.party.versions import dataset_version, version_of
from colonnade.privacy.accounting import rho_from_units
from colonnade.privacy.entries import ReleaseKey
from colonnade.privacy.gate import Gate
from colonnade.privacy.ledger import Ledger, Released
from colonnade.privacy.mechanisms import DiscreteGaussian

KIND = "bounds"

Progress: TypeAlias = Callable[[Iterable[int]], Iterable[int]]
"""Wrap the steps to be made, as ``tqdm`` does."""


@dataclass(frozen=True, slots=True)
class BoughtBounds:
    """Tighter bounds and the releases they follow from.

    Parameters
    ----------
    columns
        The columns as declared: the features, then the label if it was asked for.
    tight
        Bounds of each of them; the declared ones where no others were found.
    price
        What was paid for them, in units of ``2**-50`` rho.
    """

    version: str
    columns: tuple[TableColumn, ...]
    tight: tuple[Bounds, ...]
    price: int
    releases: tuple[Released, ...]


def bounds_job(version: str) -> str:
    """Return the job under which a ledger keeps the bounds of a version of a table."""
    return f"dataset-{version}"


def bought_bounds(folder_or_version: Path | str, ledger: Ledger) -> list[Released] | None:
    """Return the releases from which the bounds of a table follow; None if they were not bought.

    Costs nothing. A purchase that was interrupted counts as not made: `buy_bounds` finishes it.
    """
    version = folder_or_version
    if isinstance(version, Path):
        version = dataset_version(version)
    keys = _keys(version)
    if not ledger.state.purged.isdisjoint(keys):
        raise ReleasePurged(
            "the bounds of this dataset were purged and are never drawn again; "
            "use the declared ones, or ingest the source again and buy new ones"
        )
    releases = [release for key in keys if (release := ledger.stored(key)) is not None]
    return releases if len(releases) == len(keys) else None


def buy_bounds(
    folder: Path,
    ledger: Ledger,
    gate: Gate,
    *,
    units: int,
    label: bool,
    progress: Progress = iter,
) -> BoughtBounds:
    """Return tighter bounds for the table in ``folder``, buying them if nobody has yet.

    Bounds already bought are returned free of charge, whatever ``units`` and ``label`` say now. A
    purchase that was interrupted goes on where it stopped, if asked for with the same two.

    Parameters
    ----------
    gate
        Of the same ledger.
    units
        Most that all releases together may cost.
    label
        Whether to find bounds for the label too.
    """
    refuse_clients(ledger, divided=is_divided(folder))
    coarse, fine = open_pair(folder)
    version = version_of(coarse)
    releases = bought_bounds(version, ledger)
    if releases is None:
        columns = _columns(coarse, label=label)
        plan = QuantilePlan(len(columns), coarse.n_rows)
        mechanism = _affordable(plan, units)
        _admit(ledger, version, plan.price(mechanism))
        releases = []
        for step in progress(range(STEPS)):
            # Of released bytes only, so a retry asks, and is answered, exactly the same.
            thresholds = plan.thresholds([release.body for release in releases])
            request = _request(version, columns, thresholds=thresholds)
            count = partial(_count, fine, thresholds)
            key = _keys(version)[step]
            try:
                releases.append(gate.release(key, request, mechanism, count, encode=plan.encode))
            except ReleaseAbandoned:
                with ledger.lock:  # nothing more will be asked
                    ledger.close_job(bounds_job(version))
                raise
    with ledger.lock:
        ledger.close_job(bounds_job(version))
    return _bought(coarse, ledger, releases)


def _keys(version: str) -> list[ReleaseKey]:
    return [ReleaseKey(bounds_job(version), step, KIND) for step in range(STEPS)]


def _columns(table: Table, *, label: bool) -> tuple[TableColumn, ...]:
    if not label:
        return table.header.columns[: len(table.columns)]
    if table.label is None:
        raise BadInput(f"{table.path}: has no label to find bounds for; leave it out")
    return table.header.columns


def _affordable(plan: QuantilePlan, units: int) -> DiscreteGaussian:
    """Return the noise of a step, unless it would drown what is asked."""
    if units < plan.least_units:
        raise BadInput(
            f"bounds of {plan.n_columns} columns over {plan.n_rows} rows are lost in noise at rho "
            f"{rho_from_units(units):.4g}; give at least rho {rho_from_units(plan.least_units):.4g}"
            " or use the declared ones"
        )
    return plan.mechanism(units)


def _admit(ledger: Ledger, version: str, price: int) -> None:
    """Set the whole price aside, or refuse; nothing has been read yet."""
    job = bounds_job(version)
    with ledger.lock:
        begun = ledger.state.admitted.get((job, ""))
        if job in ledger.state.closed:  # adopted from a ledger that this one replaced
            raise JobClosed(
                "bounds of this dataset were asked for under a ledger that was replaced; "
                "ingest the source again to buy new ones"
            )
        if begun is not None and begun != price:
            raise RequestConflict(
                "a purchase of bounds for this dataset was interrupted; finish it for the same "
                f"price, rho {rho_from_units(begun)!r}, and the same columns"
            )
        ledger.admit(job, units=price)


def _request(version: str, columns: Sequence[TableColumn], *, thresholds: Int32Array) -> bytes:
    """Return everything that shapes the answer of a step; all of it is public."""
    facts = {
        "version": version,
        "columns": [asdict(column) for column in columns],
        "thresholds": thresholds.tolist(),
    }
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()


def _count(table: Table, thresholds: Int32Array) -> IntArray:
    """Count the rows at or below the thresholds, the label's coming last if they are there."""
    n_features = len(table.columns)
    counts = [count_at_most(table.columns, thresholds[:n_features])]
    if table.label is not None and len(thresholds) > n_features:
        counts.append(count_at_most(table.label.reshape(1, -1), thresholds[n_features:]))
    return np.concatenate(counts).reshape(-1)


def _bought(table: Table, ledger: Ledger, releases: Sequence[Released]) -> BoughtBounds:
    """Work the bounds out of what was released, and of public numbers."""
    charges = [ledger.state.charges[release.key] for release in releases]
    n_counts = int(charges[0].mechanism.record()["l2_sensitivity2"])
    plan = QuantilePlan(n_counts // len(LEVELS), table.n_rows)
    columns = table.header.columns[: plan.n_columns]
    return BoughtBounds(
        version=version_of(table),
        columns=columns,
        tight=tight_bounds(
            [column.bounds for column in columns], plan, [release.body for release in releases]
        ),
        price=sum(charge.units for charge in charges),
        releases=tuple(releases),
    )
