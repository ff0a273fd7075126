"""From a finished job and a list of rows to a prediction that its parties run."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from colonnade.client.views import PartyOffer
from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.data.integer_scores import model_digest
from colonnade.data.model import LinearModel
from colonnade.ledger.ledger import Released
from colonnade.methods.base import Member
from colonnade.methods.job import NO_LABEL, Job, job_id
from colonnade.methods.prediction.codec import rows_to_bytes
from colonnade.methods.prediction.refusals import PartyMissing
from colonnade.methods.prediction.spec import PredictionPart, PredictionSpec, default_chunk
from colonnade.methods.problem import Solution
from colonnade.methods.replay import replayed
from colonnade.v1 import jobs_pb2
from colonnade.wire.codec import release_from_proto
from colonnade.wire.jobspec import job_from_bytes

_DELTA = 1e-9  # of no meaning: nothing is promised of it

Releases = Sequence[jobs_pb2.PartyReleases]


@dataclass(frozen=True, slots=True)
class PredictOptions:
    """What is asked of a model.

    Parameters
    ----------
    to
        The party that gets the scores.
    purpose
        What for; every party's grant must say the same.
    middle
        Parties that do not score: their features count as the middle of their bounds, in these
        rows and for this model for good.
    solution
        Another of the models that the job's releases allow, as `Client.solve` makes them.
    chunk
        Rows in a message.

    Examples
    --------
    >>> PredictOptions("hospital", "triage").middle
    ()
    """

    to: str
    purpose: str
    middle: tuple[str, ...] = ()
    solution: Solution = field(default_factory=Solution)
    chunk: int | None = None


def model_from_releases(training: bytes, releases: Releases, solution: Solution) -> LinearModel:
    """Return the model of a job, computed here from what its parties released."""
    shown: list[tuple[str, Released]] = [
        (each.party, release_from_proto(release)) for each in releases for release in each.releases
    ]
    return replayed(job_from_bytes(training), job_id(training), shown, solution)


def author_prediction(
    training: bytes,
    releases: Releases,
    rows: Sequence[int] | IntArray,
    options: PredictOptions,
    *,
    offers: Sequence[PartyOffer],
    expected: LinearModel | None = None,
    name: str | None = None,
    timeout_s: int = 3600,
) -> Job:
    """Return a job that scores ``rows`` by the model of the job ``training``.

    Parameters
    ----------
    rows
        Row numbers of the aligned tables, from 0, in any order; each is scored once.
    expected
        The model that is meant; another one that the releases lead to is refused.
    """
    trained = job_from_bytes(training)
    model = model_from_releases(training, releases, options.solution)
    if expected is not None and model_digest(expected) != model_digest(model):
        raise BadInput("the model given is not what the job's releases lead to on this machine")
    chosen = _present(trained, options, offers)
    n_rows = chosen[0].population
    asked = _asked(rows, n_rows)
    try:
        spec = PredictionSpec(
            training_job=training,
            evidence=tuple(
                (
                    each.party,
                    tuple(one.SerializeToString(deterministic=True) for one in each.releases),
                )
                for each in releases
            ),
            model=model_digest(model),
            solution=options.solution,
            parts=tuple(PredictionPart(each.party, each.ledger_key) for each in chosen),
            receiver=options.to,
            purpose=options.purpose,
            rows=rows_to_bytes(asked),
            n_rows=n_rows,
            middle=options.middle,
            chunk=options.chunk or default_chunk(len(chosen)),
        )
        members = (
            Member(each.party, "", (), (), (), False, alignment=each.alignment) for each in chosen
        )
        return Job(
            name
            or f"scores of {asked.size} {'row' if asked.size == 1 else 'rows'} for {options.to}",
            secrets.token_bytes(16),
            _DELTA,
            timeout_s,
            tuple(members),
            *NO_LABEL,
            spec,
            options.purpose,
        )
    except ValueError as error:
        raise BadInput(f"no such prediction: {error}") from None


def _present(
    trained: Job, options: PredictOptions, offers: Sequence[PartyOffer]
) -> list[PartyOffer]:
    """Return who scores; refuse if one is away, or their tables are in different orders."""
    by_name = {offer.party: offer for offer in offers}
    scoring = [each.party for each in trained.members if each.party not in options.middle]
    _check_present(scoring, options, by_name)
    chosen = [by_name[party] for party in scoring]
    if len({(each.population, each.alignment) for each in chosen}) > 1:
        raise BadInput("the parties' tables are in different orders; align and ingest them first")
    return chosen


def _asked(rows: Sequence[int] | IntArray, n_rows: int) -> IntArray:
    """Return the rows that are asked for, ascending; refuse one that no table has."""
    try:
        asked = np.unique(np.asarray(rows, np.int64))
    except OverflowError:
        raise BadInput(f"rows are numbers from 0 to {n_rows - 1}; one is far larger") from None
    if not asked.size:
        raise BadInput(f"give at least one row, a number from 0 to {n_rows - 1}")
    for row in (int(asked[0]), int(asked[-1])):
        if not 0 <= row < n_rows:
            raise BadInput(f"no table has a row {row}: rows are numbers from 0 to {n_rows - 1}")
    return asked


def _check_present(
    scoring: Sequence[str], options: PredictOptions, offers: Mapping[str, PartyOffer]
) -> None:
    """Refuse a request that lacks a party, or names one that the model does not have."""
    if options.to not in scoring:
        raise BadInput(f"{options.to} is no party of the model that scores: it cannot receive")
    away = [party for party in scoring if party not in offers or not offers[party].attached]
    if away:
        names = f"{', '.join(away)} {'is' if len(away) == 1 else 'are'} away"
        if options.to in away:
            raise BadInput(f"{names}, and {options.to} is to receive the scores: wait for it")
        raise PartyMissing(
            f"{names}: nothing was asked. Wait, or let the middle of the features' bounds stand "
            "for what is missing, if every grant allows it; that is final for these rows"
        )
