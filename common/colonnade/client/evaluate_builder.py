"""From a finished job to its evaluation: who is scored, for whom, and what is then released."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from colonnade.client.views import PartyOffer
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput, BudgetExceeded
from colonnade.data.model import LinearModel
from colonnade.methods.base import Member, Part
from colonnade.methods.evaluation.spec import BUCKETS, EvaluationSpec
from colonnade.methods.job import Job
from colonnade.privacy.accounting import rho_from_units, rho_of, units_down


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """How a model is evaluated.

    Parameters
    ----------
    epsilon
        What the one release costs, with the delta of the training job.
    purpose
        What people are scored for; every party's grant of the prediction must say the same.
    party
        Who is sent the scores and releases; by default the first party that holds the label.

    Examples
    --------
    >>> EvaluateOptions().purpose
    'evaluation'
    """

    epsilon: float = 0.1
    purpose: str = "evaluation"
    party: str | None = None

    def units(self, delta: float) -> int:
        """Return the price of the release."""
        if not 0.0 < self.epsilon < 1000.0:
            raise BadArgument("epsilon", "must lie between 0 and 1000")
        return units_down(rho_of(self.epsilon, delta))


def evaluator_of(trained: Job, options: EvaluateOptions) -> Member:
    """Return the party that is sent the scores; `BadInput` if it cannot be."""
    if not trained.holdout:
        raise BadInput("the job kept nobody out of its fit: there is nobody to evaluate it on")
    holders = [member for member in trained.members if member.holds_label]
    if options.party is None:
        return holders[0]
    for member in holders:
        if member.party == options.party:
            return member
    raise BadArgument("party", f"must hold the label, as {', '.join(m.party for m in holders)} do")


def author_evaluation(
    training: str,
    trained: Job,
    run: str,
    model: LinearModel,
    options: EvaluateOptions,
    *,
    offers: Sequence[PartyOffer],
    name: str | None = None,
    timeout_s: int = 3600,
) -> Job:
    """Return the job in which the evaluator releases what the scores of ``run`` say.

    Parameters
    ----------
    training, trained
        The finished job: its name, and what it was.
    run
        The name of the prediction that sent the scores.
    model
        The model that they are of.
    """
    member = evaluator_of(trained, options)
    offer = next((each for each in offers if each.party == member.party), None)
    if offer is None or offer.dataset != member.dataset:
        raise BadInput(f"party {member.party} has another table by now, or is not enrolled")
    units = options.units(trained.delta)
    if units > offer.left_units:
        raise BudgetExceeded(
            f"the evaluation costs party {member.party} rho {rho_from_units(units):.6g}, but its "
            f"ledger has {rho_from_units(offer.left_units):.6g} left"
        )
    try:
        spec = EvaluationSpec(
            training=training,
            run=run,
            model=model.to_json(),
            holdout=trained.holdout,
            n_rows=offer.population,
            part=Part(member.party, member.features, member.holds_label, member.groups),
            units=units,
            buckets=BUCKETS[trained.method.loss],
            loss=trained.method.loss,
        )
        return Job(
            name=name or f"evaluation of {trained.name}",
            salt=secrets.token_bytes(16),
            delta=trained.delta,
            party_timeout_s=timeout_s,
            members=(member,),
            label=trained.label,
            label_bounds=trained.label_bounds,
            method=spec,
        )
    except ValueError as error:
        raise BadInput(f"no such evaluation: {error}") from None
