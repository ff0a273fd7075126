"""Alignments as a coordinator proposes them to one party, which is asked and not run."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from colonnade.methods.alignment.codec import run_name
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.spec import AlignmentSpec, Extension
from colonnade.methods.job import Job, job_id
from colonnade.party.alignment.store import EndedAlignment
from colonnade.party.methods.alignment.state import PartyState
from colonnade.party.vault.vault import Vault
from colonnade.wire.jobspec import job_to_bytes
from support.aligning import POLICY, Home, alignment_job, vault_alone
from support.federation import founded

KNOWN = [f"NHS {number}" for number in range(200)]
EXTENDS = POLICY + "min_new = 100\n"


def pair(folder: Path, people: list[str], policy: str) -> dict[str, Home]:
    made = {
        "hospital": Home("hospital", folder / "hospital", people),
        "laboratory": Home("laboratory", folder / "laboratory", KNOWN),
    }
    (folder / "hospital" / "policy.toml").write_text(policy)
    return made


def vault_of(home: Home) -> Vault:
    config = home.config(founded(), "127.0.0.1:1")
    return vault_alone(config, home.ledger)


def with_spec(job: Job, **changes: object) -> Job:
    """Return the job with another specification, as a hostile coordinator writes it."""
    assert isinstance(job.method, AlignmentJobSpec)
    spec = replace(job.method.alignment, **changes)  # type: ignore[arg-type]
    return replace(job, method=AlignmentJobSpec(spec))


def decision(vault: Vault, job: Job) -> tuple[bool, str, str]:
    made = vault.consider(job_to_bytes(job))
    vault.close_job(job_id(job_to_bytes(job)))
    return made.accepted, made.code, made.message


def extension(
    sides: dict[str, Home], first: AlignmentSpec, *, min_new: int, salt: bytes = b"\7" * 32
) -> Job:
    extends = Extension(run_name(first), 300, min_new=min_new, runs=1)
    return with_spec(alignment_job(sides), extends=extends, salt=salt)


def aligned_before(home: Home, spec: AlignmentSpec) -> None:
    """Leave behind an alignment in which all known people have a row."""
    ids = tuple(filter(None, (spec.ids.encode([person]) for person in KNOWN)))
    rows = np.arange(len(ids), dtype="<u4").tobytes()
    state = PartyState(run_name(spec), None, b"", n_rows=300, kept=300, rows=rows)
    home.alignments.keep(EndedAlignment(spec, state, ids, ("person",)))
