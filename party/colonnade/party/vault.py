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
    BadInput,
    BadMessage,
    ColonnadeError,
    DatasetChanged,
    LowDisk,
    PolicyRefused,
)
from colonnade.data.table import Table
from colonnade.ledger.gate import Gate, Step
from colonnade.ledger.ledger import Ledger
from colonnade.methods.alignment.crypto.exchange import Attestor
from colonnade.methods.base import Unit
from colonnade.methods.job import Job, job_id
from colonnade.methods.messages import UNITS
from colonnade.methods.prediction.method import PREDICTION
from colonnade.methods.registry import method_of
from colonnade.methods.sealed.ring import available
from colonnade.party.alignment.aligner import Aligner
from colonnade.party.alignment.config import AlignConfig
from colonnade.party.alignment.store import AlignmentFolder
from colonnade.party.data.bounding.bounds import bought_places, bounds_price
from colonnade.party.data.bounding.purchases import bounds_job
from colonnade.party.data.columns import ColumnCache
from colonnade.party.data.dataset import Dataset
from colonnade.party.data.units import Units, WholeTable, fullest, units_of
from colonnade.party.methods.base import Answers, JobContext
from colonnade.party.methods.registry import side_of
from colonnade.party.methods.sealed_keys import KeyStore
from colonnade.party.officer.inbox import DecisionFolder
from colonnade.party.officer.proposals import Proposals
from colonnade.party.officer.unpaid import UnpaidJobs
from colonnade.party.policy import Policy
from colonnade.party.prediction.predictor import Predictor, order_of
from colonnade.party.prediction.received import RecordedScores
from colonnade.party.prediction.store import PredictionFolder
from colonnade.pki.identity import Identity
from colonnade.privacy.sampling import NoiseSource
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.codec import Answer, release_from_proto
from colonnade.wire.encodings import encoding_to_proto
from colonnade.wire.heads import head_from_proto, head_to_proto
from colonnade.wire.jobspec import feature_to_proto, job_from_bytes
from colonnade.wire.session import enrolment_statement

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
    ) -> None:
        self._found, self._ledger, self._policy = dataset, ledger, policy
        self._gate = Gate(ledger, noise, at=self._at)
        self.coordinator, self._today = coordinator, today
        self._jobs: dict[str, Answers] = {}
        self._drop_out, self._keys, self._inbox = drop_out, keys, inbox
        self._proposals = Proposals(ledger, coordinator)
        if keys is not None:
            keys.erase_others(self._open_jobs())  # of jobs that ended while the party was away
        self.party, self.ledger_id = ledger.opened.party, ledger.opened.ledger_id
        self._units: Units = WholeTable()
        if dataset is not None:
            encodings = dataset.coarse.header.encodings
            self._policy = policy.with_columns({each.name: each.names for each in encodings})
            self._columns = ColumnCache(dataset.coarse, dataset.fine)
            self._units = units_of(dataset.coarse.n_rows, dataset.clients)
        accounts = 1 if self._units.unit is Unit.RECORD else self._units.population
        self._unpaid = UnpaidJobs(today, accounts=accounts)
        self._aligner, self._predictor = None, None
        if dataset is not None and self._units.unit is Unit.RECORD:
            self._predictor = Predictor(
                dataset,
                self._columns,
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
        self._staged: Policy | None = None
        self._check_policy(policy)
        self._note_policy(policy)

    def stage_policy(self, policy: Policy) -> None:
        """Have another policy taken up before the next message; refuse one that cannot be used."""
        self._check_policy(policy)
        self._staged = policy

    def take_policy(self) -> bool:
        """Take up the policy that is staged; return whether there was one.

        Jobs that were accepted go on; what is offered and accepted from now on is the new one's.
        """
        policy, self._staged = self._staged, None
        if policy is None:
            return False
        self._policy = policy
        if self._found is not None:
            encodings = self._found.coarse.header.encodings
            self._policy = policy.with_columns({each.name: each.names for each in encodings})
        for side in self._sides:
            side.policy = policy
        self._note_policy(policy)
        return True

    def _check_policy(self, policy: Policy) -> None:
        """Refuse a policy that asks too many people, or that allows the coordinator nothing."""
        policy.for_coordinator(self.coordinator)  # one that may ask nothing is not talked to
        approvers = len(self._ledger.state.docket.approvers)
        if policy.needed > approvers:
            raise BadInput(
                f"the policy asks for the agreement of {policy.needed}, and the ledger names "
                f"{approvers} approvers; see 'colonnade ledger approvers'"
            )

    def _note_policy(self, policy: Policy) -> None:
        """Note the policy that is in use."""
        if policy.text:
            with self._ledger.lock:
                self._ledger.note_policy(policy.text)

    @property
    def _dataset(self) -> Dataset:
        """The table; a party that has none yet answers alignments alone."""
        if self._found is None:
            raise PolicyRefused(f"party {self.party} has no table yet; it has to ingest one")
        return self._found

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
        ledger = self._ledger
        offer = self._budget_offer() if self._found is None else self._offer()
        if self._aligner is not None and self._units.unit is Unit.RECORD:
            offer.align_people = self._policy.align_people(self.coordinator)
        return pb.Hello(
            ledger_id=bytes.fromhex(ledger.opened.ledger_id),
            offer=offer,
            open_jobs=self._open_jobs(),
            head=self._head(),
        )

    def _budget_offer(self) -> pb.Offer:
        """Return what a party without a table tells: its budget."""
        budget, reserved = fullest(self._units, self._ledger)
        return pb.Offer(
            unit=UNITS.write(self._units.unit),
            cap_units=budget.cap,
            spent_units=budget.spent,
            reserved_units=reserved,
            simulation=self._ledger.opened.simulation,
        )

    def _offer(self) -> pb.Offer:
        ledger = self._ledger
        offer = self._budget_offer()
        names, label = self._policy.offered(self.coordinator, self.table.names)
        columns = zip(self.table.bounds, self.table.fills, self.table.groups, strict=True)
        declared = dict(zip(self.table.names, columns, strict=True))
        offer.dataset, offer.population = self.version, self._units.population
        offer.alignment = self.table.header.alignment
        offer.features.extend(feature_to_proto(name, *declared[name]) for name in names)
        last = self.table.header.label
        if last is not None and label:
            offer.label.CopyFrom(feature_to_proto(last.name, last.bounds))
        # Of the columns that are offered, and of no others.
        shown = [*offer.features, *([offer.label] if offer.HasField("label") else [])]
        columns_shown = [each.name for each in shown]
        offer.encodings.extend(
            encoding_to_proto(encoding)
            for encoding in self.table.header.encodings
            if {*encoding.names} <= {*columns_shown}
        )
        if available() and (grant := self._policy.sealed_grant(self.coordinator)) is not None:
            offer.sealed.CopyFrom(grant.to_proto())
        offer.tight.extend(bought_places(self._dataset, ledger, columns_shown))
        offer.bounds_units = bounds_price(self._dataset, ledger, columns_shown)
        return offer

    def standing(self) -> pb.Standing:
        """Return where the ledger ends and what is left of the budget: public numbers."""
        budget, reserved = fullest(self._units, self._ledger)
        return pb.Standing(
            head=self._head(),
            cap_units=budget.cap,
            spent_units=budget.spent,
            reserved_units=reserved,
        )

    def _head(self) -> pb.LedgerHead:
        return head_to_proto(self._ledger.signed_head(self.coordinator.federation))

    def check_known(self, shown: pb.EnrolResponse | pb.Welcome) -> None:
        """Stop for good if the coordinator holds what the ledger does not know to be its past."""
        federation = self.coordinator.federation
        if shown.HasField("head"):
            head = head_from_proto(shown.head, federation=federation, party=self.party)
            self._ledger.check_evidence(head)
        if shown.HasField("latest"):
            self._ledger.check_evidence(release_from_proto(shown.latest).receipt)

    def enrolment(self) -> pb.EnrolRequest:
        """Return the proof that this party holds its ledger's key."""
        opened = self._ledger.opened
        ledger_id = bytes.fromhex(opened.ledger_id)
        continues = [bytes.fromhex(each) for each in opened.continues]
        federation = self.coordinator.federation
        statement = enrolment_statement(federation, self.party, ledger_id, continues)
        return pb.EnrolRequest(
            ledger_id=ledger_id,
            ledger_key=bytes.fromhex(opened.public_key),
            signature=self._ledger.sign(statement),
            continues=continues,
        )

    def consider(self, spec: bytes) -> pb.Decision:
        """Approve a job and set its budget aside, or say why not."""
        name = job_id(spec)
        try:
            if name not in self._jobs and self._side(name) is None:
                self._admit(name, spec)
        except FATAL:
            raise
        except AwaitingApproval as error:
            logger.info("job_waits job=%s %s", name[:12], error)
            return pb.Decision(job_id=name, waiting=True, code=error.code, message=error.told)
        except ColonnadeError as error:
            logger.warning("job_refused job=%s code=%s %s", name[:12], error.code, error)
            self._note_refusal(name, spec, error)
            return pb.Decision(job_id=name, code=error.code, message=error.told)
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
            job = job_from_bytes(spec)
        except ColonnadeError:
            job = None
        try:
            self._proposals.declined(name, spec, job, error)
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
                words.append(pb.Decision(job_id=job, code=error.code, message=error.told))
            else:
                words.append(self.consider(self._ledger.specification(job)))
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
        if job not in self._jobs:
            raise PolicyRefused("the job was not approved by this party")
        self._check_in_place()
        self._columns.prepare(self._jobs[job].context.columns)
        return self._jobs[job].answer(round_, body)

    def close_job(self, job: str, *, finished: bool = False) -> bool:
        """Free what an ended job had set aside; return whether it had something."""
        for side in self._sides:
            if job in self._open_jobs() or side.has(job):
                side.close(job, finished=finished)
        if (ended := self._jobs.pop(job, None)) is not None:
            self._columns.forget(ended.context.columns)
        if self._keys is not None:
            self._keys.erase(job)  # a key serves one job
        with self._ledger.lock:
            if job not in self._open_jobs():
                return False
            self._ledger.close_job(job)
            return True

    @property
    def _sides(self) -> list[Aligner | Predictor]:
        """The sides of jobs that end in no model of their own."""
        return [side for side in (self._aligner, self._predictor) if side is not None]

    def _side(self, job: str) -> Aligner | Predictor | None:
        """Return the side that has approved a job, if it ends in no model."""
        return next((side for side in self._sides if side.has(job)), None)

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
            self._jobs[name] = self._admit_columns(name, job, agreed)
        elif job.kind == PREDICTION.kind:
            if self._predictor is None:
                raise PolicyRefused("this party has no table of records to score")
            self._check_in_place()
            self._predictor.admit(name, job, agreed)
        elif self._aligner is None or self._units.unit is not Unit.RECORD:
            raise PolicyRefused("this party lists no people for alignments; see [align]")
        else:
            self._aligner.admit(name, job, agreed)

    def _admit_columns(self, name: str, job: Job, agreed: Callable[[int], None]) -> Answers:
        self._check_in_place()
        today = self._today()
        # First, so that a refusal does not tell which of the columns that the policy hides exist.
        allowed = self._policy.approve(job, self.party, coordinator=self.coordinator, today=today)
        side = side_of(job.kind)
        self._check_table(job)
        member = job.member(self.party)
        label = (job.label, job.label_bounds) if member.holds_label else None
        columns = self._columns.of_job(member.features, member.bounds, label, holdout=job.holdout)
        agreed(allowed.needed)
        with self._ledger.lock:
            new = name not in self._ledger.state.scoped.places
            self._units.set_aside(self._ledger, name, units=job.max_units(self.party))
        context = JobContext(
            name,
            self.party,
            self.version,
            columns,
            self._gate,
            self._ledger,
            units=self._units,
            pins={} if allowed.sealed is None else allowed.sealed.pins,
            keys=self._keys,
            scores=RecordedScores(
                PredictionFolder.beside(self._dataset.folder), self._ledger, order_of(self._dataset)
            ),
            drop_out=self._drop_out,
        )
        try:
            return side(job.method, context)
        except ColonnadeError:
            if new:  # refused after all: what was set aside is free again
                with self._ledger.lock:
                    self._ledger.close_job(name)
            raise

    def _check_table(self, job: Job) -> None:
        """Refuse a job that was made for another table."""
        member, header = job.member(self.party), self.table.header
        if member.dataset != self.version:
            raise BadMessage(f"the job is for another version of the table of party {self.party}")
        if member.alignment != header.alignment:
            raise BadMessage(f"the job is for another order of the rows of party {self.party}")
        self._units.check(job, self.party)
        facts = zip(self.table.fills, self.table.groups, strict=True)
        declared = dict(zip(self.table.names, facts, strict=True))
        groups = member.groups or ("",) * len(member.features)
        for name, fill, group in zip(member.features, member.fills, groups, strict=True):
            if name not in declared:
                raise BadMessage(f"party {self.party} has no feature {name!r}")
            own_fill, own_group = declared[name]
            if fill != own_fill:  # the model would say something else than was trained with
                raise BadMessage(
                    f"the job says that a missing {name!r} counts as {fill:g}, and the schema of "
                    f"party {self.party} says {own_fill:g}"
                )
            # Noise is calibrated to how many columns a row can move, which follows from groups.
            if group != own_group:
                raise BadMessage(
                    f"the job and party {self.party} disagree on the group of {name!r}"
                )
        if not {*member.encodings} <= {*header.encodings}:
            raise BadMessage(f"the job encodes a column of party {self.party} in another way")
        if member.holds_label and (header.label is None or header.label.name != job.label):
            raise BadMessage(f"party {self.party} has no label {job.label!r}")

    def _open_jobs(self) -> list[str]:
        """Return the coordinator's jobs that have budget set aside or wait for a decision.

        A purchase of bounds is none of them.
        """
        admitted = [name for name in self._ledger.state.left if not name.startswith(bounds_job(""))]
        return [*admitted, *self._proposals.waiting()]

    def _at(self, step: Step) -> None:
        """Look before a charge and, for a file may be written while it is read, before noise."""
        if step in (Step.ASKED, Step.COMPUTED):
            self._check_in_place()

    def _check_in_place(self) -> None:
        """Refuse to go on if the folder holds another table by now, and tell the operator."""
        dataset = self._dataset
        try:
            dataset.check()
        except DatasetChanged as error:
            logger.error("dataset_changed folder=%s %s", dataset.folder, error)
            raise
