"""A federation for tests: founded once on disk, run in one process over real TLS."""

import asyncio
import atexit
import dataclasses
import functools
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from colonnade.core.fixedpoint import Bounds
from colonnade.data.table import COARSE_NAME, Table, open_pair
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.ledger import Ledger
from colonnade.methods.base import Member, MethodSpec, Part
from colonnade.methods.frank_wolfe.solver.steps import FrankWolfeSolver, Iterate
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec
from colonnade.methods.job import Job, job_id
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.problem import Labels, Problem
from colonnade.methods.sealed.plan import recommend
from colonnade.party import runtime
from colonnade.party.config import PartyConfig
from colonnade.party.config import load_config as party_config
from colonnade.party.data.binding import OWNER_NAME
from colonnade.party.data.columns import columns_for, version_of
from colonnade.party.vault.meter import UplinkLine, read_log
from colonnade.party.vault.warming import warm
from colonnade.pki.authority import Credentials, load_credentials
from colonnade.privacy.accounting import units_down
from colonnade.privacy.sampling import NoiseSource
from colonnade.privacy.simulation import SeededNoise
from colonnade.server.api.auth import Authenticator
from colonnade.server.runtime import Serving, create_server
from colonnade.server.store.base import IterateRow, Store
from colonnade.server.store.sql import Database
from colonnade.simulate.federation import FEDERATION, Federation, create_federation
from colonnade.simulate.inprocess import moments
from colonnade.simulate.inprocess.vertical import Data, parties
from colonnade.simulate.sites import Site, SiteColumn
from colonnade.wire.jobspec import job_to_bytes

NAMES = ("hospital", "laboratory", "insurer", "registry")
CAP = units_down(2.0)
UNITS = units_down(0.01)
N_ROWS, N_FEATURES = 300, 3
BOUNDS, LABEL_BOUNDS = Bounds(-3.0, 3.0), Bounds(0.0, 1.0)
# When a test gives up, and when a coordinator does on a party: no claim is about either, and on a
# busy machine a process alone may take a minute to start.
WAIT_S = 300.0
PARTY_TIMEOUT_S = 3600


def sites(
    n_rows: int = N_ROWS, n_features: int = N_FEATURES, names: Sequence[str] = NAMES
) -> list[Site]:
    """Make tables whose label, 0 or 1, follows from one feature of each party."""
    draw = np.random.default_rng(7)
    values = draw.normal(size=(len(names), n_features, n_rows))
    label = (values[:, 0].sum(axis=0) > 0).astype(np.float64)
    return [
        Site(
            name,
            [SiteColumn(f"x{i}", BOUNDS, column) for i, column in enumerate(values[place])],
            SiteColumn("y", LABEL_BOUNDS, label),
        )
        for place, name in enumerate(names)
    ]


