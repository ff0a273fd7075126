"""One site: private linear models with scikit-learn's interface.

Fit a synthetic table with record-level differential privacy at several epsilons, and plot the score
on held-out rows, with ``python examples/one_site.py``.
"""

# --8<-- [start:imports]
import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

from colonnade.estimators import PrivateRidge

# --8<-- [end:imports]
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


# --8<-- [start:table]
def people(n_rows: int = 20_000, seed: int = 7) -> tuple[pd.DataFrame, pd.Series]:
    """Return a synthetic table: five measurements of each person, and a cost."""
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": draw.uniform(18, 95, n_rows),
            "systolic_bp": draw.normal(128, 18, n_rows),
            "glucose": draw.normal(105, 25, n_rows),
            "bmi": draw.normal(27, 5, n_rows),
            "visits": draw.poisson(3, n_rows).astype(float),
        }
    )
    signal = 40 * table["age"] + 12 * table["systolic_bp"] + 9 * table["glucose"]
    noise = draw.normal(0, 600, n_rows)
    return table, signal + 250 * table["visits"] + noise - 2500


# Public knowledge about each quantity, not computed from the rows; values outside are clipped.
BOUNDS = {
    "age": (0, 110),
    "systolic_bp": (70, 220),
    "glucose": (40, 300),
    "bmi": (12, 60),
    "visits": (0, 20),
}
COST = (0, 10_000)
# --8<-- [end:table]


# --8<-- [start:fit]
def fit(table: pd.DataFrame, cost: pd.Series, epsilon: float) -> PrivateRidge:
    """Fit one model at the price of ``epsilon``."""
    model = PrivateRidge(alpha=1.0, epsilon=epsilon, delta=1e-6, bounds=BOUNDS, y_bounds=COST)
    return model.fit(table, cost)


# --8<-- [end:fit]


def scores(table: pd.DataFrame, cost: pd.Series) -> tuple[dict[float, float], float]:
    """Return R2 on held-out rows for each epsilon, and without privacy."""
    train, test = slice(None, -4000), slice(-4000, None)
    private = {
        epsilon: float(fit(table[train], cost[train], epsilon).score(table[test], cost[test]))
        for epsilon in EPSILONS
    }
    plain = Ridge(alpha=1.0).fit(table[train], cost[train])
    return private, float(plain.score(table[test], cost[test]))


def draw(private: dict[float, float], plain: float, path: Path) -> None:
    """Plot R2 against epsilon."""
    mpl.use("svg")
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    axes.axhline(plain, color="#666", linestyle="--", label="not private")
    axes.plot(list(private), list(private.values()), "o-", color="#3949ab", label="private")
    axes.set(xscale="log", xlabel="epsilon of the fit (delta 1e-6)", ylabel="R2, held-out rows")
    axes.set_xticks(list(private), [f"{epsilon:g}" for epsilon in private])
    axes.minorticks_off()
    axes.set_ylim(min(0.0, *private.values()), 1.0)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    """Fit, print the results and plot them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    out = parser.parse_args().out
    table, cost = people()
    model = fit(table, cost, epsilon=1.0)
    print(model.privacy_)
    print(pd.Series(model.coef_, index=model.feature_names_in_).round(2).to_string())
    private, plain = scores(table, cost)
    for epsilon, r2 in private.items():
        print(f"epsilon {epsilon:<5g} R2 {r2:.3f}")
    print(f"not private   R2 {plain:.3f}")
    out.mkdir(parents=True, exist_ok=True)
    draw(private, plain, out / "one-site.svg")


if __name__ == "__main__":
    main()
