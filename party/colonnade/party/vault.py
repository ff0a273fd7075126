"""The part of a party that touches data, ledger and randomness; it knows nothing of the network.

Privacy: a job is answered only after the local policy approved it and its greatest possible price
was set aside; whatever a coordinator then sends, the gate charges before a row is read, and the
ledger's cap ends it. Refusals depend on the specification, the policy and prices, never on data.
"""

import datetime as dt
import logging
from collections.abc import Callable
from pathlib import Path

from colonnade.core.errors import (
    BadInput,
    BadMessage,
    ColonnadeError,
    LedgerDamaged,
    LedgerFailed,
    LedgerRolledBack,
    PolicyRefused,
    ReleasePurged,
)
from colonnade.core.table import COARSE_NAME, Table, open_pair
from colonnade.optim.admm.method import AdmmMethod
from colonnade.optim.job import Job, job_id
from colonnade.party.answers import Answers, Seat, answers_of
from colonnade.party.bounds import bought_bounds, bounds_job
from colonnade.party.clients import check_accounts, read_clients, set_aside
from colonnade.party.frank_wolfe import Columns
from colonnade.party.policy import Policy
from colonnade.party.versions import columns_for, version_of
from colonnade.privacy.accounting import Budget
from colonnade.privacy.gate import Gate
from colonnade.privacy.ledger import Ledger, Released
from colonnade.privacy.sampling import NoiseSource
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.clients import Replies
from colonnade.wire.codec import receipt_from_bytes, release_to_proto
from colonnade.wire.identity import Identity
from colonnade.wire.jobspec import feature_to_proto, job_from_bytes

logger = logging.getLogger(__name__)
# After any of these nothing more may be released by this process.
FATAL = (LedgerDamaged, LedgerFailed, LedgerRolledBack)


