"""The options of ``colonnade fit`` and ``colonnade party fit``, and the table that is read."""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from colonnade.cli.amounts import with_stated_epsilon
from colonnade.cli.run_folder import check_out
from colonnade.core.errors import BadInput, BudgetExceeded, NotBound
from colonnade.data.model import load_model
from colonnade.data.schema import load_schema
from colonnade.data.table import Table
from colonnade.linear.losses import find_loss
from colonnade.linear.penalties import AnyPenalty, Penalty, make_penalty
from colonnade.linear.registry import find_entry
from colonnade.party.data.dataset import open_dataset
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.fit_order import FitOrder, FitTable, file_table, folder_table
from colonnade.solvers.iteration import Diverged
from colonnade.solvers.registry import SOLVERS, Solver, default_solver

_TYPES = {int: "a whole number", float: "a number", bool: "true or false"}


def add_fit_options(parser: argparse.ArgumentParser) -> None:
    """Add what both commands take."""
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument(
        "--loss",
        default="squared",
        metavar="NAME",
        help="squared (default), logistic or hinge (the linear SVM), which see whether the label "
        "is above the middle of its bounds, or a registered loss",
    )
    parser.add_argument("--l1", type=float, default=0.0, help="default 0")
    parser.add_argument("--l2", type=float, default=0.0, help="default 0")
    parser.add_argument(
        "--box", type=float, default=float("inf"), help="largest size of a coefficient"
    )
    parser.add_argument(
        "--penalty",
        metavar="NAME=STRENGTH",
        help="a registered penalty, instead of --l1, --l2 and --box",
    )
    parser.add_argument(
        "--no-intercept",
        action="store_true",
        help="the model passes through the middle of all bounds",
    )
    parser.add_argument(
        "--solver",
        metavar="NAME",
        help="gram (default for squared and logistic loss), cd (default for other losses with "
        "curvature), sgd (default for those without), gcd, frank_wolfe, admm, dual, or a "
        "registered solver",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a hyperparameter of the solver, such as passes=5; again for more",
    )
    parser.add_argument("--epsilon", type=float, required=True, help="of this fit, with --delta")
    parser.add_argument("--delta", type=float, help="default min(1e-6, 1 / (10 rows))")
    parser.add_argument("--mirror", type=Path, help="head mirror, if kept outside the folder")
    parser.add_argument(
        "--bind",
        metavar="REASON",
        help="go on with other rows about the same people than the ledger was used with; why, for "
        "the record",
    )
    parser.add_argument("--name", default="fit", help="of the run; another one is a new fit")


def read_order(arguments: argparse.Namespace, *, noise: Any) -> FitOrder:
    """Return what is asked for, and could be written."""
    check_out(arguments.out)
    if arguments.ledger is None:  # a fit without a ledger is a new one every time
        check_place(arguments.out, job_id=None)
    solver = arguments.solver or default_solver(find_loss(arguments.loss)).name
    return FitOrder(
        name=arguments.name,
        loss=arguments.loss,
        solver=make_solver(solver, arguments.set),
        epsilon=arguments.epsilon,
        delta=arguments.delta,
        penalty=_penalty(arguments),
        intercept=not arguments.no_intercept,
        noise=noise,
    )


def check_place(out: Path, *, job_id: str | None) -> None:
    """Refuse a folder that something is in, unless it is this very job's, which is replayed."""
    if not out.exists() or not any(out.iterdir()):
        return
    try:
        if load_model(out / "model.json").job_id == job_id:
            return
    except BadInput:  # there is none, or it cannot be read
        pass
    raise BadInput(f"{out} is not empty and holds no replay of this fit; name a new folder")


def _penalty(arguments: argparse.Namespace) -> AnyPenalty:
    if arguments.penalty is None:
        return Penalty(arguments.l1, arguments.l2, arguments.box)
    if (arguments.l1, arguments.l2, arguments.box) != (0.0, 0.0, float("inf")):
        raise ValueError("--penalty stands alone, without --l1, --l2 and --box")
    name, _, strength = arguments.penalty.partition("=")
    try:
        amount = float(strength)
    except ValueError:
        raise ValueError(f"--penalty: write NAME=STRENGTH, such as {name}=0.1") from None
    return make_penalty(name, amount)


def make_solver(name: str, settings: list[str]) -> Solver:
    """Make the solver; a hyperparameter is a whole number, a number, true, false or a word."""
    kind = find_entry(SOLVERS, "solver", name)
    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    chosen: dict[str, Any] = {}
    for setting in settings:
        key, given, text = setting.partition("=")
        if not given:
            raise ValueError(f"--set {setting}: write NAME=VALUE, such as {key}=5")
        if key not in known:
            raise ValueError(f"solver {name} has no setting {key!r}; it has {', '.join(known)}")
        chosen[key] = _read_setting(key, text, hints[key])
    return kind(**chosen)


def _read_setting(key: str, text: str, hint: Any) -> Any:
    """Read a value as one of the types, or one of the words, that its annotation allows."""
    allowed = list(get_args(hint)) if get_origin(hint) is not Literal else [hint]
    allowed = allowed or [hint]
    words = [word for each in allowed if get_origin(each) is Literal for word in get_args(each)]
    if text in words:
        return text
    readers: dict[type, Callable[[str], Any]] = {bool: json.loads, int: int, float: float}
    for kind, read in readers.items():
        if kind in allowed:
            try:
                value = read(text)
            except ValueError:
                continue
            if type(value) is kind:
                return value
    told = [_TYPES[kind] for kind in readers if kind in allowed] + words
    raise ValueError(f"setting {key} must be {' or '.join(told)}: --set {key}=VALUE")


@contextmanager
def open_table(arguments: argparse.Namespace) -> Iterator[FitTable]:
    """Open an ingested table, or ingest a file into a private folder for the time of the fit."""
    if arguments.data.is_dir():
        with open_dataset(arguments.data) as dataset:
            yield folder_table(dataset)
        return
    if arguments.schema is None:
        raise BadInput(f"{arguments.data}: a file needs --schema, which declares the bounds")
    schema = load_schema(arguments.schema)
    if schema.label is None:
        raise BadInput(f"{arguments.schema}: there is no label; declare it in a [label] section")
    with tempfile.TemporaryDirectory(prefix="colonnade-fit-") as folder:  # mode 0700
        summary = ingest(schema, FileSource(arguments.data), out=Path(folder))
        yield file_table(Table.open(summary.coarse))


@contextmanager
def fit_errors(arguments: argparse.Namespace) -> Iterator[None]:
    """Turn what a solver refuses into one line, with the price as it was stated."""
    try:
        yield
    except Diverged as error:
        raise BadInput(
            f"the coefficients ran away at {error}; --set a smaller step or clip"
        ) from None
    except BudgetExceeded as error:
        raise BudgetExceeded(with_stated_epsilon(error, arguments)) from None
    except NotBound as error:
        raise NotBound(f"{error}; here --bind REASON says so") from None
    except ValueError as error:  # names, strengths, epsilon and delta are checked where used
        raise BadInput(f"cannot fit: {error}") from None
