"""Clients: fit one model over the rows of many clients, each with its own privacy budget.

Run federated DP-ADMM over synthetic clients at one host, as real processes on this machine, with
``python examples/clients.py``.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from colonnade.client import AdmmOptions
from colonnade.simulate import Simulation, simulate_admm


# --8<-- [start:table]
def nights(clients: int = 500, rows: int = 60, seed: int = 5) -> pd.DataFrame:
    """Return synthetic nights: what a device measured during the day, and the hours slept."""
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "device": np.repeat(np.arange(clients), rows),
            "steps": draw.normal(8000, 3000, clients * rows).clip(0),
            "heart_rate": draw.normal(72, 9, clients * rows),
            "coffees": draw.poisson(2.5, clients * rows),
            "screen_hours": draw.gamma(4.0, 1.0, clients * rows),
        }
    )
    slept = 8 + table["steps"] / 4000 - 0.5 * table["coffees"] - 0.4 * table["screen_hours"]
    return table.assign(sleep_hours=slept + draw.normal(0, 0.5, len(table)))


# Public knowledge about each quantity, not computed from the rows.
BOUNDS = {
    "steps": (0, 16_000),
    "heart_rate": (50, 95),
    "coffees": (0, 6),
    "screen_hours": (0, 8),
    "sleep_hours": (4, 11),
}
# --8<-- [end:table]


# --8<-- [start:simulate]
def run(table: pd.DataFrame, epsilon: float) -> Simulation:
    """Fit one model over all devices; ``epsilon`` protects all rows of a device."""
    return simulate_admm(
        table,
        target="sleep_hours",
        clients="device",
        epsilon=epsilon,
        options=AdmmOptions(rounds=10),
        bounds=BOUNDS,
    )


# --8<-- [end:simulate]


def draw(found: dict[str, Simulation], path: Path) -> None:
    """Plot the score and both epsilons for each budget."""
    mpl.use("svg")
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.0), layout="constrained")
    names = list(found)
    plain = next(iter(found.values())).quality.nonprivate
    left.bar(names, [each.quality.ours for each in found.values()], color="#3949ab")
    left.axhline(plain, color="#666", linestyle="--", label="not private")
    left.set(ylabel="R2, held-out rows", ylim=(0, 1))
    left.legend(frameon=False, loc="lower right")
    places = range(len(names))
    about = [each.report["clients"] for each in found.values()]
    local = [each["local"]["max"]["epsilon"] for each in about]
    central = [each["central"]["epsilon"] for each in about]
    right.bar(
        [place - 0.2 for place in places], local, 0.4, color="#3949ab", label="local, enforced"
    )
    right.bar(
        [place + 0.2 for place in places],
        central,
        0.4,
        color="#c5cae9",
        label="central, model-based",
    )
    right.set(ylabel="epsilon at delta 1e-6", yscale="log", xticks=list(places))
    right.set_xticklabels(names)
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xlabel("budget of each client")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    """Run the federation for each budget, print the results and plot them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[2.0, 4.0, 16.0])
    arguments = parser.parse_args()
    table = nights()
    found = {f"{epsilon:g}": run(table, epsilon) for epsilon in arguments.epsilons}
    for name, each in found.items():
        about = each.report["clients"]
        local, central = about["local"]["max"], about["central"]
        print(f"budget {name}: R2 {each.quality.ours:.3f}, {about['answers']} answers")
        print(f"  enforced for each client: epsilon {local['epsilon']:.3g}")
        print(f"  {central['label']}: epsilon {central['epsilon']:.3g}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw(found, arguments.out / "clients.svg")


if __name__ == "__main__":
    main()
