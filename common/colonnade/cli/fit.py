"""``colonnade fit``: a private linear model on one organization's rows."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colonnade.cli.fit_input import make_solver, open_table, solver_rows

if TYPE_CHECKING:
    from colonnade.core.table import Table
    from colonnade.optim.model import LinearModel
    from colonnade.optim.solvers.fitting import Fitted, Objective
    from colonnade.optim.solvers.fitting import Table as Rows
    from colonnade.optim.solvers.solve import Solver
    from colonnade.privacy.ledger import Ledger

_SOLVERS = ("cd", "gcd", "sgd", "frank_wolfe", "admm", "dual")  # a test compares with SOLVERS
NOT_PRIVATE = "NOT PRIVATE: fast noise is for experiments; publish nothing of this model."


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "fit",
        help="fit a private linear model on one table",
        description="Fits a linear model with differential privacy for one row replaced, on rows "
        "that are all in one place, and writes model.json and report.json. Minimises the mean loss "
        "plus --l1 times the sum of sizes plus --l2 / 2 times the sum of squares of the "
        "coefficients, in the units of the file. With --ledger every release is charged, in full, "
        "before it is computed; the same command again replays it and costs nothing.",
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="CSV, Parquet, or the folder of an ingested table"
    )
    parser.add_argument("--schema", type=Path, help="columns, bounds and label of a file (TOML)")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument(
        "--loss", choices=("squared", "logistic"), default="squared", help="default squared"
    )
    parser.add_argument("--l1", type=float, default=0.0, help="default 0")
    parser.add_argument("--l2", type=float, default=0.0, help="default 0")
    parser.add_argument(
        "--no-intercept",
        action="store_true",
        help="the model passes through the middle of all bounds",
    )
    parser.add_argument("--solver", choices=_SOLVERS, default="cd", help="default cd")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the solver, such as passes=5; again for more",
    )
    parser.add_argument("--epsilon", type=float, required=True, help="of this fit, with --delta")
    parser.add_argument("--delta", type=float, help="default min(1e-6, 1 / (10 rows))")
    parser.add_argument(
        "--noise", choices=("exact", "fast"), default="exact", help="fast is not private"
    )
    parser.add_argument("--ledger", type=Path, help="ledger folder: charge the fit to it")
    parser.add_argument("--mirror", type=Path, help="head mirror, if kept outside the folder")
    parser.add_argument("--name", default="fit", help="of the run; another one is a new fit")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_run, usage_error=parser.error)


def _run(arguments: argparse.Namespace) -> int:
    from colonnade.core.errors import EXIT_OK, BadInput
    from colonnade.optim.solvers.iteration import Diverged

    if arguments.ledger is not None and arguments.noise != "exact":
        arguments.usage_error("a ledger accepts exact noise only")
    try:
        solver = make_solver(arguments.solver, arguments.set)
        with open_table(arguments) as table:
            report, model = _fit(arguments, table, solver)
    except Diverged as error:
        raise BadInput(
            f"the coefficients ran away at {error}; --set a smaller step or clip"
        ) from None
    except ValueError as error:  # settings, strengths, epsilon and delta are checked where used
        raise BadInput(f"cannot fit: {error}") from None
    _write(arguments.out, report, model)
    print(json.dumps(report) if arguments.json else _to_text(arguments.out, report))
    return EXIT_OK


def _fit(
    arguments: argparse.Namespace, table: "Table", solver: "Solver"
) -> "tuple[dict[str, Any], LinearModel]":
    import hashlib
    import sys

    from tqdm import tqdm

    from colonnade.optim.solvers.fitting import Objective, fit_table
    from colonnade.optim.solvers.losses import LOSSES
    from colonnade.privacy.accounting import default_delta

    objective = Objective(LOSSES[arguments.loss], arguments.l1, arguments.l2)
    rows = solver_rows(
        table, classes=objective.loss.classifies, intercept=not arguments.no_intercept
    )
    delta = default_delta(table.n_rows) if arguments.delta is None else arguments.delta
    spec = _spec(arguments, table, solver, objective, delta)
    # Of public declarations only: a digest of rows in a published model would tell them apart.
    job = hashlib.sha256(spec).hexdigest()
    with (
        tqdm(
            total=solver.steps(*rows.design.shape),
            desc="fit",
            unit="step",
            leave=False,
            file=sys.stderr,
            disable=None,  # a bar on a terminal, nothing elsewhere
        ) as bar,
        _charged(arguments, rows, solver, delta=delta, job=job, spec=spec) as (gated, spent),
    ):

        def show(done: int) -> None:
            bar.update(done - bar.n)

        fitted = fit_table(
            rows,
            objective,
            solver,
            epsilon=arguments.epsilon,
            delta=delta,
            noise=arguments.noise,
            gated=gated,
            progress=show,
        )
        ledger = spent()
    model = _model(table, fitted, job=job, loss=arguments.loss)
    report = {
        "job_id": job,
        "name": arguments.name,
        "n_rows": table.n_rows,
        "loss": arguments.loss,
        "penalty": {"l1": arguments.l1, "l2": arguments.l2},
        "solver": repr(solver),
        "privacy": fitted.claim.to_object(),
        "ledger": ledger,
        "model": model.to_object(),
    }
    return report, model


def _spec(
    arguments: argparse.Namespace,
    table: "Table",
    solver: "Solver",
    objective: "Objective",
    delta: float,
) -> bytes:
    """Return everything public that shapes the fit, as the ledger's request."""
    facts = {
        "name": arguments.name,
        "n_rows": table.n_rows,
        "columns": [
            [column.name, column.role, column.bounds.low, column.bounds.high, column.fill]
            for column in table.header.columns
        ],
        # The random name of an ingest; a file read for one fit has a new one every time.
        "dataset": table.header.dataset_version if arguments.data.is_dir() else "",
        "loss": objective.loss.name,
        "l1": objective.l1,
        "l2": objective.l2,
        "intercept": not arguments.no_intercept,
        "solver": repr(solver),
        "epsilon": arguments.epsilon,
        "delta": delta,
        "noise": arguments.noise,
    }
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()