@functools.cache
def founded() -> Federation:
    """Return one federation of four parties, made once for all tests of this process.

    Kernels are compiled first: on a busy machine that takes longer than a test waits for a job.
    """
    warm(("frank-wolfe", "moments", "sealed"))
    folder = Path(tempfile.mkdtemp(prefix="colonnade-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return create_federation(folder, sites(), cap_units=CAP, port=1)  # each test takes a port


def members_of(made: Federation, names: Sequence[str], *, sketched: bool) -> tuple[Member, ...]:
    """Return the places of ``names``; with ``sketched`` the first alone holds the label."""
    tables = {name: Table.open(made.folder / name / "data" / COARSE_NAME) for name in names}
    return tuple(
        Member(
            name,
            version_of(table),
            tuple(table.names),
            tuple(table.bounds),
            tuple(table.fills),
            holds_label=not sketched or place == 0,
        )
        for place, (name, table) in enumerate(tables.items())
    )


def make_job(made: Federation, names: Sequence[str], *, salt: int = 0, **changes: Any) -> Job:
    """Return a job of ``names``; ``changes`` are of the method, or ``party_timeout_s``."""
    timeout = changes.pop("party_timeout_s", PARTY_TIMEOUT_S)
    members = members_of(made, names, sketched=changes.get("labels") is Labels.SKETCHED)
    probability = changes.pop("probability", 1.0)
    settings: dict[str, Any] = {
        "n_rows": N_ROWS,
        "blocks": tuple(
            Block(each.party, each.features, 0.7, 2, each.holds_label, probability)
            for each in members
        ),
        "rounds": 5,
        "sketch_dim": 64,
        "sketch_entries": 1,
        "select_units": UNITS,
        "share_units": UNITS,
        "label_units": UNITS,
        "mean_units": UNITS,
    }
    method = FrankWolfeSpec(**settings | changes)
    return _job(members, method, salt, timeout)


def make_moments_job(
    made: Federation, names: Sequence[str], *, salt: int = 0, **changes: Any
) -> Job:
    """Return a moments job of ``names``; ``changes`` are of the method, or ``party_timeout_s``."""
    timeout = changes.pop("party_timeout_s", PARTY_TIMEOUT_S)
    sketched = changes.get("labels") is Labels.SKETCHED
    members = members_of(made, names, sketched=sketched)
    settings: dict[str, Any] = {
        "n_rows": N_ROWS,
        "parts": tuple(Part(each.party, each.features, each.holds_label) for each in members),
        "mean_units": UNITS,
        "gram_units": UNITS,
        "share_units": UNITS,
        "cross_units": UNITS,
        "label_units": UNITS if sketched else 0,
        "marginal_units": UNITS if sketched else 0,
        "screen_units": UNITS,
        "directions": 2,
        "probes": 3,
        "sketch_dim": 64,
    }
    return _job(members, MomentsSpec(**settings | changes), salt, timeout)


def make_sealed_job(
    made: Federation, names: Sequence[str], units: int, *, salt: int = 0, **changes: Any
) -> Job:
    """Return a sealed job of ``names``, the first of which holds the label, for ``units`` each."""
    members = members_of(made, names, sketched=True)
    features = {each.party: each.features for each in members}
    problem = Problem(n_rows=N_ROWS, features=features, rho_units=units, label_owner=names[0])
    method = dataclasses.replace(recommend(problem).spec, **changes)
    return _job(members, method, salt, PARTY_TIMEOUT_S)


def _job(members: tuple[Member, ...], method: MethodSpec, salt: int, timeout: int) -> Job:
    return Job(
        "a test",
        salt.to_bytes(16, "big"),
        1e-6,
        timeout,
        members,
        "y",
        LABEL_BOUNDS,
        method,
    )


def seeds(names: Sequence[str]) -> dict[str, NoiseSource]:
    """Return a repeatable stream of noise for each party."""
    return {name: SeededNoise(NAMES.index(name)) for name in names}


def reference(made: Federation, job: Job) -> tuple[Iterate | MomentsState, dict[str, int]]:
    """Run the steps of both sides in one process, without wire, with the noise of `seeds`.

    Returns the last state and what each party has spent.
    """
    name = job_id(job_to_bytes(job))
    names = [member.party for member in job.members]
    pairs = [open_pair(made.folder / name / "data") for name in names]
    found = [
        columns_for(*pair, member.features, member.bounds, None)
        for pair, member in zip(pairs, job.members, strict=True)
    ]
    first = job.members[0]
    asked = (job.label, job.label_bounds)
    label = columns_for(*pairs[0], first.features, first.bounds, asked).label
    assert label is not None
    width = found[0].features.shape[0]
    data = Data(
        np.concatenate([each.features for each in found]),
        label,
        tuple(tuple(range(k * width, (k + 1) * width)) for k in range(len(found))),
    )
    if isinstance(job.method, MomentsSpec):
        return _moments(data, job.method, name)
    assert isinstance(job.method, FrankWolfeSpec)
    return _frank_wolfe(data, job.method, name)


def _frank_wolfe(data: Data, spec: FrankWolfeSpec, name: str) -> tuple[Iterate, dict[str, int]]:
    noises = seeds([block.party for block in spec.blocks])
    sides = {party: parties(data, spec, name, noise)[party] for party, noise in noises.items()}
    solver = FrankWolfeSolver.of(spec, name)
    state = solver.start()
    while not solver.finished(state):
        answers = {}
        for party, task in solver.tasks(state).items():
            side = sides[party]
            if task.public is None:
                released = side.open(b"")
            else:
                released = side.choose(task.round, task.public, task.candidates, b"")
            answers[party] = {each.key.kind: each.body for each in released}
        state = solver.absorb(state, answers)
    return state, {party: side.ledger.budget().spent for party, side in sides.items()}


def _moments(data: Data, spec: MomentsSpec, name: str) -> tuple[MomentsState, dict[str, int]]:
    noises = seeds([part.party for part in spec.parts])
    sides = {
        party: moments.parties(data, spec, name, noise)[party] for party, noise in noises.items()
    }
    solver = MomentsSolver(spec, name)
    state = solver.start()
    while not solver.finished(state):
        answers = {}
        for party, task in solver.tasks(state).items():
            released = sides[party].answer(task, b"")
            answers[party] = {each.key.kind: each.body for each in released}
        state = solver.absorb(state, answers)
    return state, {party: side.ledger.budget().spent for party, side in sides.items()}


@dataclass
class Running:
    """A coordinator in this process."""

    serving: Serving
    store: Store
    stop: asyncio.Event
    task: "asyncio.Task[None]"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.serving.port}"

    async def submit(self, job: Job | bytes) -> str:
        spec = job if isinstance(job, bytes) else job_to_bytes(job)
        return await self.serving.worker.do(
            lambda: self.serving.engine.submit(spec, "test", again=True)
        )

    async def until(self, condition: Callable[[], bool], wait_s: float = WAIT_S) -> None:
        """Wait for a condition on the engine, looking whenever the loop turns."""
        async with asyncio.timeout(wait_s):
            while not condition():
                if self.task.done():
                    self.task.result()
                    raise AssertionError("the coordinator stopped")
                await asyncio.sleep(0.005)

    async def attached(self, *names: str) -> None:
        await self.until(lambda: self.serving.engine.attached >= set(names))

    async def ended(self, name: str) -> str:
        """Wait for a job's end and return how it ended."""
        await self.until(lambda: name in self.serving.engine.ended)
        return self.serving.engine.ended[name].value

    async def iterates(self, name: str) -> Sequence[IterateRow]:
        """Return a job's iterates, first to last."""
        return await self.serving.worker.do(lambda: self.store.iterates(name))


@asynccontextmanager
async def coordinator(
    made: Federation,
    *,
    store: Store | None = None,
    port: int = 0,
    options: list[tuple[str, int]] | None = None,
    authenticator: Authenticator | None = None,
    secure: bool = True,
    **engine: Any,
) -> AsyncIterator[Running]:
    """Run a coordinator in this process; its store lives in memory unless one is given."""
    database = store or Database("sqlite://")
    credentials = load_credentials(made.folder / "hub" / "pki") if secure else None
    serving = create_server(
        database,
        authenticator or Authenticator(FEDERATION, insecure=not secure),
        address=f"127.0.0.1:{port}",
        credentials=credentials,
        options=options,
        **engine,
    )
    stop = asyncio.Event()
    running = Running(serving, database, stop, asyncio.create_task(serving.run(stop)))
    try:
        yield running
    finally:
        stop.set()
        try:
            await running.task
        finally:
            if store is None:
                database.close()


@dataclass
class Member_:
    """A party in this process."""

    ledger: Ledger
    config: PartyConfig
    task: "asyncio.Task[None]" = field(repr=False)
    stop: asyncio.Event = field(repr=False)

    def log(self) -> list[UplinkLine]:
        return read_log(self.config.uplink_log)

    def spent(self) -> int:
        return self.ledger.budget().spent


@asynccontextmanager
async def party(
    made: Federation,
    name: str,
    address: str,
    folder: Path,
    *,
    noise: NoiseSource | None = None,
    ledger: Ledger | None = None,
    **changes: Any,
) -> AsyncIterator[Member_]:
    """Run a party in this process, with a simulation ledger in memory unless one is given.

    It has a copy of the table: one that a ledger has paid for is refused with another ledger.
    """
    book = ledger or memory_ledger(LedgerConfig(name, {"": CAP}, simulation=True))
    data = folder / f"{name} {book.opened.ledger_id}"
    if not data.exists():
        unowned = shutil.ignore_patterns(OWNER_NAME)
        shutil.copytree(made.folder / name / "data", data, ignore=unowned)
    config = replace(
        party_config(made.party_config(name)),
        data=data,
        coordinator=address,
        uplink_log=folder / f"{name}.jsonl",
        **changes,
    )
    source = noise if noise is not None else seeds([name])[name]
    stop = asyncio.Event()
    task = asyncio.create_task(runtime.in_one_process(config, book, noise=source).run(stop))
    try:
        yield Member_(book, config, task, stop)
    finally:
        stop.set()
        if not task.done():
            await task


@asynccontextmanager
async def everyone(
    made: Federation,
    names: Sequence[str],
    folder: Path,
    *,
    addresses: Mapping[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Running, dict[str, Member_]]]:
    """Run a coordinator and parties; wait until all are attached."""
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(coordinator(made, **options))
        members = {
            name: await stack.enter_async_context(
                party(made, name, (addresses or {}).get(name, hub.address), folder)
            )
            for name in names
        }
        await hub.attached(*names)
        yield hub, members


def credentials_of(made: Federation, name: str) -> Credentials:
    return load_credentials(made.folder / name / "pki")
