"""The organizations that are simulated: their tables, people, keys, ledgers and policies."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.bench.faults.draws import ledger_named
from colonnade.core.fixedpoint import Bounds
from colonnade.data.model import LinearModel
from colonnade.data.schema import load_schema
from colonnade.ledger.create import LedgerConfig, create_ledger
from colonnade.ledger.receipts import public_bytes
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.alignment.normalise import IdRule, PreparedIds, prepare
from colonnade.methods.alignment.spec import Mode
from colonnade.methods.job import Job
from colonnade.party.alignment.policy import AlignAllowance
from colonnade.party.data.dataset import Dataset, open_dataset
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.policy import Allowance, Policy
from colonnade.party.prediction.policy import PredictAllowance
from colonnade.party.sealed.policy import SealedGrant
from colonnade.pki.identity import COORDINATOR, Identity
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.simulate.federation import FEDERATION, HUB, write_source
from colonnade.simulate.sites import Site, SiteColumn
from colonnade.v1 import jobs_pb2

NAMES = ("hospital", "laboratory", "insurer")
COORDINATOR_ID = Identity(FEDERATION, COORDINATOR, HUB)
N_ROWS, N_FEATURES, N_CLIENTS, PEOPLE = 48, 3, 4, 12
LABEL = Bounds(0.0, 1.0)
_BOUNDS = Bounds(-3.0, 3.0)


@dataclass(frozen=True, slots=True)
class Start:
    """Where simulations begin that follow an earlier job: disks, files beside them, releases."""

    name: str  # of the earlier job
    job: Job
    cap: int
    releases: Sequence[jobs_pb2.PartyReleases]
    disks: Mapping[str, dict[str, bytes]]
    files: Mapping[str, dict[str, bytes]] = field(default_factory=dict)
    model: LinearModel | None = None
    run: str = ""  # the prediction that was run, if one was


@dataclass(frozen=True, slots=True)
class Listed:
    """The people whom a party lists, as its configuration would read them."""

    people_listed: tuple[str, ...]
    id: tuple[str, ...] = ("person",)

    def people(self, rule: IdRule) -> PreparedIds:
        """Return the distinct ids, as ``rule`` writes them."""
        return prepare([(person,) for person in self.people_listed], rule)


@dataclass(frozen=True, slots=True)
class Organization:
    """A party's table, its people and its ledger's key."""

    dataset: Dataset
    signer: Ed25519PrivateKey
    listed: Listed


class Organizations:
    """Tables on a real disk, made once: no fault touches them, and every simulation reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ledgers: dict[tuple[str, int], dict[str, bytes]] = {}
        self.of_people = {site.party: self._organization(site) for site in _sites(clients=False)}
        self.of_clients = {site.party: self._organization(site) for site in _sites(clients=True)}

    @cached_property
    def keys(self) -> dict[str, bytes]:
        """The public keys of the parties' ledgers."""
        return {name: public_bytes(made.signer) for name, made in self.of_people.items()}

    def _organization(self, site: Site) -> Organization:
        home = self.folder / ("people" if site.clients is None else "clients") / site.party
        home.mkdir(parents=True)
        write_source(home, site)
        (source,) = home.glob("*.parquet")
        ingest(load_schema(home / "schema.toml"), FileSource(source), out=home / "data")
        place = NAMES.index(site.party)
        dataset = open_dataset(home / "data")
        # The name of an ingest is random, and a job's name follows from it: a seed must replay.
        header = replace(dataset.coarse.header, dataset_version=f"{place:032x}")
        named = replace(dataset, coarse=replace(dataset.coarse, header=header))
        people = np.random.default_rng(place).permutation(20)[: PEOPLE - place]
        listed = Listed(tuple(f"NHS {943_476_000 + number}" for number in people.tolist()))
        return Organization(
            named, Ed25519PrivateKey.from_private_bytes(bytes([place]) * 32), listed
        )

    def ledger(self, name: str, cap: int) -> dict[str, bytes]:
        """Return the files of a new ledger."""
        if (name, cap) not in self._ledgers:
            files = LedgerFiles(self.folder / "ledgers" / f"{name} {cap}")
            config = LedgerConfig(name, {"": cap}, simulation=True)
            signer = self.of_people[name].signer
            with ledger_named(name):
                create_ledger(files, config, signer=signer, clock=lambda: 0.0)
            paths = (files.database, files.log, files.mirror)
            self._ledgers[name, cap] = {path.name: path.read_bytes() for path in paths}
        return self._ledgers[name, cap]

    def policy(self, name: str, receiver: str, purpose: str, trained: str) -> Policy:
        """Return a party's policy, which allows every method and trusts its peers."""
        pins = {other: key for other, key in self.keys.items() if other != name}
        kinds = ("frank-wolfe", "moments", "admm", "sealed", "evaluation")
        sealed = SealedGrant(pins, columns=9)
        allowed = Allowance(COORDINATOR_ID, kinds, ("*",), True, MAX_UNITS, 1000, sealed=sealed)
        aligned = AlignAllowance(COORDINATOR_ID, ("*",), (Mode.UNION,), PEOPLE, 2.0, 1e-3, None)
        scored = PredictAllowance(
            COORDINATOR_ID,
            job=trained,
            models=(),
            receiver=receiver,
            purpose=purpose,
            max_rows=10_000,
            until=dt.date(2100, 1, 1),
            models_per_row=1,
            middle=(),
            pins=self.keys,
        )
        return Policy((allowed,), (aligned,), (scored,) if trained else ())

    def close(self) -> None:
        """Let the tables go."""
        for made in (*self.of_people.values(), *self.of_clients.values()):
            made.dataset.close()


def _sites(*, clients: bool) -> list[Site]:
    draw = np.random.default_rng(7)
    values = draw.normal(size=(len(NAMES), N_FEATURES, N_ROWS))
    label = (values[:, 0].sum(axis=0) > 0).astype(np.float64)
    whose = np.arange(N_ROWS) % N_CLIENTS if clients else None
    return [
        Site(
            name,
            [SiteColumn(f"x{i}", _BOUNDS, column) for i, column in enumerate(values[place])],
            SiteColumn("y", LABEL, label),
            whose,
        )
        for place, name in enumerate(NAMES)
    ]
