"""Clients: one model over the rows of many, each with a privacy budget of its own.

Runs federated DP-ADMM over synthetic clients at one host, as real processes on this machine. Run it
with ``python examples/clients.py``.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl


# --8<-- [start:simulate]
def simulate(run: Path, epsilon: float) -> dict[str, Any]:
    """Fit one model over 500 clients of 50 rows; ``epsilon`` is each client's own."""
    command = [sys.executable, "-m", "colonnade.cli.main", "simulate", "admm", "--json"]
    command += ["--clients", "500", "--rounds", "10", "--epsilon", str(epsilon)]
    command += ["--out", str(run)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# --8<-- [end:simulate]


def draw(found: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw the score and both epsilons for each budget."""
    mpl.use("svg")
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.0), layout="constrained")
    names = list(found)
    plain = next(iter(found.values()))["quality"]["nonprivate"]["score"]
    left.bar(names, [each["quality"]["score"] for each in found.values()], color="#3949ab")
    left.axhline(plain, color="#666", linestyle="--", label="not private")
    left.set(ylabel="R2, held-out rows", ylim=(0, 1))
    left.legend(frameon=False, loc="lower right")
    places = range(len(names))
    local = [each["privacy"]["local"]["max"]["epsilon"] for each in found.values()]
    central = [each["privacy"]["central"]["epsilon"] for each in found.values()]
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
    """Run the federation for each budget, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[4.0, 16.0, 64.0])
    arguments = parser.parse_args()
    found = {}
    for epsilon in arguments.epsilons:
        with tempfile.TemporaryDirectory() as folder:
            found[f"{epsilon:g}"] = simulate(Path(folder) / "run", epsilon)
    for name, each in found.items():
        local, central = each["privacy"]["local"]["max"], each["privacy"]["central"]
        print(f"budget {name}: R2 {each['quality']['score']:.3f}, {each['answers']} answers")
        print(f"  enforced for each client: epsilon {local['epsilon']:.3g}")
        print(f"  {central['label']}: epsilon {central['epsilon']:.3g}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw(found, arguments.out / "clients.svg")


if __name__ == "__main__":
    main()
