"""Three made-up files as organizations have them: other people, other orders, other dialects.

The hospital writes semicolons and decimal commas and knows who was readmitted; the laboratory
writes plain CSV with blanks; the insurer exports UTF-16 with tabs. Each lists two thirds of all
people.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray, IntArray

STUDY = "study"
"""The federation's name, and its folder's."""
PARTIES = ("hospital", "laboratory", "insurer")
LABEL = "readmitted"
WARDS = ("surgery", "medicine", "geriatrics")
PLANS = ("basic", "plus, family", "full")
BOUNDS = {
    "born": ("1925-01-01", "2010-12-31"),
    "glucose": ("40", "300"),
    "crp": ("0", "30"),
    "creatinine": ("0.2", "3"),
    "claims": ("0", "12000"),
    "since": ("1990-01-01", "2025-12-31"),
}
"""What somebody who knows the quantities declares, without looking at the rows.

Noise grows with their width; a few large values are clipped.
"""

ID_COLUMNS = {"hospital": "patient", "laboratory": "person", "insurer": "member"}
_LISTED = 2 / 3


@dataclass(frozen=True, slots=True)
class People:
    """What is true of everybody; no organization knows all of it."""

    age: IntArray
    ward: IntArray
    glucose: FloatArray
    crp: FloatArray
    creatinine: FloatArray
    abnormal: AnyArray  # of truth values
    claims: IntArray
    plan: IntArray
    joined: IntArray
    readmitted: AnyArray  # of truth values

    def __len__(self) -> int:
        return len(self.age)


def make_people(count: int, seed: int) -> People:
    """Draw people; readmission depends on columns of all three organizations."""
    draw = np.random.default_rng([seed, 17])
    age = draw.integers(20, 95, count)
    frailty = draw.normal(size=count)
    ward = draw.choice(3, count, p=(0.4, 0.4, 0.2))
    glucose = np.clip(110 + 22 * draw.normal(size=count) + 6 * frailty, 50, 290)
    crp = np.clip(np.exp(1.6 + 0.8 * draw.normal(size=count) + 0.2 * frailty), 0.1, 60)
    creatinine = np.clip(1.0 + 0.3 * draw.normal(size=count), 0.3, 2.9)
    claims = np.clip(4000 + 2600 * draw.normal(size=count) + 600 * frailty, 0, 19_900)
    plan = draw.choice(3, count)
    logit = (
        -1.1
        + 0.6 * (age - 57) / 22
        + 0.8 * (ward == 2)
        + 0.5 * (glucose - 110) / 23
        + 1.6 * (np.log(crp) - 1.6) / 0.8
        + 1.6 * (claims - 4000) / 2700
        - 0.5 * (plan == 2)
    )
    readmitted = draw.random(count) < 1 / (1 + np.exp(-logit))
    return People(
        age=age,
        ward=ward,
        glucose=glucose,
        crp=crp,
        creatinine=creatinine,
        abnormal=crp > np.quantile(crp, 0.8),
        claims=claims.astype(np.int64),
        plan=plan,
        joined=draw.integers(1995, 2024, count),
        readmitted=readmitted,
    )


def write_tables(folder: Path, people: People, seed: int) -> dict[str, IntArray]:
    """Write the three files and return whom each lists, in its order."""
    draw = np.random.default_rng([seed, 18])
    listed = {}
    for party, (head, row, encoding) in _FILES.items():
        listed[party] = draw.permutation(len(people))[: round(_LISTED * len(people))]
        lines = (row(people, int(each)) for each in listed[party])
        text = "\n".join([head, *lines]) + "\n"
        (folder / f"{party}.csv").write_text(text, encoding)
    return listed


def _hospital(people: People, each: int) -> str:
    born = f"{1 + each % 28:02}.{1 + each % 12:02}.{2025 - people.age[each]}"
    glucose = "" if each % 17 == 0 else f"{people.glucose[each]:.1f}".replace(".", ",")
    label = "yes" if people.readmitted[each] else "no"
    return f"P-{each:05};{born};{WARDS[people.ward[each]]};{glucose};{label}"


def _laboratory(people: People, each: int) -> str:
    crp = "NA" if each % 23 == 0 else f"{people.crp[each]:.1f}"
    abnormal = "Y" if people.abnormal[each] else "N"
    return f"{each:05},{crp},{people.creatinine[each]:.2f},{abnormal}"


def _insurer(people: People, each: int) -> str:
    since = f"{people.joined[each]}-{1 + each % 12:02}-{1 + each % 28:02}"
    plan = PLANS[people.plan[each]]
    return f"{each:05}\t{plan}\t{people.claims[each]}\t{since}"


_Row = Callable[[People, int], str]
_FILES: dict[str, tuple[str, _Row, str]] = {
    "hospital": (f"patient;born;ward;glucose;{LABEL}", _hospital, "utf-8-sig"),
    "laboratory": ("person,crp,creatinine,abnormal", _laboratory, "utf-8"),
    "insurer": ("member\tplan\tclaims\tsince", _insurer, "utf-16"),
}


def complete_schema(path: Path) -> None:
    """Decide on the bounds of a draft, as a person does who knows the quantities."""
    name, lines = "", []
    for line in path.read_text("utf-8").splitlines():
        if line.startswith('name = "'):
            name = line.split('"')[1]
        key = line.partition(" = ?")[0]
        decided = {"low": 0, "high": 1}.get(key) if line.startswith(f"{key} = ?") else None
        lines.append(line if decided is None else f"{key} = {BOUNDS[name][decided]}")
    path.write_text("\n".join(lines) + "\n", "utf-8")
