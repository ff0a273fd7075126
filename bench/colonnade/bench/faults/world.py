"""One simulation: everything in one process, and everything that goes wrong drawn from a seed."""

import asyncio
import contextlib
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from colonnade.bench.faults.beside import Beside
from colonnade.bench.faults.cases import COORDINATOR_ID, Organizations
from colonnade.bench.faults.chance import Chance
from colonnade.bench.faults.clock import VirtualLoop
from colonnade.bench.faults.disk import Died, Disk
from colonnade.bench.faults.draws import draws_by_name
from colonnade.bench.faults.hub import FallibleStore, Hub
from colonnade.bench.faults.jobs import OVER_CLIENTS, PURPOSE
from colonnade.bench.faults.network import FAIR, Network, Stub, party_identity
from colonnade.bench.faults.party import PartyHost
from colonnade.bench.faults.plan import Ask, SimulationPlan
from colonnade.bench.faults.watch import Watch
from colonnade.core.errors import FATAL, BadInput, ColonnadeError
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.job import job_id
from colonnade.server.engine.progress import releases_of
from colonnade.server.store.base import IterateRow, State
from colonnade.v1 import jobs_pb2
from colonnade.wire.jobspec import job_to_bytes

_EPOCH_S = 1.8e9  # of the wall clocks: a day in 2027
_JUMP_S = 40 * 86_400.0
_PATIENCE_S = 900.0  # virtual, after the last fault


@dataclass
class WorldOutcome:
    """What came of a simulation."""

    violations: list[str] = field(default_factory=list)
    steps: int = 0
    kills: int = 0
    power_cuts: int = 0
    restarts: int = 0
    trace: str = ""
    states: dict[str, State] = field(default_factory=dict)  # of the jobs
    reasons: dict[str, str] = field(default_factory=dict)
    iterates: dict[str, list[IterateRow]] = field(default_factory=dict)
    spent: dict[tuple[str, str], int] = field(default_factory=dict)  # by job and party
    results: dict[str, dict[str, bytes]] = field(default_factory=dict)  # files that parties got
    # What a later simulation begins with, of one without faults.
    disks: dict[str, dict[str, bytes]] = field(default_factory=dict)
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    releases: dict[str, list[jobs_pb2.PartyReleases]] = field(default_factory=dict)


def simulate(plan: SimulationPlan, organizations: Organizations, folder: Path) -> WorldOutcome:
    """Run a plan to its end."""
    world = World(plan, organizations, folder)
    with (
        draws_by_name(),
        world.beside.in_use(),
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
    ):
        loop = runner.get_loop()
        loop.set_exception_handler(world.unexpected)
        try:
            runner.run(world.run())
        finally:
            world.close()
    return world.outcome


