"""A new job from a form: the plan's preview, which reads no data and costs nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colonnade.client import Client, JobOptions, PartyOffer
from colonnade.client.results import JobPlan
from colonnade.core.errors import BadInput
from colonnade.privacy.accounting import rounded
from colonnade.report.text import count, size

METHODS = ("moments", "frank-wolfe")
LOSSES = ("squared", "logistic")
_TAKES_PART = "party:"  # begins the fields of parties that take part


@dataclass(frozen=True, slots=True)
class Choice:
    """What the form offers."""

    labels: tuple[str, ...]
    owners: tuple[str, ...]


def choices(offers: Sequence[PartyOffer]) -> Choice:
    """Return which labels can be asked for, and who has one."""
    labelled = [offer for offer in offers if offer.label is not None]
    names = dict.fromkeys(offer.label[0] for offer in labelled if offer.label is not None)
    return Choice(tuple(names), tuple(offer.party for offer in labelled))


def planned(client: Client, fields: Mapping[str, str]) -> JobPlan:
    """Return the plan that a form asks for; `BadInput` names the field that is wrong."""
    target = fields.get("target", "")
    if not target:
        raise BadInput("choose what to explain")
    try:
        epsilon = float(fields.get("epsilon", ""))
    except ValueError:
        raise BadInput("epsilon: give a number, such as 1") from None
    options = JobOptions(
        method=fields.get("method") or None,
        epsilon=epsilon,
        loss=fields.get("loss", LOSSES[0]),
        label_owner=fields.get("label_owner") or None,
    )
    name = fields.get("name") or None
    parties = [field.removeprefix(_TAKES_PART) for field in fields if field.startswith(_TAKES_PART)]
    if not parties:
        raise BadInput("choose who takes part")
    try:
        purpose = fields.get("purpose", "")
        return client.plan(options, target=target, name=name, parties=parties, purpose=purpose)
    except ValueError as error:
        raise BadInput(str(error)) from None


def preview(plan: JobPlan) -> tuple[tuple[str, str], ...]:
    """Return what the plan says, as facts."""
    told = plan.description
    parties = told["parties"]
    bytes_by = {party: sum(each["max_payload_bytes"].values()) for party, each in parties.items()}
    return (
        ("Method", f"{plan.method}, {count(plan.rounds, 'round')} after the first"),
        (
            "Each party pays at most",
            "; ".join(
                f"{party} ε\u00a0{rounded(each['max_epsilon'])} (ρ\u00a0{rounded(each['max_rho'])})"
                for party, each in parties.items()
            ),
        ),
        ("One person, at all parties", f"ε\u00a0{rounded(plan.epsilon)} at δ\u00a0{plan.delta:g}"),
        (
            "What leaves",
            f"{size(sum(bytes_by.values()))}: "
            + ", ".join(f"{party} {size(most)}" for party, most in bytes_by.items()),
        ),
        ("People", f"{told['rows']:,d}"),
        ("Bounds", str(told["bounds_note"]) or "as declared"),
    )
