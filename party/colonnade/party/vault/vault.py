"""The part of a party that touches data, ledger and randomness; it knows nothing of the network.

Privacy: a job is answered only after the local policy approved it and its greatest possible price
was set aside; whatever a coordinator then sends, the gate charges before a row is read, and the
ledger's cap ends it. Refusals depend on the specification, the policy and prices, never on data.
"""

import datetime as dt
import logging
from collections.abc import Callable

from colonnade.core.errors import (
    FATAL,
    AwaitingApproval,
    BadMessage,
    ColonnadeError,
    LowDisk,
    PolicyRefused,
)
from colonnade.data.table import Table
from colonnade.ledger.gate import Gate, Step
from colonnade.ledger.ledger import Ledger
from colonnade.methods.alignment.crypto.exchange import Attestor
from colonnade.methods.base import Unit
from colonnade.methods.job import job_id
from colonnade.methods.prediction.method import PREDICTION
from colonnade.methods.registry import method_of
from colonnade.party.alignment.aligner import Aligner
from colonnade.party.alignment.config import AlignConfig
from colonnade.party.alignment.store import AlignmentFolder
from colonnade.party.data.bounding.purchases import bounds_job
from colonnade.party.data.columns import ColumnCache
from colonnade.party.data.dataset import Dataset
from colonnade.party.data.units import Units, WholeTable, units_of
from colonnade.party.engine.local import LOCAL, Engine
from colonnade.party.methods.sealed_keys import KeyStore
from colonnade.party.officer.inbox import DecisionFolder
from colonnade.party.officer.proposals import Proposals
from colonnade.party.officer.unpaid import UnpaidJobs
from colonnade.party.policy import Policy
from colonnade.party.prediction.predictor import Predictor
from colonnade.party.vault.column_jobs import ColumnJobs, check_in_place
from colonnade.party.vault.declarations import Declarations
from colonnade.party.vault.policies import PolicyInUse
from colonnade.pki.identity import Identity
from colonnade.privacy.sampling import NoiseSource
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.codec import Answer
from colonnade.wire.jobspec import job_from_bytes

logger = logging.getLogger(__name__)


