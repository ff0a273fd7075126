"""Three organizations: fit one model over columns that none of them holds alone.

A hospital, a laboratory and an insurer each hold a third of the columns of a synthetic table and
fit one model, as real processes on this machine, with ``python examples/three_organizations.py``.
"""

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from colonnade.simulate import Simulation, simulate


# --8<-- [start:table]
def people(n_rows: int = 25_000, seed: int = 3) -> pd.DataFrame:
    """Return synthetic people: nine measurements with a common cause, and their yearly cost."""
    draw = np.random.default_rng(seed)
    frailty = draw.normal(size=n_rows)

    def measured(centre: float, spread: float) -> np.ndarray[Any, Any]:
        return centre + spread * (0.5 * frailty + 0.85 * draw.normal(size=n_rows))

    table = pd.DataFrame(
        {
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
    return table.assign(annual_cost=cost + draw.normal(0, 400, n_rows)).round(3)


PARTIES = {
    "hospital": ["age", "systolic_bp", "bmi"],
    "laboratory": ["glucose", "creatinine", "crp"],
    "insurer": ["claims", "sick_days", "drug_costs"],
}
# --8<-- [end:table]


# --8<-- [start:simulate]
def run(table: pd.DataFrame, epsilon: float = 2.0) -> Simulation:
    """Run coordinator and parties with TLS, ledgers and exact noise, and return the result."""
    return simulate(table, target="annual_cost", parties=PARTIES, epsilon=epsilon)


# --8<-- [end:simulate]


# --8<-- [start:use]
def show(found: Simulation, table: pd.DataFrame) -> None:
    """Print the guarantee, and use the model."""
    print(found.report.statement)
    for party, epsilon in found.report.epsilon_by_party.items():
        print(f"{party:<11} epsilon {epsilon:.3f}")
    print(f"R2 {found.quality.ours:.3f}; payload {found.report.payload_bytes} bytes")
    print(found.model.coefficients()[["party", "feature", "coef"]].round(2).to_string(index=False))
    print("predicted for three people:", found.model.predict(table.head(3)).round())


# --8<-- [end:use]


def main() -> None:
    """Create the table, run the federation, print the result and plot it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    out = parser.parse_args().out
    table = people()
    found = run(table)
    show(found, table)
    out.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.fonttype": "none"}):
        found.plot(out / "three-organizations.svg")


if __name__ == "__main__":
    main()
