"""What a party notes of every job that it is asked for: its specification and what became of it."""

import logging

from colonnade.core.errors import ColonnadeError
from colonnade.ledger.decisions import ASK, AUTO, NONE
from colonnade.ledger.job_entries import Declined, Proposed
from colonnade.ledger.ledger import Ledger
from colonnade.methods.job import Job
from colonnade.pki.identity import Identity
from colonnade.wire.jobspec import job_from_bytes
from colonnade.wire.session import public_text

logger = logging.getLogger(__name__)
# What is refused costs whoever proposed it nothing: a larger one is kept by its digest alone.
MAX_REFUSED_BYTES = 256 << 10


class Proposals:
    """Jobs of one coordinator in a party's ledger."""

    def __init__(self, ledger: Ledger, coordinator: Identity) -> None:
        self._ledger, self._coordinator = ledger, coordinator

    def note(self, name: str, spec: bytes, job: Job, *, needed: int) -> None:
        """Note a job that the policy allows, and how many people have to agree to it."""
        docket = self._ledger.state.docket
        units = job.max_units(self._ledger.opened.party)
        entry = Proposed(
            job=name,
            coordinator=self._coordinator.uri,
            requested_by=job.requested_by,
            purpose=job.purpose,
            name=job.name,
            kind=job.kind,
            units=units,
            approve=ASK if needed else AUTO,
            approvals=needed,
            policy=len(docket.policies),
            spec_bytes=len(spec),
        )
        with self._ledger.lock:
            if name not in self._ledger.state.scoped.places:  # admitted before: it has its entry
                self._ledger.decisions.propose(entry, spec)

    def declined(self, name: str, spec: bytes, error: ColonnadeError) -> None:
        """Note a job that the party refuses, and why."""
        state = self._ledger.state
        try:
            job = job_from_bytes(spec)
        except ColonnadeError:
            job = None
        with self._ledger.lock:
            if name in state.closed:
                return
            if name not in state.docket.proposals:
                kept = len(spec) if len(spec) <= MAX_REFUSED_BYTES else 0
                entry = Proposed(
                    job=name,
                    coordinator=self._coordinator.uri,
                    requested_by=job.requested_by if job else "",
                    purpose=job.purpose if job else "",
                    name=job.name if job else "",
                    kind=job.kind if job else "",
                    units=0,
                    approve=NONE,
                    approvals=0,
                    policy=len(state.docket.policies),
                    spec_bytes=kept,
                )
                self._ledger.decisions.propose(entry, spec)
            self._ledger.decisions.decline(Declined(name, error.code, public_text(error.for_peers)))

    def waiting(self) -> list[str]:
        """Return the jobs that people have yet to decide on."""
        state = self._ledger.state
        return [
            job
            for job, each in state.docket.proposals.items()
            if each.entry.approve == ASK
            and each.entry.coordinator == self._coordinator.uri
            and job not in state.closed
            and job not in state.scoped.places
        ]
