"""Simulations from Python: `simulate` over columns, `simulate_admm` over clients."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from colonnade.client import AdmmOptions, JobOptions, JobReport, JobView
from colonnade.client.admm_planning import check_admm
from colonnade.core.arguments import BadArgument
from colonnade.core.scratch import passing_folder
from colonnade.data.frames import Frame
from colonnade.methods.problem import Loss
from colonnade.simulate.admm.from_file import people_from
from colonnade.simulate.admm.job import ClientsJob, run_clients
from colonnade.simulate.data.from_file import deal_columns, sites_from
from colonnade.simulate.data.held_out import divide, rows_held_out
from colonnade.simulate.data.story import party_names
from colonnade.simulate.data.table import Limits, load_table
from colonnade.simulate.parties_option import MAX_PARTIES
from colonnade.simulate.result import Simulation, SimulationRun
from colonnade.simulate.run import Clock, ColumnsJob, Show, run_columns

OnChange = Callable[[JobView], None]
O = TypeVar("O", JobOptions, AdmmOptions)  # noqa: E741


def simulate(
    data: Frame | str | Path,
    *,
    target: str,
    parties: Mapping[str, Sequence[str]] | int = 3,
    label_owner: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    loss: str | None = None,
    options: JobOptions | None = None,
    seeds: int | Sequence[int] = 1,
    bounds: Limits | None = None,
    schema: str | Path | None = None,
    bounds_share: float | None = None,
    holdout: float = 0.2,
    on_change: OnChange | None = None,
) -> Simulation:
    """Fit one model over columns that are split among organizations.

    A coordinator and the parties run as processes on this machine, with TLS, ledgers and exact
    noise, in a temporary folder that nobody else can read and that is removed afterwards. The
    noise is never seeded.

    Parameters
    ----------
    data
        A pandas or Polars frame, an Arrow table, a mapping from names to arrays, or the path of a
        CSV or Parquet file.
    target
        The label's column.
    parties
        The columns of each party, by its name; or how many parties columns are dealt out to.
    label_owner
        The party that alone has the label; by default every party has it.
    epsilon, delta, loss
        As in `JobOptions`; they take the place of those of ``options``.
    options
        All other hyperparameters.
    seeds
        How many runs, or their seeds, which choose the held-out rows.
    bounds
        Declared bounds of every column that a party has, and of the label if it is in there. By
        default they are taken from the data, rounded outward to powers of two, which a real party
        must not do.
    schema
        The same as a TOML file, as parties write it.
    bounds_share
        Part of the budget that buys tighter bounds; by default what a rule recommends.
    holdout
        Part of the rows to score on that nothing is fitted to, at most 20000 rows; 0 scores the
        fitted rows.
    on_change
        Called with where the job stands, at every change.

    Returns
    -------
    Simulation
        With ``model``, ``report``, ``quality``, ``plot()``; of several runs the medians.

    Examples
    --------
    >>> import numpy as np
    >>> draw = np.random.default_rng(0)
    >>> people = {"age": draw.uniform(20, 90, 3000), "iron": draw.normal(15, 4, 3000)}
    >>> people["cost"] = 30 * people["age"] + 50 * people["iron"]
    >>> found = simulate(
    ...     people,
    ...     target="cost",
    ...     parties={"hospital": ["age"], "laboratory": ["iron"]},
    ...     epsilon=10.0,
    ...     bounds={"age": (0, 110), "iron": (0, 40), "cost": (0, 6000)},
    ... )
    >>> found.report.epsilon <= 10.0
    True
    >>> found.quality.ours > 0.5
    True
    """
    chosen = _merged(options or JobOptions(), epsilon, delta, loss)
    chosen = replace(chosen, label_owner=label_owner or chosen.label_owner)
    if isinstance(parties, int):
        names: Sequence[str] = party_names(_count(parties))
    else:
        names = _checked(parties, target, bounds)
    if not names:
        raise BadArgument("parties", "must name at least one party and its columns")
    if chosen.label_owner not in (None, *names):
        raise BadArgument("label_owner", f"must be one of {', '.join(names)}")
    if bounds_share is not None and not 0.0 <= bounds_share < 1.0:
        raise BadArgument("bounds_share", "must be at least 0 and below 1")
    table = load_table(data, target, loss=chosen.loss, bounds=bounds, schema=schema)
    columns = deal_columns(table, names) if isinstance(parties, int) else parties
    sites = sites_from(table, columns, owner=chosen.label_owner)
    held_out = rows_held_out(holdout, table.n_rows)

    def run(folder: Path, seed: int) -> JobReport:
        job = ColumnsJob(divide(sites, held_out, seed=seed), chosen, bounds_share, seed)
        show, clock = _looked_on(on_change), Clock()
        return JobReport(run_columns(folder, job, show=show, say=_nothing, clock=clock))

    return _runs(run, seeds)


def simulate_admm(
    data: Frame | str | Path,
    *,
    target: str,
    clients: str | int,
    epsilon: float | None = None,
    delta: float | None = None,
    loss: str | None = None,
    options: AdmmOptions | None = None,
    seeds: int | Sequence[int] = 1,
    bounds: Limits | None = None,
    schema: str | Path | None = None,
    holdout: float = 0.2,
    hosts: int = 1,
    skewed: bool = False,
    drop_out: float = 0.0,
    on_change: OnChange | None = None,
) -> Simulation:
    """Fit one model over rows that are split among clients, by federated ADMM.

    A coordinator and the clients' hosts run as processes on this machine, with a ledger account for
    every client and exact noise.

    Parameters
    ----------
    data, target, seeds, bounds, schema, holdout, on_change
        As for `simulate`; seeds choose the partition, too.
    clients
        The column that says whose each row is; or how many clients rows are dealt out to.
    epsilon, delta, loss
        As in `AdmmOptions`, of each client; they take the place of those of ``options``.
    options
        All other hyperparameters.
    hosts
        Processes that clients are divided among.
    skewed
        Deal rows of like labels to each client.
    drop_out
        Chance that a client is away when it is asked.

    Returns
    -------
    Simulation
        With ``model``, ``report``, ``quality``, ``plot()``; of several runs the medians.

    Examples
    --------
    >>> import numpy as np
    >>> draw = np.random.default_rng(0)
    >>> rows = {"age": draw.uniform(20, 90, 4000), "ward": draw.integers(0, 100, 4000)}
    >>> rows["cost"] = 30 * rows["age"] + draw.normal(0, 100, 4000)
    >>> found = simulate_admm(
    ...     rows, target="cost", clients="ward", epsilon=32.0, bounds={"age": (0, 110)}
    ... )
    >>> found.report["clients"]["local"]["max"]["epsilon"] <= 32.0
    True
    """
    chosen = _merged(options or AdmmOptions(), epsilon, delta, loss)
    check_admm(chosen)
    if not 0.0 <= drop_out < 1.0:
        raise BadArgument("drop_out", "must be at least 0 and below 1")
    column = clients if isinstance(clients, str) else None
    table = load_table(
        data, target, loss=chosen.loss, bounds=bounds, schema=schema, client_column=column
    )
    held_out = rows_held_out(holdout, table.n_rows)
    dealt_out = "skewed: like labels together" if skewed else "at random"
    partition = dealt_out if column is None else f"by the column {column}"

    def run(folder: Path, seed: int) -> JobReport:
        dealt = people_from(
            table,
            clients=clients if isinstance(clients, int) else 0,
            hosts=hosts,
            skewed=skewed,
            held_out=held_out,
            seed=seed,
        )
        facts: dict[str, float | str] = {
            "rows": sum(client.label.size for client in dealt.clients),
            "features": len(dealt.sites[0].encoded()),
            "hosts": hosts,
            "partition": partition,
            "drop_out": drop_out,
            "seed": seed,
        }
        job = ClientsJob(dealt, target, chosen, drop_out, facts, seed)
        show, clock = _looked_on(on_change), Clock()
        return JobReport(run_clients(folder, job, show=show, say=_nothing, clock=clock).report)

    return _runs(run, seeds)


def _runs(run: Callable[[Path, int], JobReport], seeds: int | Sequence[int]) -> Simulation:
    """Run once for each seed, each time in a folder that is gone afterwards."""
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen or min(chosen) < 0:
        raise BadArgument("seeds", "must be at least one, none negative")
    made = []
    for seed in chosen:
        with passing_folder() as folder:
            made.append(SimulationRun(seed, run(folder, seed)))
    return Simulation(tuple(made))


def _merged(options: O, epsilon: float | None, delta: float | None, loss: str | None) -> O:
    """Return the options with what was given beside them in its place."""
    beside = {"epsilon": epsilon, "delta": delta, "loss": loss}
    given: dict[str, Any] = {name: value for name, value in beside.items() if value is not None}
    made = replace(options, **given)
    for name, number in (("epsilon", made.epsilon), ("delta", made.delta or 0.0)):
        if not isinstance(number, Real):
            raise BadArgument(name, f"must be a number, not {type(number).__name__}")
    if made.loss not in (known := [each.value for each in (Loss.SQUARED, Loss.LOGISTIC)]):
        raise BadArgument("loss", f"must be one of {', '.join(known)}")
    return made


def _checked(
    parties: Mapping[str, Sequence[str]], target: str, bounds: Limits | None
) -> tuple[str, ...]:
    """Return the parties' names, if each comes with a list of columns that have bounds."""
    if not isinstance(parties, Mapping):
        raise BadArgument("parties", "must be a number, or give each party's columns by its name")
    for party, columns in parties.items():
        if isinstance(columns, str):
            raise BadArgument("parties", f"must give {party!r} a list of columns, not one text")
        if isinstance(bounds, Mapping):
            for column in set(columns) - {target, *bounds}:
                raise BadArgument("bounds", f"must have a pair for {column!r}, which {party} has")
    return tuple(parties)


def _count(parties: int) -> int:
    if not 1 <= parties <= MAX_PARTIES:
        raise BadArgument("parties", f"must lie between 1 and {MAX_PARTIES}")
    return parties


def _looked_on(on_change: OnChange | None) -> Show:
    """Return how a job's progress is passed on."""

    def show(views: Iterable[JobView]) -> Iterator[JobView]:
        for view in views:
            if on_change is not None:
                on_change(view)
            yield view

    return show


def _nothing(_text: str) -> None:
    """Say nothing; the report has it all."""