class Vault:
    """One party's data, ledger and noise."""

    def __init__(
        self,
        dataset: Dataset | None,
        ledger: Ledger,
        noise: NoiseSource,
        *,
        policy: Policy,
        coordinator: Identity,
        today: Callable[[], dt.date],
        drop_out: float = 0.0,
        align: tuple[AlignConfig, AlignmentFolder, Attestor] | None = None,
        inbox: DecisionFolder | None = None,
        keys: KeyStore | None = None,
        engine: Engine = LOCAL,
    ) -> None:
        self._ledger, self.coordinator = ledger, coordinator
        self._gate = Gate(ledger, noise, at=self._at)
        self._keys, self._inbox = keys, inbox
        self._proposals = Proposals(ledger, coordinator)
        if keys is not None:
            keys.erase_others(self._open_jobs())  # of jobs that ended while the party was away
        self.party, self.ledger_id = ledger.opened.party, ledger.opened.ledger_id
        self._units: Units = WholeTable()
        if dataset is not None:
            columns = ColumnCache(dataset.coarse, dataset.fine)
            self._units = units_of(dataset.coarse.n_rows, dataset.clients)
        accounts = 1 if self._units.unit is Unit.RECORD else self._units.population
        self._unpaid = UnpaidJobs(today, accounts=accounts)
        self._aligner, self._predictor = None, None
        if dataset is not None and self._units.unit is Unit.RECORD:
            self._predictor = Predictor(
                dataset,
                columns,
                ledger=ledger,
                gate=self._gate,
                policy=policy,
                coordinator=coordinator,
                today=today,
            )
        if align is not None:
            self._aligner = Aligner(
                *align,
                ledger=ledger,
                gate=Gate(ledger, noise),
                policy=policy,
                coordinator=coordinator,
                today=today,
            )
        self._policies = PolicyInUse(policy, dataset, ledger, coordinator=coordinator, today=today)
        self._models = None
        if dataset is not None:
            table = dataset, columns, ledger, self._gate, self._units, self._policies
            self._models = ColumnJobs(*table, keys, drop_out, engine)
        self._declared = Declarations(dataset, ledger, self._units, coordinator=coordinator)

    def stage_policy(self, policy: Policy) -> None:
        """Have another policy taken up before the next message; refuse one that cannot be used."""
        self._policies.stage(policy)

    def take_policy(self) -> bool:
        """Take up the policy that is staged; return whether there was one.

        Jobs that were accepted go on; what is offered and accepted from now on is the new one's.
        """
        if not self._policies.take():
            return False
        for side in self._sides:
            side.policy = self._policies.written
        return True

    @property
    def _dataset(self) -> Dataset:
        """The table; a party that has none yet answers alignments alone."""
        return self._over_columns.dataset

    @property
    def table(self) -> Table:
        """The coarse copy of the table."""
        return self._dataset.coarse

    @property
    def version(self) -> str:
        """The public name of the ingest."""
        return self._dataset.version

    def hello(self) -> pb.Hello:
        """Return what opens a session: declarations, paid releases and prices."""
        hello = self._declared.hello(self._policies.now, self._open_jobs())
        if self._aligner is not None and self._units.unit is Unit.RECORD:
            self._aligner.offer(hello.offer)
        return hello

    def standing(self) -> pb.Standing:
        """Return where the ledger ends and what is left of the budget: public numbers."""
        return self._declared.standing()

    def check_known(self, shown: pb.EnrolResponse | pb.Welcome) -> None:
        """Stop for good if the coordinator holds what the ledger does not know to be its past."""
        self._declared.check_known(shown)

    def enrolment(self) -> pb.EnrolRequest:
        """Return the proof that this party holds its ledger's key."""
        return self._declared.enrolment()

    def consider(self, spec: bytes) -> pb.Decision:
        """Approve a job and set its budget aside, or say why not."""
        name = job_id(spec)
        try:
            if not self._approved(name):
                self._admit(name, spec)
        except FATAL:
            raise
        except AwaitingApproval as error:
            logger.info("job_waits job=%s %s", name[:12], error)
            return pb.Decision(job_id=name, waiting=True, code=error.code, message=error.for_peers)
        except ColonnadeError as error:
            logger.warning("job_refused job=%s code=%s %s", name[:12], error.code, error)
            self._note_refusal(name, spec, error)
            return pb.Decision(job_id=name, code=error.code, message=error.for_peers)
        except Exception:
            # A bug that one proposal meets must not end the party at every start.
            logger.exception("proposal_failed job=%s", name[:12])
            return pb.Decision(job_id=name, code=ColonnadeError.code)
        return pb.Decision(job_id=name, accepted=True)

    def _note_refusal(self, name: str, spec: bytes, error: ColonnadeError) -> None:
        """Keep the specification and the reason, unless too many were proposed today."""
        if self._unpaid.full or isinstance(error, LowDisk):
            return
        try:
            self._proposals.declined(name, spec, error)
        except LowDisk as full:
            logger.warning("refusal_not_kept job=%s %s", name[:12], full)
            return
        self._unpaid.count(name)

    def decided(self) -> list[pb.Decision]:
        """Take up what people decided meanwhile, and return the party's word on those jobs."""
        if self._inbox is None:
            return []
        words = []
        for job in self._inbox.take(self._ledger):
            if job in self._ledger.state.closed:  # refused, perhaps while it ran
                self.close_job(job)
                reason = self._ledger.state.docket.reason(job)
                error = PolicyRefused(f"the approver refused the job: {reason}")
                words.append(pb.Decision(job_id=job, code=error.code, message=error.for_peers))
            else:
                words.append(self.consider(self._ledger.decisions.specification(job)))
        return words

    def answer(self, job: str, round_: int, body: bytes) -> Answer:
        """Release what a task of an approved job asks for."""
        before = self._ledger.state.total
        try:
            return self._answer(job, round_, body)
        finally:
            if self._ledger.state.total > before:  # also if what was paid for then failed
                self._unpaid.paid(job)

    def _answer(self, job: str, round_: int, body: bytes) -> Answer:
        if (side := self._side(job)) is not None:
            if side is self._predictor:
                self._unpaid.paid(job)  # without a price: its grant counts rows instead
            return side.answer(job, round_, body)
        if self._models is None or not self._models.has(job):
            raise PolicyRefused("the job was not approved by this party")
        return self._models.answer(job, round_, body)

    def close_job(self, job: str, *, finished: bool = False) -> bool:
        """Free what an ended job had set aside; return whether it had something."""
        for side in self._sides:
            if job in self._open_jobs() or side.has(job):
                side.close(job, finished=finished)
        if self._models is not None:
            self._models.close(job)
        if self._keys is not None:
            self._keys.erase(job)  # a key serves one job
        with self._ledger.lock:
            if job not in self._open_jobs():
                return False
            jobs = self._models if finished else None
            self._ledger.close_job(job, keep=0 if jobs is None else jobs.units_kept(job))
            return True

    @property
    def _sides(self) -> list[Aligner | Predictor]:
        """The sides of jobs that end in no model of their own."""
        return [side for side in (self._aligner, self._predictor) if side is not None]

    def _side(self, job: str) -> Aligner | Predictor | None:
        """Return the side that has approved a job, if it ends in no model."""
        return next((side for side in self._sides if side.has(job)), None)

    def _approved(self, job: str) -> bool:
        """Return whether a job was admitted since the start."""
        return self._side(job) is not None or (self._models is not None and self._models.has(job))

    @property
    def _over_columns(self) -> ColumnJobs:
        """The jobs over columns; a party without a table has none."""
        if self._models is None:
            raise PolicyRefused(f"party {self.party} has no table yet; it has to ingest one")
        return self._models

    def _admit(self, name: str, spec: bytes) -> None:
        known = name in self._open_jobs()  # from before a start: it has its entry
        if not known:
            self._unpaid.check()
        job = job_from_bytes(spec)
        if all(member.party != self.party for member in job.members):
            raise BadMessage(f"the job has no place for party {self.party}")

        def agreed(needed: int) -> None:
            """Note a job that the policy allows; go on once people agree who have to."""
            self._proposals.note(name, spec, job, needed=needed)
            if not known:
                self._unpaid.count(name)
            self._ledger.state.docket.check_approved(name)

        if method_of(job.kind).model:
            self._over_columns.admit(name, job, agreed)
        elif job.kind == PREDICTION.kind:
            if self._predictor is None:
                raise PolicyRefused("this party has no table of records to score")
            check_in_place(self._dataset)
            self._predictor.admit(name, job, agreed)
        elif self._aligner is None or self._units.unit is not Unit.RECORD:
            raise PolicyRefused("this party lists no people for alignments; see [align]")
        else:
            self._aligner.admit(name, job, agreed)

    def _open_jobs(self) -> list[str]:
        """Return the coordinator's jobs that have budget set aside or wait for a decision.

        A purchase of bounds is none of them.
        """
        left, bought = self._ledger.state.left, bounds_job("")
        return [*(job for job in left if not job.startswith(bought)), *self._proposals.waiting()]

    def _at(self, step: Step) -> None:
        """Look before a charge and, for a file may be written while it is read, before noise."""
        if step in (Step.ASKED, Step.COMPUTED):
            check_in_place(self._dataset)
