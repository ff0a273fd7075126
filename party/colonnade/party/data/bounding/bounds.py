"""Buy tighter bounds for a party's columns: once for a column of a version of its table.

Privacy: a purchase is twenty releases through the gate, one for each step of the bisection that
`methods.bounds` describes and prices for the columns that it is about. The whole price is set
aside before a row is read, so a purchase is never left half way for want of budget. What is bought
of a column is kept for it: other columns can be bought later, and a coordinator is told of those
that the policy lets take part. Noise is drawn for every count by itself, so that what is told of
one column says nothing about another.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeAlias

from colonnade.core.arrays import Int32Array
from colonnade.core.errors import (
    BadInput,
    JobClosed,
    ReleaseAbandoned,
    ReleasePurged,
    RequestConflict,
)
from colonnade.core.fixedpoint import Bounds
from colonnade.data.table import Table
from colonnade.data.table_header import PRESENCE, TableColumn
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger, Released
from colonnade.methods.bounds import (
    DECLARED,
    STEPS,
    Places,
    QuantilePlan,
    bounds_at,
    tight_places,
)
from colonnade.party.data.binding import check_binding, claim, note_use, rows_of
from colonnade.party.data.bounding.counts import count_rows
from colonnade.party.data.bounding.purchases import Purchase, purchases
from colonnade.party.data.clients import refuse_clients
from colonnade.party.data.dataset import Dataset
from colonnade.party.engine.base import Engine
from colonnade.party.engine.local import LOCAL
from colonnade.privacy.accounting import epsilon_of, rho_from_units
from colonnade.privacy.mechanisms import DiscreteGaussian

Progress: TypeAlias = Callable[[Iterable[int]], Iterable[int]]
"""Wrap the steps to be made, as ``tqdm`` does."""


@dataclass(frozen=True, slots=True)
class BoughtBounds:
    """Tighter bounds and the releases they follow from.

    Parameters
    ----------
    columns
        The columns that were asked for, as declared.
    tight
        Bounds of each of them; the declared ones where no others were found.
    price
        What was paid for the purchases that these columns were part of, in units of ``2**-50`` rho.
    """

    version: str
    columns: tuple[TableColumn, ...]
    tight: tuple[Bounds, ...]
    price: int
    releases: tuple[Released, ...]


def bought_bounds(dataset: Dataset, ledger: Ledger) -> dict[str, Bounds]:
    """Return the bounds that were bought, by column. Costs nothing."""
    declared = dataset.coarse.header.columns
    return {
        declared[place].name: bounds_at(declared[place].bounds, found)
        for place, found in _bought(dataset, ledger).items()
    }


def bought_places(dataset: Dataset, ledger: Ledger, names: Sequence[str]) -> list[int]:
    """Return two places of the fine grid for each of ``names``; nothing if none was bought."""
    if dataset.clients is not None:  # none are sold for rows of clients
        return []
    declared, found = dataset.coarse.header.columns, _bought(dataset, ledger)
    by_name = {declared[place].name: places for place, places in found.items()}
    if by_name.keys().isdisjoint(names):
        return []
    return [end for name in names for end in by_name.get(name, DECLARED)]


def bounds_price(dataset: Dataset, ledger: Ledger, names: Sequence[str]) -> int:
    """Return what was paid, in units, in purchases of bounds that any of ``names`` was part of."""
    columns = dataset.coarse.header.columns
    shown = {place for place, column in enumerate(columns) if column.name in names}
    charges = ledger.state.charges
    return sum(
        charges[key].units
        for purchase in purchases(dataset.version, ledger)
        if not shown.isdisjoint(purchase.columns)
        for key in purchase.keys
        if key in charges
    )


def buy_bounds(
    dataset: Dataset,
    ledger: Ledger,
    gate: Gate,
    *,
    units: int,
    columns: Sequence[str] | None = None,
    label: bool = False,
    progress: Progress = iter,
    engine: Engine = LOCAL,
) -> BoughtBounds:
    """Return tighter bounds for columns of a table, buying those that nobody has bought yet.

    Bounds already bought are returned free of charge, whatever ``units`` says now. A purchase that
    was interrupted goes on where it stopped, if asked for with the same price and columns.

    Parameters
    ----------
    gate
        Of the same ledger.
    units
        Most that all releases together may cost.
    columns
        Names; None for all features.
    label
        Whether to find bounds for the label too.
    engine
        Where rows are counted.
    """
    refuse_clients(ledger, divided=dataset.clients is not None)
    check_binding(rows_of(dataset), ledger)
    asked = _asked(dataset.coarse, columns, label=label)
    bought = _bought(dataset, ledger)
    if new := tuple(place for place in asked if place not in bought):
        purchase = Purchase(dataset.version, new)
        _check_free(purchase, dataset.coarse, ledger)
        try:
            _buy(purchase, dataset, ledger, gate, units=units, progress=progress, engine=engine)
        finally:
            note_use(rows_of(dataset), ledger)
    return _of(asked, dataset, ledger)


def _buy(
    purchase: Purchase,
    dataset: Dataset,
    ledger: Ledger,
    gate: Gate,
    *,
    units: int,
    progress: Progress,
    engine: Engine,
) -> None:
    plan = QuantilePlan(len(purchase.columns), dataset.coarse.n_rows)
    mechanism = _affordable(plan, units)
    _admit(ledger, purchase.job, plan.price(mechanism))
    claim(rows_of(dataset), ledger)
    bodies: list[bytes] = []
    for step in progress(range(STEPS)):
        dataset.check()
        # Of released bytes only, so a retry asks, and is answered, exactly the same.
        thresholds = plan.thresholds(bodies)
        request = _request(purchase, dataset.coarse, thresholds=thresholds)
        count = partial(count_rows, dataset.fine, purchase.columns, thresholds, engine=engine)
        key = purchase.keys[step]
        try:
            bodies.append(gate.release(key, request, mechanism, count, encode=plan.encode).body)
        except ReleaseAbandoned:
            with ledger.lock:  # nothing more will be asked
                ledger.close_job(purchase.job)
            raise


def _asked(table: Table, names: Sequence[str] | None, *, label: bool) -> tuple[int, ...]:
    """Return the places of the columns asked for, in the order of the table."""
    if label and table.label is None:
        raise BadInput(f"{table.path}: has no label to find bounds for; leave it out")
    columns = enumerate(table.header.columns)
    known = {each.name: place for place, each in columns if each.role != PRESENCE}
    exact = table.header.exact()
    default = () if names is not None else (name for name in table.names if name not in exact)
    asked = {known[name] for name in default}
    for name in names or ():
        if name not in known:
            raise BadInput(f"the table has no column {name!r}; it has {', '.join(known)}")
        asked.add(known[name])
    if label:
        asked.add(len(table.columns))
    for column in (table.header.columns[place] for place in sorted(asked)):
        if column.name in exact:
            raise BadInput(
                f"column {column.name!r} has the bounds that its levels give it; there are no "
                "tighter ones to buy"
            )
    if not asked and names is None:
        raise BadInput("all bounds follow from levels, so there are no tighter ones to buy")
    if not asked:
        raise BadInput("no column is named; name some, or leave the list out for all")
    return tuple(sorted(asked))


def _bought(dataset: Dataset, ledger: Ledger) -> dict[int, Places]:
    """Return where bounds were found, by column; columns whose releases were purged have none."""
    found: dict[int, Places] = {}
    for purchase in purchases(dataset.version, ledger):
        if purchase.is_done(ledger):
            plan = QuantilePlan(len(purchase.columns), dataset.coarse.n_rows)
            bodies = [release.body for release in ledger.stored_many(purchase.keys)]
            paid = sum(ledger.state.charges[key].units for key in purchase.keys)
            places = tight_places(plan, bodies, plan.mechanism(paid).sigma2)
            found |= dict(zip(purchase.columns, places, strict=True))
    return found


def _check_free(purchase: Purchase, table: Table, ledger: Ledger) -> None:
    """Refuse columns that an earlier purchase was about, unless this one continues it."""
    for other in purchases(purchase.version, ledger):
        if other.is_done(ledger) or not {*other.columns} & {*purchase.columns}:
            continue
        if not ledger.state.purged.isdisjoint(other.keys):
            raise ReleasePurged(
                "bounds of these columns were purged and are never drawn again; "
                "use the declared ones, or ingest the source again and buy new ones"
            )
        if other.job in ledger.state.closed:  # adopted from a ledger that this one replaced
            raise JobClosed(
                "bounds of these columns were asked for under a ledger that was replaced; "
                "ingest the source again to buy new ones"
            )
        if other != purchase:
            names = ",".join(table.header.columns[place].name for place in other.columns)
            price = rho_from_units(ledger.state.admitted[other.job, ""])
            raise RequestConflict(
                "a purchase of bounds was interrupted; finish it first, with its own columns and "
                f"price: {names} for rho {price!r}"
            )


def _affordable(plan: QuantilePlan, units: int) -> DiscreteGaussian:
    """Return the noise of a step, unless it would drown what is asked."""
    if units < plan.least_units:
        columns = f"{plan.n_columns} column{'s' * (plan.n_columns != 1)}"
        least = rho_from_units(plan.least_units)
        raise BadInput(
            f"bounds of {columns} over {plan.n_rows} rows are lost in noise at rho "
            f"{rho_from_units(units):.4g}; give at least rho {least:.4g} (epsilon "
            f"{epsilon_of(least, 1e-6):.3g} at delta 1e-6) or use the declared ones"
        )
    return plan.mechanism(units)


def _admit(ledger: Ledger, job: str, price: int) -> None:
    """Set the whole price aside, or refuse; nothing has been read yet."""
    with ledger.lock:
        begun = ledger.state.admitted.get((job, ""))
        if begun is not None and begun != price:
            raise RequestConflict(
                "a purchase of bounds for these columns was interrupted; finish it for the same "
                f"price, rho {rho_from_units(begun)!r}"
            )
        ledger.admit(job, units=price)


def _request(purchase: Purchase, table: Table, *, thresholds: Int32Array) -> bytes:
    """Return everything that shapes the answer of a step; all of it is public."""
    facts = {
        "version": purchase.version,
        "columns": [asdict(table.header.columns[place]) for place in purchase.columns],
        "thresholds": thresholds.tolist(),
    }
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()


def _of(asked: Sequence[int], dataset: Dataset, ledger: Ledger) -> BoughtBounds:
    """Work the bounds out of what was released, and of public numbers; the purchases are over."""
    found, declared = _bought(dataset, ledger), dataset.coarse.header.columns
    used = [
        purchase
        for purchase in purchases(dataset.version, ledger)
        if purchase.is_done(ledger) and {*purchase.columns} & {*asked}
    ]
    with ledger.lock:
        for purchase in used:
            ledger.close_job(purchase.job)
    releases = [each for purchase in used for each in ledger.stored_many(purchase.keys)]
    return BoughtBounds(
        version=dataset.version,
        columns=tuple(declared[place] for place in asked),
        tight=tuple(bounds_at(declared[place].bounds, found[place]) for place in asked),
        price=sum(ledger.state.charges[each.key].units for each in releases),
        releases=tuple(releases),
    )
