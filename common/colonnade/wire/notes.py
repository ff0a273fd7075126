"""What people are told about a job wherever they look: terminal, report, page."""

from collections.abc import Mapping

from colonnade.privacy.accounting import rho_from_units

DECLARED_BOUNDS = "declared bounds are used; no party bought tighter ones"


def unused_note(party: str, units: int) -> str:
    """Say that a party paid for a model that uses none of its features."""
    return (
        f"the model uses no feature of {party}, which paid rho {rho_from_units(units):.6g} for the "
        "job; more epsilon or fewer columns may change that"
    )


def bounds_note(paid: Mapping[str, int | None]) -> str:
    """Say whose bounds were bought before a job, by what each party paid (None: not known)."""
    if not any(units is None or units for units in paid.values()):
        return DECLARED_BOUNDS
    told = []
    if buyers := [party for party, units in paid.items() if units]:
        told.append(
            f"tighter bounds were bought before the job by {', '.join(buyers)}: a part of the "
            "total, paid once for every job on the same tables"
        )
    if others := [party for party, units in paid.items() if units is None]:
        told.append(f"what bounds cost {', '.join(others)} for the job's table is not known")
    return "; ".join(told)