class Vault:
    """One party's data, ledger and noise."""

    def __init__(
        self,
        data: Path,
        ledger: Ledger,
        noise: NoiseSource,
        *,
        policy: Policy,
        coordinator: Identity,
        today: Callable[[], dt.date],
        drop_out: float = 0.0,
    ) -> None:
        self._data, self._ledger, self._policy = data, ledger, policy
        self._gate = Gate(ledger, noise)
        self.coordinator, self._today = coordinator, today
        self._jobs: dict[str, Answers] = {}
        self._drop_out = drop_out
        self.party, self.ledger_id = ledger.opened.party, ledger.opened.ledger_id
        self.table = Table.open(data / COARSE_NAME)
        self.version = version_of(self.table)
        self._clients = read_clients(data, version=self.version, n_rows=self.table.n_rows)
        policy.for_coordinator(coordinator)  # one that may ask nothing is not talked to

    def check_data(self) -> None:
        """Refuse a table that is damaged or is not the one that the ledger is bound to."""
        for table in open_pair(self._data):
            table.verify()
        check_accounts(self._ledger, divided=self._clients is not None)
        digest = bytes.fromhex(self.table.content_digest)
        if (bound := self._ledger.dataset()) is None:
            self._ledger.bind_dataset(digest)
        elif bound != digest:
            raise BadInput(
                f"{self._data} is not the table that the ledger was used with; if it is a new "
                "extract about the same people, bind it: colonnade party bind --help"
            )

    def hello(self) -> pb.Hello:
        """Return what opens a session: declarations, paid releases and prices."""
        ledger = self._ledger
        budget, reserved = self._budget()
        names, label = self._policy.offered(self.coordinator, self.table.names)
        declared = dict(zip(self.table.names, self.table.bounds, strict=True))
        offer = pb.Offer(
            dataset=self.version,
            n_rows=self.table.n_rows if self._clients is None else len(self._clients),
            features=[feature_to_proto(name, declared[name]) for name in names],
            cap_units=budget.cap,
            spent_units=budget.spent,
            reserved_units=reserved,
            simulation=ledger.opened.simulation,
            clients=0 if self._clients is None else len(self._clients),
        )
        last = self.table.header.columns[-1]
        if self.table.label is not None and label:
            offer.label.CopyFrom(feature_to_proto(last.name, last.bounds))
        if (bought := self._bought()) is not None:
            offer.bounds.extend(release_to_proto(each) for each in bought)
            offered = {column.name for column in (*offer.features, offer.label)}
            columns = self.table.header.columns[: self._bounded(bought)]
            # A column that the policy hides keeps its place and not its name.
            offer.bounded.extend(each.name if each.name in offered else "" for each in columns)
        return pb.Hello(
            ledger_id=bytes.fromhex(ledger.opened.ledger_id),
            offer=offer,
            open_jobs=self._open_jobs(),
        )

    def check_latest(self, latest: bytes) -> None:
        """Stop for good if the coordinator holds a release that the ledger does not know."""
        self._ledger.check_receipt(receipt_from_bytes(latest))

    def enrolment(self, statement: bytes) -> pb.EnrolRequest:
        """Return the proof that this party holds its ledger's key."""
        opened = self._ledger.opened
        return pb.EnrolRequest(
            ledger_id=bytes.fromhex(opened.ledger_id),
            ledger_key=bytes.fromhex(opened.public_key),
            signature=self._ledger.sign(statement),
        )

    def consider(self, spec: bytes) -> pb.Decision:
        """Approve a job and set its budget aside, or say why not."""
        name = job_id(spec)
        try:
            if name not in self._jobs:
                self._jobs[name] = self._admit(name, spec)
        except FATAL:
            raise
        except ColonnadeError as error:
            logger.warning("job_refused job=%s code=%s %s", name[:12], error.code, error)
            return pb.Decision(job_id=name, code=error.code, message=error.told)
        return pb.Decision(job_id=name, accepted=True)

    def answer(self, job: str, round_: int, body: bytes) -> list[Released] | Replies:
        """Release what a task of an approved job asks for."""
        if job not in self._jobs:
            raise PolicyRefused("the job was not approved by this party")
        return self._jobs[job].answer(round_, body)

    def close_job(self, job: str) -> None:
        """Free what an ended job had set aside."""
        self._jobs.pop(job, None)
        with self._ledger.lock:
            if job in self._open_jobs():
                self._ledger.close_job(job)

    def _admit(self, name: str, spec: bytes) -> Answers:
        job = job_from_bytes(spec)
        if all(member.party != self.party for member in job.members):
            raise BadMessage(f"the job has no place for party {self.party}")
        today = self._today()
        # First, so that a refusal does not tell which of the columns that the policy hides exist.
        self._policy.approve(job, self.party, coordinator=self.coordinator, today=today)
        self._check_table(job)
        self._set_aside(name, job.max_units(self.party))
        member = job.member(self.party)
        label = (job.label, job.label_bounds) if member.holds_label else None
        found = columns_for(self._data, member.features, member.bounds, label)
        columns = Columns(found.features, found.label)
        seat = Seat(
            name,
            self.party,
            self.version,
            columns,
            self._gate,
            self._ledger,
            clients=self._clients,
            drop_out=self._drop_out,
        )
        return answers_of(job, seat)

    def _set_aside(self, name: str, units: int) -> None:
        """Set a job's greatest price aside, of the party or of its clients."""
        with self._ledger.lock:
            if self._clients is None:
                self._ledger.admit(name, units=units)
            else:
                set_aside(self._ledger, name, self._clients.accounts(self._ledger), units=units)

    def _check_table(self, job: Job) -> None:
        """Refuse a job that was made for another table."""
        member, header = job.member(self.party), self.table.header
        if member.dataset != self.version:
            raise BadMessage(f"the job is for another version of the table of party {self.party}")
        if isinstance(job.method, AdmmMethod):
            self._check_clients(member.clients)
        elif self._clients is not None:
            raise PolicyRefused("the table is divided among clients: only jobs over clients use it")
        elif job.n_rows != self.table.n_rows:
            raise BadMessage(f"the job has {job.n_rows} rows, the table {self.table.n_rows}")
        for name in member.features:
            if name not in self.table.names:
                raise BadMessage(f"party {self.party} has no feature {name!r}")
        if member.holds_label and (
            self.table.label is None or header.columns[-1].name != job.label
        ):
            raise BadMessage(f"party {self.party} has no label {job.label!r}")

    def _check_clients(self, expected: int) -> None:
        have = 1 if self._clients is None else len(self._clients)
        if expected != have:
            raise BadMessage(
                f"the job has {expected} clients of party {self.party}, which has {have}"
            )

    def _budget(self) -> tuple[Budget, int]:
        """Return a budget and what open jobs have set aside of it: the fullest of any client."""
        state, accounts = self._ledger.state, [""]
        if self._clients is not None:
            accounts = self._clients.accounts(self._ledger)
        found = [(state.budget(name), state.reserved.get(name, 0)) for name in accounts]
        return max(found, key=lambda each: each[0].remaining - each[1])

    def _open_jobs(self) -> list[str]:
        """Return the coordinator's jobs that have budget set aside; a purchase is none of them."""
        return [name for name in self._ledger.state.left if not name.startswith(bounds_job(""))]

    def _bought(self) -> list[Released] | None:
        try:
            return bought_bounds(self.version, self._ledger)
        except ReleasePurged:
            return None  # the declared ones remain

    def _bounded(self, bought: list[Released]) -> int:
        """Return how many columns the bought bounds are about: all, or all but the label."""
        from colonnade.optim.quantiles import QuantilePlan

        columns = len(self.table.header.columns)
        plan = QuantilePlan(columns, self.table.n_rows)
        return columns if len(bought[0].body) == plan.n_bytes else columns - 1
