"""What a solver is, and the solvers that are known by name."""

from dataclasses import Field, fields
from typing import Any, ClassVar, Protocol

from colonnade.linear.losses import LOGISTIC_CODE, SQUARED_CODE, Loss
from colonnade.linear.registry import add_entry, find_entry
from colonnade.solvers.algorithms.admm import Admm
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.algorithms.frank_wolfe import FrankWolfe
from colonnade.solvers.algorithms.gram import Gram
from colonnade.solvers.algorithms.greedy import GreedyDescent
from colonnade.solvers.algorithms.sgd import StochasticDescent
from colonnade.solvers.budgets import ReleasePart
from colonnade.solvers.context import Setting
from colonnade.solvers.iteration import Operator
from colonnade.solvers.problem import Problem


class Solver(Protocol):
    """A frozen dataclass of hyperparameters that says how to solve a problem.

    ``name`` is what users call it. ``reads_rows`` says in which order it reads a table: whole
    rows, else whole columns.
    """

    name: ClassVar[str]
    reads_rows: ClassVar[bool]

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot solve ``problem``, or None."""

    def steps(self, n_rows: int, n_features: int) -> int:
        """Return the number of steps."""

    def parts(self, n_rows: int, n_features: int) -> tuple[ReleasePart, ...]:
        """Return what a run releases."""

    def start(self, given: Setting) -> Operator:
        """Return the operator, with anything bought that it needs first."""


class Unsuitable(ValueError):
    """The loss, the penalty and the solver do not go together."""


SOLVERS: dict[str, type[Solver]] = {
    "gram": Gram,
    "cd": CoordinateDescent,
    "gcd": GreedyDescent,
    "sgd": StochasticDescent,
    "frank_wolfe": FrankWolfe,
    "admm": Admm,
    "dual": DualDescent,
}


def register_solver(kind: type[Solver]) -> type[Solver]:
    """Make a solver known by its name, to `colonnade fit` and to the estimators; return it.

    It may be used as a decorator. Privacy: a registered solver is trusted code. Its operator reads
    rows only in the ``compute`` that it passes to a `Release`, and its ``parts`` price mechanisms
    whose sensitivity bounds what ``compute`` returns, for every table and every history.

    Raises
    ------
    ValueError
        If the name is taken, a hyperparameter has no default, or a method is missing.
    TypeError
        If the class is no dataclass.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @register_solver
    ... @dataclass(frozen=True)
    ... class Patient(CoordinateDescent):
    ...     name = "doc_patient"
    ...     passes: int = 50
    >>> make_solver("doc_patient").steps(n_rows=1000, n_features=3)
    150
    >>> del SOLVERS["doc_patient"]
    """
    parts: tuple[Field[Any], ...] = fields(kind)  # type: ignore[arg-type]
    if open_ := [each.name for each in parts if each.default is each.default_factory]:
        raise ValueError(f"every hyperparameter needs a default, and {open_[0]} has none")
    needed = ("name", "reads_rows", "refusal", "steps", "parts", "start")
    if missing := [part for part in needed if not hasattr(kind, part)]:
        raise ValueError(f"a solver has {', '.join(missing)}")
    add_entry(SOLVERS, "solver", kind.name, kind)
    return kind


def default_solver(loss: Loss) -> Solver:
    """Return the solver that suits a loss, with its default hyperparameters.

    Examples
    --------
    >>> from colonnade.linear.losses import HINGE, SQUARED
    >>> default_solver(SQUARED).name, default_solver(HINGE).name
    ('gram', 'sgd')
    """
    if loss.code in (SQUARED_CODE, LOGISTIC_CODE):
        return Gram()
    return CoordinateDescent() if loss.smooth else StochasticDescent()


def make_solver(solver: str | Solver) -> Solver:
    """Return the solver of a name, with its default hyperparameters, or the solver itself.

    Examples
    --------
    >>> make_solver("gcd").iterations
    60
    """
    if not isinstance(solver, str):
        return solver
    return find_entry(SOLVERS, "solver", solver)()


def check(problem: Problem, solver: Solver) -> None:
    """Raise `Unsuitable`, with the reason, unless ``solver`` can solve ``problem``.

    Examples
    --------
    >>> from colonnade.linear.losses import HINGE
    >>> from colonnade.linear.penalties import no_penalty
    >>> from colonnade.solvers.problem import plain
    >>> check(plain(HINGE, no_penalty(), 3), FrankWolfe())
    Traceback (most recent call last):
    colonnade.solvers.registry.Unsuitable: Frank-Wolfe needs a smooth loss, which hinge is not
    """
    if (reason := solver.refusal(problem)) is not None:
        raise Unsuitable(reason)
