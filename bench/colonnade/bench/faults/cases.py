"""The organizations that are simulated, and the jobs that they are asked: one of every method."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.fixedpoint import Bounds
from colonnade.data.schema import load_schema
from colonnade.ledger.create import LedgerConfig, create_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.admm.job_spec import AdmmJobSpec, ClientPart
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.base import Member, MethodSpec, Part
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec
from colonnade.methods.job import Job
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.problem import Labels
from colonnade.party.data.dataset import Dataset, open_dataset
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.policy import Allowance, Policy
from colonnade.pki.identity import COORDINATOR, Identity
from colonnade.privacy.accounting import MAX_UNITS, units_down
from colonnade.simulate.federation import FEDERATION, HUB, write_source
from colonnade.simulate.sites import Column, Site

NAMES = ("hospital", "laboratory", "insurer")
COORDINATOR_ID = Identity(FEDERATION, COORDINATOR, HUB)
N_ROWS, N_FEATURES, N_CLIENTS = 48, 3, 4
_UNITS, _CLIENT_UNITS = units_down(0.01), units_down(0.25)
_BOUNDS, _LABEL = Bounds(-3.0, 3.0), Bounds(0.0, 1.0)
_NEVER_S = 100_000  # of virtual time: longer than any simulation
METHODS = ("frank-wolfe", "frank-wolfe sketched", "moments", "moments sketched", "admm")
SHORT_S = 20  # of a job that gives up on who is away


@dataclass(frozen=True, slots=True)
class Organization:
    """A party's table and its ledger's key."""

    dataset: Dataset
    signer: Ed25519PrivateKey


class Organizations:
    """Tables on a real disk, made once: no fault touches them, and every simulation reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ledgers: dict[tuple[str, int], dict[str, bytes]] = {}
        self.of_people = {site.party: self._organization(site) for site in _sites(clients=False)}
        self.of_clients = {site.party: self._organization(site) for site in _sites(clients=True)}

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
        return Organization(named, Ed25519PrivateKey.from_private_bytes(bytes([place]) * 32))

    def ledger(self, name: str, cap: int) -> dict[str, bytes]:
        """Return the files of a new ledger."""
        if (name, cap) not in self._ledgers:
            files = LedgerFiles(self.folder / "ledgers" / f"{name} {cap}")
            config = LedgerConfig(name, {"": cap}, simulation=True)
            signer = self.of_people[name].signer
            create_ledger(files, config, signer=signer, clock=lambda: 0.0)
            paths = (files.database, files.log, files.mirror)
            self._ledgers[name, cap] = {path.name: path.read_bytes() for path in paths}
        return self._ledgers[name, cap]

    def close(self) -> None:
        """Let the tables go."""
        for made in (*self.of_people.values(), *self.of_clients.values()):
            made.dataset.close()


def policy() -> Policy:
    """Return a policy that allows every method."""
    kinds = ("frank-wolfe", "moments", "admm")
    return Policy((Allowance(COORDINATOR_ID, kinds, ("*",), True, MAX_UNITS, 1000),))


def make_job(
    organizations: Organizations, method: str, names: Sequence[str], *, salt: int, short: bool
) -> Job:
    """Return a job of ``method``; a ``short`` one gives up on who is away."""
    kind, _, labels = method.partition(" ")
    timeout = SHORT_S if short else _NEVER_S
    over_clients = kind == "admm"
    held = organizations.of_clients if over_clients else organizations.of_people
    members = tuple(
        _member(
            name,
            held[name].dataset,
            labels=not labels or place == 0,
            clients=N_CLIENTS if over_clients else 0,
        )
        for place, name in enumerate(names)
    )
    makers = {"frank-wolfe": _frank_wolfe, "moments": _moments, "admm": _admm}
    made = makers[kind](members, bool(labels), timeout)
    key = salt.to_bytes(16, "big")
    return Job("a simulated job", key, 1e-6, timeout, members, "y", _LABEL, made)


def _sites(*, clients: bool) -> list[Site]:
    draw = np.random.default_rng(7)
    values = draw.normal(size=(len(NAMES), N_FEATURES, N_ROWS))
    label = (values[:, 0].sum(axis=0) > 0).astype(np.float64)
    whose = np.arange(N_ROWS) % N_CLIENTS if clients else None
    return [
        Site(
            name,
            [Column(f"x{i}", _BOUNDS, column) for i, column in enumerate(values[place])],
            Column("y", _LABEL, label),
            whose,
        )
        for place, name in enumerate(NAMES)
    ]


def _member(name: str, dataset: Dataset, *, labels: bool, clients: int) -> Member:
    table = dataset.coarse
    named = tuple(table.names), tuple(table.bounds), tuple(table.fills)
    made = Member(name, dataset.version, *named, holds_label=labels)
    return replace(made, clients=clients) if clients else made


def _frank_wolfe(members: Sequence[Member], sketched: bool, _timeout: int) -> MethodSpec:
    settings: dict[str, Any] = {"labels": Labels.SKETCHED} if sketched else {}
    return FrankWolfeSpec(
        n_rows=N_ROWS,
        blocks=tuple(
            Block(each.party, each.features, 0.7, 2, each.holds_label, 1.0) for each in members
        ),
        rounds=8,
        sketch_dim=16,
        sketch_entries=1,
        select_units=_UNITS,
        share_units=_UNITS,
        label_units=_UNITS if sketched else 0,
        mean_units=_UNITS,
        **settings,
    )


def _moments(members: Sequence[Member], sketched: bool, _timeout: int) -> MethodSpec:
    settings: dict[str, Any] = {"labels": Labels.SKETCHED} if sketched else {}
    return MomentsSpec(
        n_rows=N_ROWS,
        parts=tuple(Part(each.party, each.features, each.holds_label) for each in members),
        mean_units=_UNITS,
        gram_units=_UNITS,
        share_units=_UNITS,
        cross_units=_UNITS,
        label_units=_UNITS if sketched else 0,
        marginal_units=_UNITS if sketched else 0,
        screen_units=_UNITS,
        directions=2,
        probes=3,
        sketch_dim=16,
        **settings,
    )


def _admm(members: Sequence[Member], _sketched: bool, timeout: int) -> MethodSpec:
    spec = AdmmSpec(
        n_clients=N_CLIENTS * len(members),
        n_features=N_FEATURES,
        rounds=6,
        sampled=N_CLIENTS * len(members) - 2,
        release_units=_CLIENT_UNITS,
        gamma=2.0,
        lipschitz=1.0,
        intercept=True,
    )
    parts = tuple(ClientPart(each.party, each.features, N_CLIENTS) for each in members)
    return AdmmJobSpec(parts, spec, min(timeout, 3600))
