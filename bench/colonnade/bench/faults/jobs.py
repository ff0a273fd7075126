"""The jobs that simulated organizations are asked: one of every method."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from colonnade.bench.faults.cases import (
    LABEL,
    N_CLIENTS,
    N_FEATURES,
    N_ROWS,
    PEOPLE,
    Organizations,
    Start,
)
from colonnade.client.predict_builder import PredictOptions, author_prediction
from colonnade.client.views import PartyOffer
from colonnade.data.model import LinearModel
from colonnade.methods.admm.job_spec import AdmmJobSpec, ClientPart
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.normalise import IdColumn, IdRule
from colonnade.methods.alignment.spec import AlignmentPart, AlignmentSpec, Mode
from colonnade.methods.base import Member, MethodSpec, Part
from colonnade.methods.evaluation.spec import BUCKETS, EvaluationSpec
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec
from colonnade.methods.holdout import rows_fitted
from colonnade.methods.job import NO_LABEL, Job
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.problem import Labels, Loss, Problem
from colonnade.methods.sealed.plan import recommend
from colonnade.party.data.dataset import Dataset
from colonnade.privacy.accounting import units_down
from colonnade.privacy.membership import MembershipNoise
from colonnade.wire.jobspec import job_to_bytes

_UNITS, _CLIENT_UNITS = units_down(0.01), units_down(0.25)
_NEVER_S = 100_000  # of virtual time: longer than any simulation
SHORT_S = 20  # of a job that gives up on who is away
PURPOSE = "triage"
HOLDOUT = 250
OVER_CLIENTS = ("admm",)
STAGED = ("prediction", "evaluation")  # they begin where an earlier job has ended
METHODS = (
    "frank-wolfe",
    "frank-wolfe sketched",
    "moments",
    "moments sketched",
    "admm",
    "alignment",
    "sealed",
    *STAGED,
)


def make_job(
    organizations: Organizations,
    method: str,
    names: Sequence[str],
    *,
    salt: int,
    short: bool,
    start: Start | None = None,
) -> Job:
    """Return a job of ``method``; a ``short`` one gives up on who is away."""
    timeout = SHORT_S if short else _NEVER_S
    key = salt.to_bytes(16, "big")
    if method == "alignment":
        return _alignment(organizations, names, key, timeout)
    if start is not None and method == "prediction":
        return replace(_prediction(organizations, names, start, timeout), salt=key)
    kind, _, labels = method.partition(" ")
    one_owner = bool(labels) or kind == "sealed"
    members = _members(organizations, names, over_clients=kind in OVER_CLIENTS, one=one_owner)
    if start is not None and method == "evaluation":
        spec = _evaluation(members[0], start)
        return Job("an evaluation", key, 1e-6, timeout, members[:1], "y", LABEL, spec)
    made = _MAKERS[kind](members, bool(labels), timeout)
    return Job("a simulated job", key, 1e-6, timeout, members, "y", LABEL, made)


def training(organizations: Organizations, names: Sequence[str]) -> Job:
    """Return a job whose model uses columns of everybody, and that keeps people out."""
    members = _members(organizations, names, over_clients=False, one=False)
    units = units_down(0.5)
    spec = replace(
        _moments(members, sketched=False, timeout=0),
        n_rows=rows_fitted(N_ROWS, HOLDOUT),
        mean_units=units,
        gram_units=units,
        share_units=units,
        cross_units=units,
        penalty=0.0,
    )
    job = Job("a first job", bytes(16), 1e-6, _NEVER_S, members, "y", LABEL, spec)
    return replace(job, holdout=HOLDOUT)


def _members(
    organizations: Organizations, names: Sequence[str], *, over_clients: bool, one: bool
) -> tuple[Member, ...]:
    held = organizations.of_clients if over_clients else organizations.of_people
    return tuple(
        _member(
            name,
            held[name].dataset,
            labels=not one or place == 0,
            clients=N_CLIENTS if over_clients else 0,
        )
        for place, name in enumerate(names)
    )


def _member(name: str, dataset: Dataset, *, labels: bool, clients: int) -> Member:
    table = dataset.coarse
    named = tuple(table.names), tuple(table.bounds), tuple(table.fills)
    made = Member(name, dataset.version, *named, holds_label=labels)
    return replace(made, clients=clients) if clients else made


def _frank_wolfe(members: Sequence[Member], sketched: bool, timeout: int) -> MethodSpec:
    del timeout
    settings: dict[str, Any] = {"labels": Labels.SKETCHED} if sketched else {}
    return FrankWolfeSpec(
        n_rows=N_ROWS,
        blocks=tuple(
            Block(each.party, each.features, 0.7, 2, each.holds_label, 1.0) for each in members
        ),
        rounds=8,
        sketch_dim=16,
        sketch_entries=1,
        select_units=_UNITS,
        share_units=_UNITS,
        label_units=_UNITS if sketched else 0,
        mean_units=_UNITS,
        **settings,
    )


def _moments(members: Sequence[Member], sketched: bool, timeout: int) -> MomentsSpec:
    del timeout
    settings: dict[str, Any] = {"labels": Labels.SKETCHED} if sketched else {}
    return MomentsSpec(
        n_rows=N_ROWS,
        parts=tuple(Part(each.party, each.features, each.holds_label) for each in members),
        mean_units=_UNITS,
        gram_units=_UNITS,
        share_units=_UNITS,
        cross_units=_UNITS,
        label_units=_UNITS if sketched else 0,
        marginal_units=_UNITS if sketched else 0,
        screen_units=_UNITS,
        directions=2,
        probes=3,
        sketch_dim=16,
        **settings,
    )


def _admm(members: Sequence[Member], sketched: bool, timeout: int) -> MethodSpec:
    del sketched
    spec = AdmmSpec(
        n_clients=N_CLIENTS * len(members),
        n_features=N_FEATURES,
        rounds=6,
        sampled=N_CLIENTS * len(members) - 2,
        release_units=_CLIENT_UNITS,
        gamma=2.0,
        lipschitz=1.0,
        intercept=True,
    )
    parts = tuple(ClientPart(each.party, each.features, N_CLIENTS) for each in members)
    return AdmmJobSpec(parts, spec, min(timeout, 3600))


def _sealed(members: Sequence[Member], sketched: bool, timeout: int) -> MethodSpec:
    del sketched, timeout
    problem = Problem(
        n_rows=N_ROWS,
        features={each.party: each.features for each in members},
        rho_units=units_down(0.05),
        label_owner=members[0].party,
    )
    return recommend(problem).spec


_MAKERS = {
    "frank-wolfe": _frank_wolfe,
    "moments": _moments,
    "admm": _admm,
    "sealed": _sealed,
}


def _alignment(organizations: Organizations, names: Sequence[str], key: bytes, timeout: int) -> Job:
    noise = MembershipNoise.within(2.0, 1e-3)
    keys = organizations.keys
    spec = AlignmentSpec(
        salt=key.rjust(32, b"\0"),
        parts=tuple(AlignmentPart(name, keys[name], PEOPLE) for name in names),
        mode=Mode.UNION,
        ids=IdRule((IdColumn(),)),
        noise=noise,
        chunk=100,
    )
    members = tuple(Member(name, "", (), (), (), False) for name in names)
    method = AlignmentJobSpec(spec)
    return Job("an alignment", key, noise.delta, timeout, members, *NO_LABEL, method)


def _prediction(
    organizations: Organizations, names: Sequence[str], start: Start, timeout: int
) -> Job:
    offers = [
        PartyOffer(
            party=name,
            attached=True,
            dataset="",
            population=N_ROWS,
            features={},
            fills={},
            label=None,
            cap_units=start.cap,
            used_units=0,
            ledger_key=organizations.keys[name],
        )
        for name in names
    ]
    options = PredictOptions(names[0], PURPOSE, chunk=20)
    trained = job_to_bytes(start.job)
    rows = range(N_ROWS)
    return author_prediction(
        trained, start.releases, rows, options, offers=offers, timeout_s=timeout
    )


def _evaluation(member: Member, start: Start) -> MethodSpec:
    model: LinearModel | None = start.model
    if model is None:
        raise ValueError("an evaluation begins after a prediction")
    return EvaluationSpec(
        training=start.name,
        run=start.run,
        model=model.to_json(),
        holdout=HOLDOUT,
        n_rows=N_ROWS,
        part=Part(member.party, member.features, holds_label=True),
        units=_UNITS,
        buckets=BUCKETS[Loss.SQUARED],
        loss=Loss.SQUARED,
    )
