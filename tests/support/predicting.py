"""A finished job and parties that may score its model, run in one process over real TLS."""

import csv
import datetime as dt
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.client import PartyOffer
from colonnade.client.predict_builder import PredictOptions, author_prediction
from colonnade.core.arrays import FloatArray
from colonnade.data.model import LinearModel
from colonnade.data.table import COARSE_NAME, Table
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.ledger import Ledger, Released
from colonnade.methods.job import Job, job_id
from colonnade.methods.replay import is_evidence
from colonnade.methods.sealed.claims import PEERS
from colonnade.party.data.dataset import open_dataset
from colonnade.party.methods.sealed_keys import MemoryKeys
from colonnade.party.policy_file import load_policy
from colonnade.party.prediction.store import PredictionFolder
from colonnade.party.sealed.policy import key_to_text
from colonnade.party.vault.vault import Vault
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.server.engine.progress import find_job, releases_of, run_of
from colonnade.server.methods.registry import algorithm_of
from colonnade.server.results import report_of
from colonnade.server.store.base import Store
from colonnade.simulate.federation import FEDERATION
from colonnade.v1 import jobs_pb2
from colonnade.wire.codec import release_to_proto
from colonnade.wire.jobspec import job_to_bytes
from support.federation import (
    CAP,
    NAMES,
    Member_,
    Running,
    coordinator,
    founded,
    make_job,
    make_moments_job,
    make_sealed_job,
    party,
)

PURPOSE = "triage"


@dataclass
class Study:
    """Parties with ledgers that outlive sessions, and a job that they have finished."""

    folder: Path
    names: Sequence[str]
    kind: str = "moments"
    ledgers: dict[str, Ledger] = field(init=False)
    job: Job = field(init=False)
    job_id: str = ""
    releases: Sequence[jobs_pb2.PartyReleases] = ()

    def __post_init__(self) -> None:
        self.ledgers = {
            name: memory_ledger(LedgerConfig(name, {"": CAP}, simulation=True))
            for name in self.names
        }
        # Enough budget, and no penalty, so that the model uses columns of everybody.
        prices = ("mean_units", "gram_units", "share_units", "cross_units")
        if self.kind == "moments":
            spent = dict.fromkeys(prices, units_down(0.2))
            self.job = make_moments_job(founded(), self.names, penalty=0.0, **spent)
        elif self.kind == "sealed":
            self.job = make_sealed_job(founded(), self.names, units_down(0.8), penalty=0.0)
            self.write_policies("")
        else:
            self.job = make_job(founded(), self.names)

    def key(self, name: str) -> bytes:
        return bytes.fromhex(self.ledgers[name].opened.public_key)

    def grant(self, **changes: object) -> str:
        """Return a grant for the job, with the keys of everybody."""
        peers = ", ".join(f'{name} = "{key_to_text(self.key(name))}"' for name in self.names)
        settings = {
            "coordinator": f'"spiffe://{FEDERATION}/coordinator/hub"',
            "job": f'"{self.job_id}"',
            "receiver": f'"{self.names[0]}"',
            "purpose": f'"{PURPOSE}"',
            "max_rows": "10000",
            "until": "2100-01-01",
            "peers": f"{{ {peers} }}",
        } | changes
        lines = (f"{key} = {value}" for key, value in settings.items() if value is not None)
        return "[[predict]]\n" + "\n".join(lines) + "\n"

    def policy(self, name: str) -> Path:
        return self.folder / f"{name}.policy.toml"

    def write_policies(self, grants: str) -> None:
        for name in self.names:
            usual = (founded().folder / name / "policy.toml").read_text()
            if self.kind == "sealed":
                keys = {each: key_to_text(self.key(each)) for each in self.names if each != name}
                peers = ", ".join(f'{each} = "{key}"' for each, key in keys.items())
                usual += f'sealed = "{PEERS}"\nsealed_columns = 9\nsealed_peers = {{ {peers} }}\n'
            self.policy(name).write_text(usual + grants)

    def home(self, name: str) -> Path:
        (self.folder / name).mkdir(exist_ok=True)
        return self.folder / name

    def predictions(self, name: str) -> PredictionFolder:
        return PredictionFolder(self.folder / name / "predictions")

    def offers(self) -> list[PartyOffer]:
        """Return what an operator is told of the parties."""
        table = Table.open(founded().folder / self.names[0] / "data" / COARSE_NAME)
        return [
            PartyOffer(
                party=name,
                attached=True,
                dataset="ab",
                population=table.n_rows,
                features={},
                fills={},
                label=None,
                cap_units=CAP,
                used_units=0,
                alignment=table.header.alignment,
                ledger_key=self.key(name),
            )
            for name in self.names
        ]

    def request(
        self,
        rows: Sequence[int],
        *,
        expected: LinearModel | None = None,
        releases: Sequence[jobs_pb2.PartyReleases] | None = None,
        **options: Any,
    ) -> Job:
        """Return a prediction as an operator writes it."""
        settings = {"to": self.names[0], "purpose": PURPOSE} | options
        return author_prediction(
            job_to_bytes(self.job),
            self.releases if releases is None else releases,
            rows,
            PredictOptions(**settings),
            offers=self.offers(),
            expected=expected,
        )


