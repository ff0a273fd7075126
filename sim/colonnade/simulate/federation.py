"""A whole federation on one disk: certificates, tables, ledgers, policies and configuration files.

Everything is made by the functions behind the commands that organizations use, each in a folder of
its own, so a simulation runs what a deployment runs.
"""

import json
import math
import os
import secrets
import socket
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np

from colonnade.core.arrays import AnyArray, IntArray
from colonnade.data.schema import load_schema
from colonnade.data.schema_text import column_text
from colonnade.ledger.create import LedgerConfig, create_ledger
from colonnade.ledger.receipts import ledger_key_from_file, public_bytes
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.registry import kinds, method_of
from colonnade.methods.sealed.claims import PEERS
from colonnade.party.alignment.store import AlignmentFolder, read_outcome
from colonnade.party.data.ingest import ingest
from colonnade.party.data.order import RowsById
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.sealed.pins import pin
from colonnade.party.sealed.policy import key_to_text
from colonnade.pki.authority import (
    approve_request,
    create_authority,
    create_request,
    install_certificate,
)
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import rho_from_units
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.simulate.sites import Site, SiteColumn

FEDERATION = "simulation"
HUB = "hub"
OPERATOR = "analyst"
FOLDERS = ("authority", "logs", HUB, OPERATOR)  # beside those of the parties
_ID = "simulated person"  # not what a column of somebody's file is called
_SOURCE = "table.parquet"
_CLIENT = "simulated client"
_FIRST_PORT, _LAST_PORT = 15_000, 32_000


@contextmanager
def only_mine() -> Iterator[None]:
    """Make files and folders, and start processes whose files, nobody else may read."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@dataclass(frozen=True, slots=True)
class Federation:
    """Where everything is."""

    folder: Path
    address: str
    parties: tuple[str, ...]
    hub: str = HUB  # the coordinator's folder
    operator: str = f"{OPERATOR}/pki"  # with the operator's key and certificate

    @classmethod
    def at(cls, folder: Path, parties: tuple[str, ...]) -> "Federation":
        """Return a federation that was made in ``folder`` before."""
        config = tomllib.loads((folder / HUB / "coordinator.toml").read_text())
        return cls(folder, config["listen"], parties)

    @property
    def coordinator_config(self) -> Path:
        """The coordinator's file."""
        return self.folder / self.hub / "coordinator.toml"

    @property
    def operator_credentials(self) -> Path:
        """The operator's key and certificate."""
        return self.folder / self.operator

    def party_config(self, party: str) -> Path:
        """Return a party's file."""
        return self.folder / party / "party.toml"

    def ledger(self, party: str) -> LedgerFiles:
        """Return where a party's ledger is."""
        return LedgerFiles(self.folder / party / "ledger")

    def keys(self) -> dict[str, str]:
        """Return the public keys of all parties' ledgers, as policies pin them."""
        signers = {name: ledger_key_from_file(self.ledger(name).key) for name in self.parties}
        return {name: key_to_text(public_bytes(signer)) for name, signer in signers.items()}


@only_mine()
def create_federation(
    folder: Path,
    sites: Sequence[Site],
    *,
    cap_units: int | Mapping[str, int],
    port: int | None = None,
    database: str = "sqlite:///coordinator.db",
    party_settings: Mapping[str, str | int] | None = None,
    people: Mapping[str, IntArray] | None = None,
    membership_units: int = 0,
    sealed: bool = False,
    cohort: bool = False,
) -> Federation:
    """Make the folders of a federation; ``cap_units`` is every party's cap, or says each one's.

    Parameters
    ----------
    people
        Whom each party lists, by their rows in the sites, in the party's own order. Then nothing
        is ingested: the parties have to be aligned first (`simulate.overlap`), which their
        membership accounts may pay ``membership_units`` for.
    sealed
        Whether every policy grants products under encryption with all others.
    cohort
        Whether every policy grants secure sums with all others.
    """
    port = port or free_port()
    address = f"127.0.0.1:{port}"
    now = datetime.now(UTC)
    authority = folder / "authority"
    create_authority(authority, FEDERATION, now=now)
    _member(authority, folder / HUB / "pki", Identity(FEDERATION, "coordinator", HUB), now)
    _member(authority, folder / OPERATOR / "pki", Identity(FEDERATION, "operator", OPERATOR), now)
    config = {"listen": address, "credentials": "pki", "database": database}
    _write_toml(folder / HUB / "coordinator.toml", config)
    for site in sites:
        home = folder / site.party
        cap = cap_units if isinstance(cap_units, int) else cap_units[site.party]
        _member(authority, home / "pki", Identity(FEDERATION, "party", site.party), now)
        write_source(home, site, None if people is None else people[site.party])
        caps = {"": cap}
        if people is None:
            _ingest(home)
        else:
            caps[MEMBERSHIP] = membership_units
        files = LedgerFiles(home / "ledger")
        create_ledger(files, LedgerConfig(site.party, caps, reason="cap of a simulation"))
        _write_toml(
            home / "party.toml",
            {
                "coordinator": address,
                "credentials": "pki",
                "data": "data",
                "ledger": "ledger",
                "policy": "policy.toml",
                "uplink_log": "uplink.jsonl",
                **(party_settings or {}),
            },
        )
        policy = _policy(cap) + (_SEALED if sealed else "")
        (home / "policy.toml").write_text(policy + ("" if people is None else _ALIGN))
        if people is not None:
            with (home / "party.toml").open("a") as file:
                file.write(f'\n[align]\nsource = "{_SOURCE}"\nid = [{json.dumps(_ID)}]\n')
    made = Federation(folder, address, tuple(site.party for site in sites))
    if sealed:
        _pin_all(made)
    if cohort:
        _grant_sums(made)
    return made


