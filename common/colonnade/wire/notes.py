"""Notes about a job that terminal, report and page show alike."""

from collections.abc import Mapping

from colonnade.privacy.accounting import rho_from_units

# What lowers the noise of a product with the label, or asks for fewer of them.
_REMEDY = (
    "more epsilon, fewer columns, more people or, unless it is in use, an exchange under encryption"
)
_GRANT = "have that party grant it as it was asked ([[predict]]): a score needs every party"
# By what a failed job's reason says: the code of a refusal, or who kept silent.
_ADVICE = (
    ("[[predict]]", _GRANT),
    ("scores may not go to", _GRANT),
    (
        "(policy_refused)",
        "have its policy, or its approvers, allow the job, ask for less, or leave the party out",
    ),
    (
        "(budget_exceeded)",
        "ask for a smaller epsilon, or have that party raise its cap if its people agree",
    ),
    ("(dataset_changed)", "the party has a new table; plan and submit the job anew"),
    ("(not_bound)", "have that party bind its ledger to its table"),
    ("(low_disk)", "have that party free some disk space"),
    ("did not answer", "start that party again, or leave it out"),
)
DECLARED_BOUNDS = "declared bounds are used; no party bought tighter ones"


def unused_note(party: str, units: int) -> str:
    """State that a party paid for a model that uses none of its features."""
    return (
        f"the model uses no feature of {party}, which paid rho {rho_from_units(units):.6g} for the "
        f"job; {_REMEDY} may change that"
    )


def expected_note(party: str, error: float) -> str:
    """State beforehand that a job is likely to use none of a party's features."""
    return (
        f"no feature of {party} is likely to be in the model: with these numbers a correlation "
        f"with the label is known up to {error:.2g} at best (a standard error); {_REMEDY} may "
        "change that"
    )


def advice_of(reason: str) -> str:
    """Return what to do about a job that failed for this reason, as its coordinator gave it."""
    for sign, advice in _ADVICE:
        if sign in reason:
            return advice
    return ""


def bounds_note(paid: Mapping[str, int | None]) -> str:
    """Describe whose bounds were bought before a job, by what each party paid (None: not known)."""
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
