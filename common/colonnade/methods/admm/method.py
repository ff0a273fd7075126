"""Federated ADMM as a registered method."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from colonnade.linear.losses import LOGISTIC
from colonnade.methods.admm.codec import question, spec_from_bytes, spec_to_bytes
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.packing import pack
from colonnade.methods.admm.prox import ClientRows, factorise
from colonnade.methods.admm.secure.claims import cohort_promise
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.base import Member, Method, Unit
from colonnade.privacy.accounting import units_down
from colonnade.privacy.sampling import OsNoise


def _check(job: AdmmJobSpec, members: Sequence[Member]) -> None:
    """Refuse clients whose columns mean different things."""
    for member in members:
        if member.clients != job.part(member.party).clients:
            raise ValueError("members and the method's parts differ about the clients")
        if member.bounds != members[0].bounds:
            raise ValueError("all parties of a job over clients need the same bounds")
        if member.fills != members[0].fills:
            raise ValueError("all parties of a job over clients need the same fills")
        if (member.groups, member.encodings) != (members[0].groups, members[0].encodings):
            raise ValueError("all parties of a job over clients need the same encodings")


def _describe(job: AdmmJobSpec, party: str) -> dict[str, Any]:
    return {"clients": job.part(party).clients}


def _warm() -> None:
    spec = AdmmSpec(
        n_clients=2,
        n_features=2,
        rounds=1,
        sampled=2,
        release_units=units_down(1.0),
        gamma=1.0,
        lipschitz=1.0,
        loss=LOGISTIC,
    )
    columns = np.zeros((2, 4), np.int16)
    problems = factorise([ClientRows(columns, columns[0])] * 2, spec)
    exact = problems.displacements(np.arange(2), np.zeros((2, 2), np.int64))
    pack(spec.code, spec.mechanism.perturb(exact[0], OsNoise()))


ADMM: Method[AdmmJobSpec] = Method(
    kind=AdmmJobSpec.kind,
    unit=Unit.CLIENT,
    encode=spec_to_bytes,
    decode=spec_from_bytes,
    question=question,
    check=_check,
    describe=_describe,
    warm=_warm,
    section="clients",
    promise=lambda job, delta: cohort_promise(job.spec, delta),
)