class World:
    """The processes, and who ends and starts them."""

    def __init__(self, plan: SimulationPlan, organizations: Organizations, folder: Path) -> None:
        self._plan, self._organizations, self._folder = plan, organizations, folder
        self.outcome, self._trace = WorldOutcome(), hashlib.sha256()
        self.beside = Beside(folder, self._touched)
        self._chance = Chance(plan.seed, 1)
        self._skew = dict.fromkeys(("", *plan.names), 0.0)
        self._hosts: dict[str, PartyHost] = {}
        self._watches: dict[str, Watch] = {}
        self._power: set[str] = set()  # parties that die of a power cut
        self._faulty = plan.horizon_s > 0.0

    async def run(self) -> None:
        """Run until all faults are over and everything has come to its end."""
        plan, loop = self._plan, asyncio.get_running_loop()
        self._network = Network(self._chance, plan.weather, self.step)
        store = FallibleStore(lambda: self._dies(plan.hub_dies))
        self._hub = Hub(store, COORDINATOR_ID.federation, self._clock(""), self._hub_died)
        self._hub.start()
        for name in plan.names:
            self._hosts[name] = self._host(name)
            self._start(name)
        operators = [loop.create_task(self._operate(ask)) for ask in plan.asks]
        if self._faulty:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(plan.horizon_s):
                    await self._trouble()
            self._faulty, self._network.weather = False, FAIR
        await self._settle(operators)
        self._report()

    def close(self) -> None:
        """Let the disks and the store go."""
        for host in self._hosts.values():
            host.disk.forget()
        self._hub.store.close()
        self.outcome.trace = self._trace.hexdigest()
        shutil.rmtree(self._folder, ignore_errors=True)

    def step(self, *what: object) -> None:
        """Count and note one thing that happened."""
        self.outcome.steps += 1
        now = asyncio.get_running_loop().time()
        self._trace.update(f"{now:.9f} {what}\n".encode())

    def unexpected(self, _loop: Any, context: dict[str, Any]) -> None:
        """Take an exception that nobody handled for what it is, unless it is a simulated death."""
        error = context.get("exception")
        if error is not None and not isinstance(error, Died | ColonnadeError):
            self._violated(f"unexpected {type(error).__name__}: {error}")

    # -- processes -------------------------------------------------------------------------------

    def _host(self, name: str) -> PartyHost:
        plan = self._plan
        home = self._folder / name
        held, start = self._organizations, plan.start
        content = held.ledger(name, plan.cap) if start is None else start.disks[name]
        disk = Disk(LedgerFiles(home), content)
        disk.touched = lambda: self._touched(name)
        made = (held.of_clients if plan.method in OVER_CLIENTS else held.of_people)[name]
        self.beside.put(name, {} if start is None else start.files.get(name, {}))
        trained = "" if start is None else start.name
        self._watches[name] = Watch(name, disk, plan.cap, self.outcome.violations)
        return PartyHost(
            name,
            disk,
            made,
            policy=held.policy(name, plan.names[0], PURPOSE, trained),
            coordinator=COORDINATOR_ID,
            clock=self._clock(name),
            beside=self.beside.home(name),
            left=self._watches[name].left,
            ended=self._ended,
        )

    def _start(self, name: str) -> None:
        self.step("start", name)
        identity = party_identity(COORDINATOR_ID.federation, name)
        stub = Stub(self._network, self._hub, identity, self._watches[name])
        self._hosts[name].start(stub, self._opened)

    def _opened(self, host: PartyHost) -> None:
        self.step("opened", host.name)
        self._watches[host.name].check_disk()

    def _ended(self, host: PartyHost, error: BaseException | None) -> None:
        """Note how a process ended, do to its disk what a power cut does, and start another."""
        name, loop = host.name, asyncio.get_running_loop()
        if loop.is_closed() or self.outcome.states:
            return  # the simulation is over
        self.step("ended", name, type(error).__name__)
        if isinstance(error, FATAL) or not isinstance(error, ColonnadeError | Died | None):
            self._violated(f"{name}: stopped without a fault: {error!r}")
        if error is None:
            self.outcome.kills += name not in self._power
            self.outcome.power_cuts += name in self._power
        if name in self._power:
            self._power.discard(name)
            host.disk.cut_power(self._chance)
            self.beside.cut_power(name, self._chance)
        self._watches[name].check_disk()
        self.outcome.restarts += 1
        loop.call_later(self._chance.between(0.1, 10.0), self._start, name)

    def _hub_died(self) -> None:
        self._kill_hub()

    def _kill_hub(self) -> None:
        if self._hub.servicer is None:
            return
        self.step("killed", "coordinator")
        self._hub.kill()
        self.outcome.kills += 1
        self.outcome.restarts += 1
        wait = self._chance.between(0.1, 10.0)
        asyncio.get_running_loop().call_later(wait, self._hub.start)

    # -- faults ----------------------------------------------------------------------------------

    def _dies(self, chance: float) -> bool:
        return self._faulty and self._chance.happens(chance)

    def _touched(self, name: str) -> None:
        """Perhaps end a party's process at a write, a sync or a draw."""
        if self._dies(self._plan.dies):
            self._perhaps_power(name)
            self._hosts[name].die()

    def _perhaps_power(self, name: str) -> None:
        if self._chance.happens(0.5):
            self._power.add(name)

    async def _trouble(self) -> None:
        chance, plan = self._chance, self._plan
        while True:
            await asyncio.sleep(chance.around(plan.trouble_s))
            what = chance.one_of(("party", "party", "coordinator", "clock", "partition"))
            name = chance.one_of(plan.names)
            self.step("trouble", what, name)
            if what == "party" and self._hosts[name].alive:
                self._perhaps_power(name)
                self._hosts[name].kill()
            elif what == "coordinator":
                self._kill_hub()
            elif what == "clock":
                self._skew[chance.one_of(("", *plan.names))] += chance.between(-_JUMP_S, _JUMP_S)
            elif what == "partition":
                self._network.weather = replace(plan.weather, loss=1.0)
                await asyncio.sleep(chance.between(0.5, 10.0))
                self._network.weather = plan.weather

    def _clock(self, name: str) -> Callable[[], float]:
        loop = asyncio.get_running_loop()
        return lambda: _EPOCH_S + loop.time() + self._skew[name]

    # -- jobs ------------------------------------------------------------------------------------

    async def _operate(self, ask: Ask) -> None:
        """Ask for a job, as long as it takes, and perhaps cancel it."""
        spec, loop = job_to_bytes(ask.job), asyncio.get_running_loop()
        await asyncio.sleep(ask.at)
        await self._insist(lambda engine: engine.submit(spec, "operator", again=True))
        if ask.cancelled_at is not None:
            await asyncio.sleep(max(0.0, ask.cancelled_at - loop.time()))
            await self._insist(lambda engine: engine.cancel(job_id(spec), "operator"))

    async def _insist(self, call: Callable[[Any], Any]) -> None:
        while True:
            with contextlib.suppress(ColonnadeError, TimeoutError):
                async with asyncio.timeout(5.0):
                    await self._hub.do(call)
                    return
            await asyncio.sleep(0.5)

    async def _settle(self, operators: list["asyncio.Task[None]"]) -> None:
        """Wait, without faults, until all jobs have ended and nothing is set aside for them."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE_S
        while not (all(task.done() for task in operators) and self._at_rest()):
            if loop.time() > until:
                self._violated("the federation did not come to its end after the last fault")
                return
            await asyncio.sleep(1.0)

    def _at_rest(self) -> bool:
        engine = self._hub.engine
        if engine is None or engine.runs or engine.attached < {*self._hosts}:
            return False
        ledgers = [host.ledger for host in self._hosts.values()]
        return all(ledger is not None and not ledger.state.left for ledger in ledgers)

    def _report(self) -> None:
        store, outcome = self._hub.store, self.outcome
        for name, watch in self._watches.items():
            if (state := watch.check_disk()) is None:
                continue
            if state.left or any(state.reserved.values()):
                self._violated(f"{name}: budget is stranded in a job that has ended")
            for key, charge in state.charges.items():
                before = outcome.spent.get((key.job, name), 0)
                outcome.spent[key.job, name] = before + charge.units
            outcome.results[name] = self.beside.results(name)
            for left in self.beside.secrets(name):
                self._violated(f"{name}: a secret outlives its job: {left.rsplit('.')[-1]}")
            if not self._plan.horizon_s:
                outcome.disks[name] = self._hosts[name].disk.content()
                outcome.files[name] = self.beside.files(name)
        for row in store.jobs():
            outcome.iterates[row.job_id] = list(store.iterates(row.job_id))
            outcome.reasons[row.job_id] = row.reason
            outcome.states[row.job_id] = row.state
            if not self._plan.horizon_s and row.state is State.FINISHED:
                with contextlib.suppress(BadInput):  # of jobs that fit no model there are none
                    outcome.releases[row.job_id] = releases_of(store, row)

    def _violated(self, what: str) -> None:
        self.outcome.violations.append(what)
