"""One organization with a small table for tests: of people, or of clients written in any way."""

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from colonnade.client import PartyOffer
from colonnade.client.builder import job_over_clients
from colonnade.core.fixedpoint import Bounds
from colonnade.data.schema import parse_schema
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.ledger import Ledger
from colonnade.methods.admm.codec import tasks_to_bytes
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.methods.base import Member, Unit
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec
from colonnade.methods.job import Job
from colonnade.party.config import load_config
from colonnade.party.data.dataset import Dataset
from colonnade.party.data.ingest import IngestSummary, ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.policy import Allowance, Policy
from colonnade.party.runtime import in_one_process
from colonnade.party.vault.vault import Vault
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import MAX_UNITS, units_down
from colonnade.privacy.simulation import ZeroNoise
from support.federation import founded

PARTY = "hospital"
HUB = Identity("study", "coordinator", "hub")
PRICE = units_down(0.1)
COLUMNS = """
[[feature]]
name = "a"
low = -9
high = 9
[[feature]]
name = "b"
low = -9
high = 9
[label]
name = "y"
low = 0
high = 1
"""


def ingest_rows(
    out: Path, clients: Sequence[object] | None = None, *, rule: str = "", seed: int = 0
) -> IngestSummary:
    """Write rows and ingest them; with ``clients`` each row says whose it is."""
    draw = np.random.default_rng(seed)
    n_rows = 500 if clients is None else len(clients)
    values = draw.normal(size=(n_rows, 2)).round(6)
    label = draw.integers(0, 2, n_rows)
    owners = clients if clients is not None else range(n_rows)
    lines = [f'"{o}",{a},{b},{y}' for o, (a, b), y in zip(owners, values, label, strict=True)]
    source = out.parent / f"{out.name}.csv"
    source.write_text("who,a,b,y\n" + "\n".join(lines) + "\n", "utf-8")
    schema = 'client = "who"\n' if clients is not None else ""
    schema += f'client_ids = "{rule}"\n' if rule else ""
    return ingest(parse_schema(schema + COLUMNS, origin="schema"), FileSource(source), out=out)


def a_ledger(cap: int = MAX_UNITS) -> Ledger:
    return memory_ledger(LedgerConfig(PARTY, {"": cap}, simulation=True))


def vault_on(
    dataset: Dataset,
    ledger: Ledger,
    *allowed: Allowance,
    today: Callable[[], dt.date] = lambda: dt.date(2026, 1, 1),
) -> Vault:
    kinds = ("frank-wolfe", "moments", "admm")
    all_of_it = Allowance(HUB, kinds, ("*",), True, MAX_UNITS, 1000)
    return Vault(
        dataset,
        ledger,
        ZeroNoise(),
        policy=Policy(allowed or (all_of_it,)),
        coordinator=HUB,
        today=today,
    )


def start_party(data: Path, ledger: Ledger) -> None:
    """Start the process of a party, which is told to stop before it dials."""
    config = replace(
        load_config(founded().party_config(PARTY)),
        data=data,
        coordinator="127.0.0.1:1",
        uplink_log=data.parent / "uplink.jsonl",
    )
    stopped = asyncio.Event()
    stopped.set()
    asyncio.run(in_one_process(config, ledger, noise=ZeroNoise()).run(stopped))


def vertical_job(dataset: Dataset, *, salt: int = 0, half_width: float = 9.0) -> Job:
    """Return a Frank-Wolfe job of this party alone, under bounds of this half width."""
    table = dataset.coarse
    bounds = (Bounds(-half_width, half_width),) * len(table.names)
    fills = tuple(column.fill for column in table.header.columns[: len(table.names)])
    member = Member(PARTY, dataset.version, table.names, bounds, fills, holds_label=True)
    method = FrankWolfeSpec(
        n_rows=table.n_rows,
        blocks=(Block(PARTY, table.names, 0.7, 1, True),),
        rounds=3,
        sketch_dim=16,
        sketch_entries=1,
        select_units=PRICE,
        share_units=PRICE,
        label_units=PRICE,
        mean_units=PRICE,
    )
    label = table.header.columns[-1]
    salted = salt.to_bytes(16, "big")
    return Job("a test", salted, 1e-6, 60, (member,), label.name, label.bounds, method)


def client_job(dataset: Dataset, *, rounds: int = 5, half_width: float = 9.0) -> Job:
    """Return a job over the clients of this party alone; an answer costs `PRICE`."""
    table, n_clients = dataset.coarse, len(dataset.clients or ())
    features = dict.fromkeys(table.names, Bounds(-half_width, half_width))
    label = table.header.columns[-1]
    offer = PartyOffer(
        PARTY,
        attached=True,
        dataset=dataset.version,
        population=n_clients,
        features=features,
        fills=dict.fromkeys(features, 0.0),
        label=(label.name, label.bounds),
        cap_units=1,
        used_units=0,
        unit=Unit.CLIENT,
    )
    spec = AdmmSpec(
        n_clients=n_clients,
        n_features=2,
        rounds=rounds,
        sampled=n_clients,
        release_units=PRICE,
        gamma=2.0,
        lipschitz=0.2,
        minimum=1,
    )
    return job_over_clients(spec, [offer], target=label.name, name="clients", delta=1e-6)


def ask(clients: Sequence[int], *, round_: int = 1, dim: int = 2) -> bytes:
    """Return a task that asks clients from the origin."""
    points = np.zeros((len(clients), dim), np.int64)
    rounds = np.full(len(clients), round_)
    return tasks_to_bytes(ClientTasks(np.array(clients), rounds, points))
