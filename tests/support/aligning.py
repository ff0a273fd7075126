"""Parties without tables that align their people, run in one process over real TLS."""

import asyncio
import csv
import functools
import hashlib
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
from msgspec.structs import replace

from colonnade.client import PartyOffer
from colonnade.client.align_builder import AlignOptions, author_alignment
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.job import Job
from colonnade.party import runtime
from colonnade.party.alignment.config import AlignConfig
from colonnade.party.alignment.store import AlignmentFolder, EndedAlignment, read_outcome
from colonnade.party.config import PartyConfig
from colonnade.party.config import load_config as party_config
from colonnade.party.vault.vault import Vault
from colonnade.pki.attestation import CertificateAttestor
from colonnade.pki.authority import load_credentials
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.server.store.base import Store
from colonnade.simulate.federation import FEDERATION, Federation
from support.federation import NAMES, Running, coordinator, founded

CAP = units_down(2.0)
POLICY = f"""\
[[align]]
coordinator = "spiffe://{FEDERATION}/coordinator/hub"
peers = ["*"]
modes = ["union", "left", "inner"]
max_people = 1000
max_epsilon = 2.0
max_delta = 1e-3
"""


def people_of(names: Sequence[str], n_people: int = 40, *, seed: int = 0) -> dict[str, list[str]]:
    """Deal people out: each party has a random half, in an order of its own."""
    draw = np.random.default_rng(seed)
    everyone = [f"NHS {943_476_000 + number}" for number in range(n_people)]
    return {
        name: [everyone[at] for at in draw.permutation(n_people)[: n_people // 2]] for name in names
    }


@dataclass
class Home:
    """One party's folder, ledger and people."""

    name: str
    folder: Path
    people: Sequence[str]
    files: LedgerFiles = field(init=False)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        with (self.folder / "people.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("person", "age"))
            rows.writerows((person, value_of(person)) for person in self.people)
        (self.folder / "policy.toml").write_text(POLICY)
        self.files = LedgerFiles(self.folder / "ledger")
        create_ledger(self.files, LedgerConfig(self.name, {"": CAP}, simulation=True))
        self.ledger = open_ledger(self.files)

    @property
    def alignments(self) -> AlignmentFolder:
        return AlignmentFolder.beside(self.folder / "data")

    def config(self, made: Federation, address: str) -> PartyConfig:
        return replace(
            party_config(made.party_config(self.name)),
            data=self.folder / "data",
            coordinator=address,
            policy=self.folder / "policy.toml",
            uplink_log=self.folder / "uplink.jsonl",
            align=AlignConfig(id=("person",), source=self.folder / "people.csv"),
        )

    def outcome(self) -> EndedAlignment:
        (path,) = self.alignments.path.glob("*.alignment")
        return read_outcome(path)

    def rows(self) -> dict[str, int]:
        """Return the row of every person who has one."""
        outcome = self.outcome()
        found = {person: outcome.row_of([person]) for person in self.people}
        return {person: row for person, row in found.items() if row is not None}


def value_of(person: str) -> int:
    """Return a column's value that follows from the person, whoever lists them."""
    return hashlib.sha256(person.encode()).digest()[0]


P = ParamSpec("P")


def in_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        asyncio.run(test(*arguments, **named))

    return run


def vault_alone(config: PartyConfig, ledger: Ledger) -> Vault:
    """Return a party's vault without a session; what net would sign is signed here."""
    side = runtime.in_one_process(config, ledger)
    pki = config.credentials
    assert pki is not None

    def attest(statement: bytes, size: int) -> bytes:
        return CertificateAttestor(lambda: load_credentials(pki), size).attest(statement)

    side._partner.attest = attest  # type: ignore[method-assign]
    return side._open_vault(None, Identity(FEDERATION, "coordinator", "hub"))


def homes(folder: Path, people: Mapping[str, Sequence[str]]) -> dict[str, Home]:
    return {name: Home(name, folder / name, listed) for name, listed in people.items()}


@asynccontextmanager
async def running(home: Home, made: Federation, address: str) -> AsyncIterator[asyncio.Event]:
    """Run a party until the block ends."""
    stop = asyncio.Event()
    side = runtime.in_one_process(
        home.config(made, address), home.ledger, noise=SeededNoise(NAMES.index(home.name))
    )
    task = asyncio.create_task(side.run(stop))
    try:
        yield stop
    finally:
        stop.set()
        await task
        # A process ends with its threads; here one may still make an answer with the same ledger.
        while _answering():
            await asyncio.sleep(0.005)


def _answering() -> bool:
    """Return whether a thread of this process is in a vault."""
    frames = (walk for top in sys._current_frames().values() for walk in traceback.walk_stack(top))
    return any(frame.f_code.co_filename.endswith("party/vault.py") for frame, _ in frames)


@asynccontextmanager
async def aligning(
    homes: Mapping[str, Home], *, store: Store | None = None, port: int = 0
) -> AsyncIterator[Running]:
    """Run a coordinator and all parties; wait until they are attached."""
    made = founded()
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(coordinator(made, store=store, port=port))
        for home in homes.values():
            await stack.enter_async_context(running(home, made, hub.address))
        await hub.attached(*homes)
        yield hub


def alignment_job(homes: Mapping[str, Home], **options: object) -> Job:
    """Return an alignment of all, as an operator writes it."""
    offers = [
        PartyOffer(
            party=home.name,
            attached=True,
            dataset="",
            population=0,
            features={},
            fills={},
            label=None,
            cap_units=CAP,
            used_units=0,
            align_people=1000,
            ledger_key=bytes.fromhex(home.ledger.opened.public_key),
        )
        for home in homes.values()
    ]
    settings = {"epsilon": 2.0, "delta": 1e-3, "chunk": 100} | options
    return author_alignment(offers, AlignOptions(**settings))  # type: ignore[arg-type]


def check_rows(made: dict[str, dict[str, int]], people: dict[str, list[str]], mode: str) -> None:
    """Everybody who is to have a row has one, the same at all parties, and nobody shares it."""
    listed = [set(each) for each in people.values()]
    wanted = {
        "union": set().union(*listed),
        "left": listed[0],
        "inner": listed[0].intersection(*listed),
    }[mode]
    found: dict[str, int] = {}
    for name, rows in made.items():
        assert rows.keys() == wanted & set(people[name])
        for person, row in rows.items():
            assert found.setdefault(person, row) == row
    assert len(set(found.values())) == len(found) == len(wanted)
