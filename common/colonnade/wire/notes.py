"""What people are told about a job wherever they look: terminal, report, page."""

from colonnade.privacy.accounting import rho_from_units


def unused_note(party: str, units: int) -> str:
    """Say that a party paid for a model that uses none of its features."""
    return (
        f"the model uses no feature of {party}, which paid rho {rho_from_units(units):.6g}; "
        "more epsilon or fewer columns may change that"
    )