@contextmanager
def _charged(
    arguments: argparse.Namespace,
    rows: "Rows",
    solver: "Solver",
    *,
    delta: float,
    job: str,
    spec: bytes,
) -> "Iterator[tuple[Any, Callable[[], dict[str, Any] | None]]]":
    """Open the ledger, admit the fit, and yield its door and a reading of the spending.

    One admission for the fit: it is affordable as a whole, or refused before anything is computed.
    One release a step: each depends on the ones before, a killed fit goes on where it was, and an
    auditor recomputes every price from its own mechanism.
    """
    if arguments.ledger is None:
        yield None, lambda: None
        return
    from colonnade.optim.solvers.iteration import Gated
    from colonnade.optim.solvers.solve import make_plan
    from colonnade.privacy.files import LedgerFiles
    from colonnade.privacy.founding import open_ledger
    from colonnade.privacy.gate import Gate
    from colonnade.privacy.sampling import OsNoise

    plan = make_plan(
        solver, rows.design.shape, epsilon=arguments.epsilon, delta=delta, enforced=True
    )
    ledger = open_ledger(LedgerFiles(arguments.ledger, arguments.mirror))
    try:
        ledger.admit(job, units=plan.units(enforced=True))
        before = ledger.budget().spent
        gated = Gated(Gate(ledger, OsNoise()), job, spec)
        yield gated, lambda: _spending(ledger, before)
    finally:
        ledger.close()


def _spending(ledger: "Ledger", before: int) -> dict[str, Any]:
    from colonnade.privacy.accounting import rho_from_units

    budget = ledger.budget()
    return {
        "ledger_id": ledger.opened.ledger_id,
        "charged_now_rho": rho_from_units(budget.spent - before),
        "left_rho": rho_from_units(budget.remaining - ledger.state.reserved.get("", 0)),
    }


def _model(table: "Table", fitted: "Fitted", *, job: str, loss: Any) -> "LinearModel":
    from colonnade.optim.model import LinearModel, ModelFeature, ModelLabel

    label = table.header.columns[-1]
    return LinearModel(
        job_id=job,
        loss=loss,
        label=ModelLabel(label.name, label.bounds.low, label.bounds.high),
        intercept_scaled=fitted.intercept_scaled,
        features=tuple(
            ModelFeature("local", name, bounds.low, bounds.high, float(coef))
            for name, bounds, coef in zip(
                table.names, table.bounds, fitted.coef_scaled, strict=True
            )
        ),
        private=fitted.claim.private,
    )


def _write(out: Path, report: dict[str, Any], model: "LinearModel") -> None:
    from colonnade.core.errors import BadInput

    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "model.json").write_text(model.to_json(), encoding="utf-8")
        text = json.dumps(report, indent=1, allow_nan=False)
        (out / "report.json").write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{out}: cannot write the model: {error.strerror}") from None


def _to_text(out: Path, report: dict[str, Any]) -> str:
    privacy, ledger = report["privacy"], report["ledger"]
    features = sorted(report["model"]["features"], key=lambda each: -abs(each["coef_scaled"]))
    width = max(len(each["name"]) for each in features)
    lines = [f"{out}: model.json, report.json"]
    lines += [f"  {each['name']:<{width}}  {each['coef']:>12.6g}" for each in features[:20]]
    lines.append(f"  {'(intercept)':<{width}}  {report['model']['intercept']:>12.6g}")
    if not privacy["private"]:
        return "\n".join([*lines, NOT_PRIVATE])
    lines.append(
        f"privacy  epsilon {privacy['epsilon']:.4g} at delta {privacy['delta']:g}, "
        f"{privacy['neighbours']}"
    )
    if ledger is not None:
        told = f"charged rho {ledger['charged_now_rho']:.6g}, left {ledger['left_rho']:.6g}"
        replayed = "" if ledger["charged_now_rho"] else "  (a replay; --name another for a new fit)"
        lines.append(f"ledger   {told}{replayed}")
    return "\n".join(lines)
