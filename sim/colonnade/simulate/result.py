"""What a simulation gave: models, reports, and quality beside references."""

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from colonnade.client import JobReport
from colonnade.core.errors import JobEnded
from colonnade.data.model import LinearModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Quality:
    """Scores of a model and of its references on the same rows; simulation only.

    Parameters
    ----------
    metric
        ``"r2"``, or ``"auc"`` for classes.
    ours
        Of the job's model.
    central
        Of a private model fitted with all data in one place.
    nonprivate
        Of a model without privacy.
    rows, n_rows
        ``"held-out"`` or ``"fitted"``, and how many they are.

    Examples
    --------
    >>> print(Quality("r2", 0.61, central=0.7, nonprivate=0.74, rows="held-out", n_rows=99))
    r2 0.610 on 99 held-out rows; private in one place 0.700, not private 0.740
    """

    metric: str
    ours: float
    central: float
    nonprivate: float
    rows: str
    n_rows: int

    def __str__(self) -> str:
        return (
            f"{self.metric} {self.ours:.3f} on {self.n_rows} {self.rows} rows; private in one "
            f"place {self.central:.3f}, not private {self.nonprivate:.3f}"
        )

    @classmethod
    def of(cls, report: JobReport) -> "Quality":
        """Read the quality of a simulated job's report."""
        found = report["quality"]
        return cls(**{name: found[name] for name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class SimulationRun:
    """One simulated job.

    Parameters
    ----------
    seed
        Of the held-out rows and of the references; noise has none.

    Examples
    --------
    >>> SimulationRun(0, JobReport({"job_id": "ab12"})).report.job_id
    'ab12'
    """

    seed: int
    report: JobReport

    @property
    def model(self) -> LinearModel:
        """The fitted model."""
        if (found := self.report.model) is None:
            raise JobEnded("the job fitted no model")
        return found

    @property
    def quality(self) -> Quality:
        """Its scores beside those of its references."""
        return Quality.of(self.report)


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a simulation gave, with one run or several.

    Examples
    --------
    >>> def run(seed, score):
    ...     scores = {"metric": "r2", "ours": score, "central": 0.7, "nonprivate": 0.8}
    ...     quality = scores | {"rows": "held-out", "n_rows": 100}
    ...     return SimulationRun(seed, JobReport({"job_id": str(seed), "quality": quality}))
    >>> found = Simulation((run(0, 0.5), run(1, 0.6), run(2, 0.1)))
    >>> found.quality.ours, found.report.job_id  # the median, and the report of its run
    (0.5, '0')
    """

    runs: tuple[SimulationRun, ...]

    @property
    def typical(self) -> SimulationRun:
        """The run with the median score; of two in the middle the worse one."""
        ordered = sorted(self.runs, key=lambda run: run.quality.ours)
        return ordered[(len(ordered) - 1) // 2]

    @property
    def model(self) -> LinearModel:
        """The model of the `typical` run."""
        return self.typical.model

    @property
    def report(self) -> JobReport:
        """The report of the `typical` run."""
        return self.typical.report

    @property
    def quality(self) -> Quality:
        """Median scores of all runs."""
        all_ = [run.quality for run in self.runs]
        first = all_[0]
        return Quality(
            metric=first.metric,
            ours=statistics.median(each.ours for each in all_),
            central=statistics.median(each.central for each in all_),
            nonprivate=statistics.median(each.nonprivate for each in all_),
            rows=first.rows,
            n_rows=first.n_rows,
        )

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw the coefficients by party, and the scores beside those of the references.

        Parameters
        ----------
        path
            Also write the picture there, in the format that the name ends with.
        """
        from colonnade.simulate.plot import draw  # noqa: PLC0415 (half a second of matplotlib)

        figure = draw(self)
        if path is not None:
            figure.savefig(path)
        return figure
