"""What a job will do and cost, from public numbers, for people and for ``--json``."""

from typing import Any

from colonnade.methods.admm.method import AdmmMethod
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.job import Job, Vertical
from colonnade.privacy.accounting import epsilon_of, rho_from_units


def describe(job: Job) -> dict[str, Any]:
    """Return what a job will do and cost, from public numbers."""
    spec, delta = job.method, job.delta
    parties = {}
    for member in job.members:
        rho = rho_from_units(job.max_units(member.party))
        own = (
            {"clients": member.clients}
            if isinstance(spec, AdmmMethod)
            else _of_party(spec, member.party)
        )
        parties[member.party] = {
            "features": len(member.features),
            **own,
            "max_rho": rho,
            "max_epsilon": epsilon_of(rho, delta),
            "max_payload_bytes": spec.payload(member.party),
        }
    # A person has a row at every party, and a client is at one.
    total = max if isinstance(spec, AdmmMethod) else sum
    joint = total(rho_from_units(job.max_units(member.party)) for member in job.members)
    return {
        "name": job.name,
        "method": job.kind,
        "label": job.label,
        "labels": spec.labels.value,
        "loss": spec.loss.value,
        "rows": job.n_rows,
        "rounds": spec.rounds,
        "sketch_dim": 0 if isinstance(spec, AdmmMethod) else spec.sketch_dim,
        "delta": delta,
        "joint_max_rho": joint,
        "joint_max_epsilon": epsilon_of(joint, delta),
        "parties": parties,
    }


def _of_party(spec: Vertical, party: str) -> dict[str, Any]:
    if isinstance(spec, FrankWolfeSpec):
        block = spec.block(party)
        return {"radius": block.radius, "shares": block.shares}
    part = spec.part(party)
    directions = spec.n_directions(part) if spec.shares() else 0
    return {"kept_features": spec.kept(part), "directions": directions}