def _grant_sums(made: Federation) -> None:
    """Have every policy grant secure sums with all others, whose ledger keys it pins."""
    keys = made.keys()
    for name in made.parties:
        others = (other for other in keys if other != name)
        peers = ", ".join(f"{json.dumps(other)} = {json.dumps(keys[other])}" for other in others)
        with (made.folder / name / "policy.toml").open("a") as file:
            file.write(f'cohort = "{PEERS}"\ncohort_peers = {{ {peers} }}\n')


def _pin_all(made: Federation) -> None:
    """Have every party pin the ledger keys of all others."""
    for name in made.parties:
        for other, key in made.keys().items():
            if other != name:
                pin(made.folder / name / "policy.toml", other, key)


def free_port() -> int:
    """Return a port that nobody listens on right now.

    It lies below the range from which systems take the ports of outgoing connections (RFC 6335 and
    Linux differ, both begin above), so that none of those takes it before it is listened on.
    """
    while True:
        port = _FIRST_PORT + secrets.randbelow(_LAST_PORT - _FIRST_PORT)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _member(authority: Path, folder: Path, identity: Identity, now: datetime) -> None:
    hosts = ("127.0.0.1", "localhost") if identity.role == "coordinator" else ()
    request = create_request(folder, identity, hosts)
    chain = approve_request(authority, request, now=now)
    install_certificate(folder, chain, (authority / "root.pem").read_bytes())


def write_source(home: Path, site: Site, people: IntArray | None = None) -> None:
    """Write the organization's own file and schema, of ``people`` alone if they are given."""
    columns = [*site.features, *([] if site.label is None else [site.label])]
    (home / "schema.toml").write_text(_schema(site), "utf-8")
    rows: slice | IntArray = slice(None) if people is None else people
    values: dict[str, AnyArray] = {
        each.name: (each.values if each.texts is None else each.texts)[rows] for each in columns
    }
    if site.clients is not None:
        values[_CLIENT] = site.clients
    write_parquet(home / _SOURCE, values, people)


def _ingest(home: Path, alignment: RowsById | None = None) -> None:
    schema = load_schema(home / "schema.toml")
    ingest(schema, FileSource(home / _SOURCE), out=home / "data", alignment=alignment)


@only_mine()
def ingest_aligned(federation: Federation) -> None:
    """Ingest every party's file by the one alignment that it has."""
    for party in federation.parties:
        folder = AlignmentFolder.beside(federation.folder / party / "data")
        (path,) = folder.path.glob("*.alignment")
        _ingest(federation.folder / party, read_outcome(path))


def write_parquet(
    path: Path, columns: Mapping[str, AnyArray], people: IntArray | None = None
) -> None:
    """Write columns, and a number for each person, as a Parquet file."""
    n_rows = len(next(iter(columns.values())))
    table = {_ID: np.arange(n_rows) if people is None else people} | dict(columns)
    with duckdb.connect() as connection:
        connection.register("made", table)
        connection.table("made").write_parquet(str(path))


def _schema(site: Site) -> str:
    def block(head: str, column: SiteColumn) -> str:
        if column.declared is not None:
            return column_text(head, replace(column.declared, column=column.name))
        low, high = column.bounds.low, column.bounds.high
        return f"{head}\nname = {json.dumps(column.name)}\nlow = {low!r}\nhigh = {high!r}\n"

    owner = "" if site.clients is None else f'client = "{_CLIENT}"\n'
    blocks = [f'id = "{_ID}"\n{owner}', *(block("[[feature]]", column) for column in site.features)]
    if site.label is not None:
        blocks.append(block("[label]", site.label))
    return "\n".join(blocks)


def _policy(cap_units: int) -> str:
    return f"""\
[[allow]]
coordinator = "spiffe://{FEDERATION}/coordinator/{HUB}"
kinds = {json.dumps([kind for kind in kinds() if method_of(kind).model])}
features = ["*"]
label = true
max_rho = {math.nextafter(rho_from_units(cap_units), math.inf)!r}
max_rounds = 100000
"""


_SEALED = f"""\
sealed = "{PEERS}"
sealed_columns = 100000
"""

_ALIGN = f"""
[[align]]
coordinator = "spiffe://{FEDERATION}/coordinator/{HUB}"
peers = ["*"]
max_people = 10000000
"""


def _write_toml(path: Path, values: Mapping[str, str | int]) -> None:
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()))