@asynccontextmanager
async def attached(
    study: Study, *, store: Store | None = None, **options: Any
) -> AsyncIterator[tuple[Running, Mapping[str, Member_]]]:
    """Run a coordinator and all parties of a study; wait until they are attached."""
    made = founded()
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(coordinator(made, store=store, **options))
        members = {}
        for name in study.names:
            given: dict[str, Any] = {"ledger": study.ledgers[name]}
            if study.policy(name).exists():
                given["policy"] = study.policy(name)
            members[name] = await stack.enter_async_context(
                party(made, name, hub.address, study.home(name), **given)
            )
        await hub.attached(*study.names)
        yield hub, members


async def trained(
    folder: Path, names: Sequence[str] = NAMES[:3], *, kind: str = "moments"
) -> Study:
    """Run a job to its end and grant its model to everybody's first."""
    study = Study(folder, names, kind)
    async with attached(study) as (hub, _):
        study.job_id = await hub.submit(study.job)
        assert await hub.ended(study.job_id) == "finished"
        engine, store = hub.serving.engine, hub.store
        study.releases = await hub.serving.worker.read(
            lambda: releases_of(store, find_job(engine, store, study.job_id))
        )
        await hub.until(lambda: not any(each.state.left for each in study.ledgers.values()))
    study.write_policies(study.grant())
    return study


async def report(hub: Running, name: str) -> dict[str, Any]:
    """Return a job's report."""
    engine, store = hub.serving.engine, hub.store

    def look() -> dict[str, Any]:
        return report_of(engine, store, run_of(engine, store, find_job(engine, store, name)))

    await hub.serving.worker.do(engine.settle)
    return await hub.serving.worker.read(look)


async def refusal(hub: Running, job: Job) -> str:
    """Return why a job failed."""
    name = await hub.submit(job)
    assert await hub.ended(name) == "failed"
    rows = await hub.serving.worker.do(hub.store.jobs)
    return next(row.reason for row in rows if row.job_id == name)


def scores_in(path: Path) -> tuple[list[int], FloatArray, FloatArray]:
    """Read a receiver's file."""
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["row", "score", "prediction"]
    numbers = np.array([[float(cell) for cell in line[1:]] for line in lines])
    return [int(line[0]) for line in lines], numbers[:, 0], numbers[:, 1]


class Tabletop:
    """Vaults of a study around one table: no network, the coordinator's steps in between."""

    def __init__(self, study: Study) -> None:
        self.study, self.vaults = study, dict[str, Vault]()
        for name in study.names:
            if not (data := study.home(name) / "data").exists():
                shutil.copytree(founded().folder / name / "data", data)
            self.restart(name)

    def restart(self, name: str, today: dt.date = dt.date(2026, 1, 1)) -> None:
        """Open a party again: what it knows is on disk and in its ledger."""
        home = self.study.home(name)
        policy = self.study.policy(name)
        usual = founded().folder / name / "policy.toml"
        self.vaults[name] = Vault(
            open_dataset(home / "data"),
            self.study.ledgers[name],
            SeededNoise(NAMES.index(name)),
            policy=load_policy(policy if policy.exists() else usual),
            coordinator=Identity(FEDERATION, "coordinator", "hub"),
            today=lambda: today,
            keys=MemoryKeys(),
        )

    def grant(self, grants: str) -> None:
        """Give all parties these grants, and no others."""
        self.study.write_policies(grants)
        for name in self.study.names:
            self.restart(name)

    def codes(self, job: Job) -> dict[str, str]:
        """Return what each party says of a job: its code, or nothing if it accepts."""
        spec = job_to_bytes(job)
        return {name: vault.consider(spec).code for name, vault in self.vaults.items()}

    def refused(self, job: Job) -> str:
        """Return the one code with which every party that is in a job refuses it."""
        codes = self.codes(job)
        (code,) = {codes[member.party] for member in job.members}
        assert code
        return code

    def run(self, job: Job) -> tuple[str, dict[str, list[Released]]]:
        """Run a job to its end, and return its name and what left each party."""
        spec = job_to_bytes(job)
        name, sent = job_id(spec), dict[str, list[Released]]()
        algorithm = algorithm_of(job, name)
        assert [self.vaults[each.party].consider(spec).code for each in job.members] == [""] * len(
            job.members
        )
        state = algorithm.start()
        while not algorithm.finished(state):
            answers = {}
            for party_, task in algorithm.tasks(state).items():
                released = list(self.vaults[party_].answer(name, algorithm.round_of(state), task))
                answers[party_] = {each.key.kind: each.body for each in released}
                algorithm.check(state, party_, answers[party_])
                sent.setdefault(party_, []).extend(released)
            state = algorithm.absorb(state, answers)
        for each in job.members:
            self.vaults[each.party].close_job(name, finished=True)
        return name, sent

    def train(self) -> None:
        """Run the study's job."""
        self.study.job_id, sent = self.run(self.study.job)
        kind = self.study.job.kind
        self.study.releases = [
            jobs_pb2.PartyReleases(
                party=name,
                releases=(release_to_proto(e) for e in sent[name] if is_evidence(kind, e.key.kind)),
            )
            for name in self.study.names
        ]

    def scores(self, name: str) -> tuple[list[int], FloatArray, FloatArray]:
        """Return what the receiver was told."""
        return scores_in(self.study.predictions(self.study.names[0]).scores_path(name))


def table_of(folder: Path, names: Sequence[str] = NAMES[:3], *, kind: str = "moments") -> Tabletop:
    """Return a table at which a job was run, and its model granted to the first party."""
    table = Tabletop(Study(folder, names, kind))
    table.train()
    table.grant(table.study.grant())
    return table
