"""Nested values and lists of names, as people write and read them."""

import csv
from collections.abc import Mapping
from typing import Any

# What a method promises that says nothing of it: its prices rest on each party's own noise.
_ALONE = "differential privacy that holds whatever all others know and do together"


def as_text(values: Mapping[str, Any], indent: str = "") -> str:
    """Lay nested values out for people."""
    lines = []
    for name, value in values.items():
        if isinstance(value, dict):
            lines.append(f"{indent}{name}")
            lines.append(as_text(value, indent + "  "))
        elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
            lines.append(f"{indent}{name}")
            lines += [as_text(each, indent + "  ") for each in value]
        else:
            shown = f"{value:.6g}" if isinstance(value, float) else value
            if value == "":
                continue  # a text that says nothing: "promise none" would
            if value in ([], None):
                shown = "none"
            elif isinstance(value, list):
                shown = "; ".join(map(str, value))
            lines.append(f"{indent}{name:<22} {shown}")
    return "\n".join(lines)


def plan_text(description: Mapping[str, Any]) -> str:
    """Lay a job's description out for people, with the promise that its prices rest on."""
    promise = description["promise"] or (_ALONE if description["label"] else None)
    return as_text({**description, "promise": promise})


def names_from(text: str) -> list[str]:
    """Read names as a line of CSV, so that one with a comma can stand in quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
