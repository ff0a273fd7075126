"""Three organizations: one model over columns that no one of them holds alone.

Makes a synthetic file, and lets a hospital, a laboratory and an insurer, each with a third of its
columns, fit one model as real processes on this machine. Run it with
``python examples/three_organizations.py``.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

COLOURS = {"hospital": "#3b7dd8", "laboratory": "#e07b39", "insurer": "#2e9e6b"}


# --8<-- [start:table]
def write_people(path: Path, n_rows: int = 25_000, seed: int = 3) -> None:
    """Make up people with nine measurements that have a common cause, and their yearly cost."""
    draw = np.random.default_rng(seed)
    frailty = draw.normal(size=n_rows)

    def measured(centre: float, spread: float) -> np.ndarray[Any, Any]:
        return centre + spread * (0.5 * frailty + 0.85 * draw.normal(size=n_rows))

    table = pd.DataFrame(
        {
            # The hospital's columns, then the laboratory's, then the insurer's.
            "age": measured(55, 16),
            "systolic_bp": measured(130, 18),
            "bmi": measured(27, 5),
            "glucose": measured(5.8, 1.3),
            "creatinine": measured(80, 20),
            "crp": measured(6, 2.4),
            "claims": measured(5, 2),
            "sick_days": measured(8, 3.2),
            "drug_costs": measured(640, 250),
        }
    )
    cost = 20 * table["age"] + 150 * table["glucose"] + 1.5 * table["drug_costs"]
    table["annual_cost"] = cost + draw.normal(0, 400, n_rows)
    table.round(3).to_csv(path, index=False)


# --8<-- [end:table]


# --8<-- [start:simulate]
def simulate(people: Path, run: Path, epsilon: float = 2.0) -> dict[str, Any]:
    """Run coordinator and parties with TLS, ledgers and exact noise; return what was found."""
    command = [sys.executable, "-m", "colonnade.cli.main", "simulate", "--json"]
    command += ["--data", str(people), "--target", "annual_cost", "--parties", "3"]
    command += ["--epsilon", str(epsilon), "--out", str(run)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# --8<-- [end:simulate]


def draw(report: dict[str, Any], path: Path) -> None:
    """Draw the coefficients with their owners, and the score beside its references."""
    mpl.use("svg")
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot as plt

    features, quality = report["model"]["features"], report["quality"]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(8, 3.2), layout="constrained", width_ratios=(2, 1)
    )
    names = [each["name"] for each in features]
    colours = [COLOURS[each["party"]] for each in features]
    left.barh(names, [each["coef_scaled"] for each in features], color=colours)
    left.invert_yaxis()
    left.set_xlabel("coefficient, features and label scaled by their bounds")
    for party, colour in COLOURS.items():
        left.barh([names[0]], [0], color=colour, label=party)
    left.legend(frameon=False, fontsize="small")
    scores = {"this job": "ours", "one private site": "central", "not private": "nonprivate"}
    right.bar(list(scores), [quality[key] for key in scores.values()], color="#9fa8da")
    right.set(ylabel="R2, held-out rows", ylim=(0, 1))
    right.tick_params("x", labelrotation=25)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    """Make the file, run the federation, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        people, run = Path(folder) / "people.csv", Path(folder) / "run"
        write_people(people)
        found = simulate(people, run)
        report = json.loads((run / "report.json").read_text())
    print(report["privacy"]["statement"])
    for party in found["privacy"]["parties"]:
        print(f"{party['party']:<11} epsilon {party['epsilon']:.3f}")
    print(f"R2 {found['quality']['ours']:.3f}; payload {report['uplink']['payload_bytes']} bytes")
    out.mkdir(parents=True, exist_ok=True)
    draw(report, out / "three-organizations.svg")


if __name__ == "__main__":
    main()
