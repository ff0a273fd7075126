"""The ledger against a reference model, step by step, with reopening and crashes between steps.

The model is forty lines of plain Python that know nothing of chains, files or signatures.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.ledgers import digest

from colonnade.core.errors import (
    BadInput,
    BudgetExceeded,
    ColonnadeError,
    JobClosed,
    ReleaseAbandoned,
    ReleasePurged,
    RequestConflict,
)
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.mechanisms import DiscreteGaussian

Key = tuple[str, int, str]  # job, round, account

jobs = st.sampled_from(["a", "b", "c"])
rounds = st.integers(0, 3)
accounts = st.sampled_from(["", "x"])
mechanisms = st.sampled_from([DiscreteGaussian(10**6 // k, 2) for k in (1, 7, 40, 300)])
requests = st.sampled_from([b"p", b"q"])
UNIT = DiscreteGaussian(10**6, 2).cost


@dataclass
class Model:
    """What a ledger should be."""

    caps: dict[str, int] = field(default_factory=dict)
    charges: dict[Key, tuple[int, bytes]] = field(default_factory=dict)
    bodies: dict[Key, bytes] = field(default_factory=dict)
    purged: set[Key] = field(default_factory=set)
    abandoned: set[Key] = field(default_factory=set)
    limits: dict[tuple[str, str], int] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)

    def cap(self, account: str) -> int:
        return self.caps.get(account, self.caps[""])

    def spent(self, account: str, job: str | None = None) -> int:
        return sum(
            cost
            for (of, _, who), (cost, _) in self.charges.items()
            if who == account and job in (None, of)
        )

    def reserved(self, account: str) -> int:
        return sum(
            limit - self.spent(account, job)
            for (job, who), limit in self.limits.items()
            if who == account and job not in self.closed
        )

    def charge(self, key: Key, cost: int, request: bytes) -> type[ColonnadeError] | None:
        job, _, account = key
        if key in self.charges:
            if self.charges[key] != (cost, request):
                return RequestConflict
            if key in self.purged:
                return ReleasePurged
            if key in self.abandoned:
                return ReleaseAbandoned
            return JobClosed if job in self.closed and key not in self.bodies else None
        if job in self.closed:
            return JobClosed
        if (job, account) in self.limits:
            room = self.limits[job, account] - self.spent(account, job)
        else:
            room = self.cap(account) - self.spent(account) - self.reserved(account)
        if cost > room:
            return BudgetExceeded
        self.charges[key] = (cost, request)
        return None


class LedgerMachine(RuleBasedStateMachine):
    """Drive both and compare."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ledger-model-"))
        self.files = LedgerFiles(self.folder / "ledger")
        self.crashes = 0

    @initialize(cap=st.integers(1, 400 * UNIT))
    def found(self, cap: int) -> None:
        self.model = Model(caps={"": cap})
        create_ledger(self.files, LedgerConfig("model", {"": cap}))
        self.ledger = open_ledger(self.files)

    def attempt(self, expected: type[ColonnadeError] | None, call: object) -> None:
        try:
            call()  # type: ignore[operator]
            raised = None
        except ColonnadeError as error:
            raised = type(error)
        assert raised is expected

    @rule(job=jobs, round_=rounds, account=accounts, mechanism=mechanisms, request=requests)
    def charge(
        self, job: str, round_: int, account: str, mechanism: DiscreteGaussian, request: bytes
    ) -> None:
        expected = self.model.charge((job, round_, account), mechanism.cost, request)
        key = ReleaseKey(job, round_, "k", account)
        self.attempt(
            expected,
            lambda: self.ledger.charge(key, mechanism, request_sha256=digest(request)),
        )

    @rule(
        keys=st.lists(st.tuples(jobs, rounds, accounts), unique=True, max_size=5),
        mechanism=mechanisms,
        request=requests,
    )
    def charge_together(self, keys: list[Key], mechanism: DiscreteGaussian, request: bytes) -> None:
        """Together is the same as one after the other."""
        expected = {key: self.model.charge(key, mechanism.cost, request) for key in keys}
        requests = [
            ReleaseRequest(ReleaseKey(job, round_, "k", account), mechanism, digest(request))
            for job, round_, account in keys
        ]
        refused = {
            (key.job, key.round, key.account): type(error)
            for key, error in self.ledger.charge_many(requests).items()
        }
        assert refused == {key: error for key, error in expected.items() if error is not None}

    @rule(count=st.integers(1, 3))
    def abandon_some(self, count: int) -> None:
        """What is abandoned stays paid for, and is neither stored nor charged again."""
        keys = sorted(self.waiting())[:count]
        refused = self.ledger.abandon_many(
            [ReleaseKey(job, round_, "k", account) for job, round_, account in keys]
        )
        assert all(type(error) is ReleaseAbandoned for error in refused.values())
        self.model.abandoned |= {*keys}

    def waiting(self) -> set[Key]:
        return self.model.charges.keys() - self.model.bodies.keys() - self.model.abandoned

    @rule(body=st.binary(max_size=40))
    def store_the_rest(self, body: bytes) -> None:
        waiting = self.waiting()
        bodies = {
            ReleaseKey(job, round_, "k", account): body + job.encode()
            for job, round_, account in sorted(waiting)
        }
        self.ledger.store_many(bodies)
        self.model.bodies |= {(k.job, k.round, k.account): b for k, b in bodies.items()}

    @rule(job=jobs, round_=rounds, account=accounts, body=st.binary(max_size=40))
    def store(self, job: str, round_: int, account: str, body: bytes) -> None:
        key = (job, round_, account)
        if key not in self.waiting():
            return
        released = self.ledger.store(ReleaseKey(job, round_, "k", account), body)
        self.model.bodies[key] = body
        assert released.receipt.spent == self.model.spent(account)

    @rule(job=jobs, account=accounts, units=st.integers(1, 100 * UNIT))
    def admit(self, job: str, account: str, units: int) -> None:
        model = self.model
        room = model.cap(account) - model.spent(account) - model.reserved(account)
        expected: type[ColonnadeError] | None = None
        if job in model.closed:
            expected = JobClosed
        elif (job, account) in model.limits:
            expected = None if model.limits[job, account] == units else RequestConflict
        elif any(of == job and who == account for of, _, who in model.charges):
            return  # a job is admitted before it is charged; the party sees to that
        elif units > room:
            expected = BudgetExceeded
        else:
            model.limits[job, account] = units
        self.attempt(expected, lambda: self.ledger.admit(job, units=units, account=account))

    @rule(job=jobs)
    def close_job(self, job: str) -> None:
        self.ledger.close_job(job)
        self.model.closed.add(job)

    @rule(job=jobs, round_=rounds, account=accounts)
    def purge(self, job: str, round_: int, account: str) -> None:
        key = (job, round_, account)
        expected = None if key in self.model.bodies else BadInput
        self.attempt(expected, lambda: self.ledger.purge(ReleaseKey(job, round_, "k", account)))
        if expected is None:
            self.model.purged.add(key)

    @rule(account=accounts, units=st.integers(1, 500 * UNIT))
    def set_cap(self, account: str, units: int) -> None:
        model = self.model
        touched = [account] + (
            [who for who in ("x",) if who not in model.caps] if account == "" else []
        )
        enough = all(units >= model.spent(who) + model.reserved(who) for who in touched)
        self.attempt(
            None if enough else BadInput,
            lambda: self.ledger.set_cap(units, reason="model", account=account),
        )
        if enough:
            model.caps[account] = units

    @rule()
    def reopen(self) -> None:
        self.ledger.close()
        self.ledger = open_ledger(self.files)

    @rule()
    def crash(self) -> None:
        """Go on with a copy of the live files, as a killed process would find them."""
        self.crashes += 1
        copy = LedgerFiles(self.folder / f"crash{self.crashes}")
        shutil.copytree(self.files.folder, copy.folder)
        self.ledger.close()
        self.files = copy
        self.ledger = open_ledger(copy)

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "ledger"):
            return
        state, model = self.ledger.state, self.model
        for account in ("", "x"):
            assert self.ledger.budget(account).spent == model.spent(account)
            assert self.ledger.budget(account).cap == model.cap(account)
            assert state.reserved.get(account, 0) == model.reserved(account)
            assert model.spent(account) + model.reserved(account) <= model.cap(account)
        assert len(state.charges) == len(model.charges)
        assert {(key.job, key.round, key.account) for key in state.abandoned} == model.abandoned
        for (job, round_, account), body in model.bodies.items():
            released = self.ledger.stored(ReleaseKey(job, round_, "k", account))
            if (job, round_, account) in model.purged:
                assert released is None
            else:
                assert released is not None
                assert released.body == body

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
        shutil.rmtree(self.folder)


TestLedgerAgainstModel = pytest.mark.slow(LedgerMachine.TestCase)
TestLedgerAgainstModel.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True
)
