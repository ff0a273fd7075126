"""A party's configuration file."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import force_setattr, replace

from colonnade.core.config import Strict, Whole, about, load_toml
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.alignment.config import AlignConfig
from colonnade.party.engine.settings import EngineName, check_engine
from colonnade.wire.limits import require_loopback, split_address
from colonnade.wire.readings import MONITORING, Addresses

if TYPE_CHECKING:
    from colonnade.party.engine.base import Engine

ANSWER_GRID_MS = 20

TEMPLATE = f"""\
# A Colonnade party. Paths are relative to this file. Nothing listens here: the party dials out.

# Where the coordinator listens; the name must be in its certificate. Several processes of one
# coordinator are given with commas between, and dialled in turn until one answers.
coordinator = "hub.example.org:7443"

# Folder with key, certificate and root, as `colonnade pki request` and `install` make it.
credentials = "pki"

# Folder that `colonnade party ingest` made.
data = "data"

# Folder that `colonnade party init` made, and its head mirror, best on another disk.
ledger = "ledger"
# mirror = "/other/disk/ledger.head"

# What this organization agrees to.
policy = "policy.toml"

# Every message that leaves is noted here: when, for which job, of which kind, how many bytes.
uplink_log = "uplink.jsonl"

# Decisions on jobs, signed by an approver, wait here until the running party takes them up.
# decisions = "decisions"

# Answers leave so many milliseconds after their questions came, or twice as many, four times and
# so on, so that how long one took to make says little. Best longer than any takes; 0 sends each
# when it is made.
answer_grid_ms = {ANSWER_GRID_MS}

# Where sums over rows are computed: on this machine, or by workers of Dask that share the folder
# of the table: this many on this machine, or those of a scheduler (folder: ca.pem, cert.pem,
# key.pem). Whoever holds a certificate of that authority reads the rows: use one of your own.
# engine = "dask"
# workers = 4
# scheduler = "tls://scheduler.example.org:8786"
# scheduler_tls = "dask-tls"

# A party is two processes: net dials and has no data, the vault has the data and no network. Each
# says at its start what the machine lets it give up. "required" refuses to start where the vault
# would keep a network (as with Dask), or net the files.
# isolation = "best-effort"
# Where the two meet if each is started by itself (`colonnade party vault`, `colonnade party net`),
# and who may connect: "0600" the same user, "0660" its group too.
# socket = "run/vault.sock"
# socket_mode = "0600"
{MONITORING}
# Alignments: where the people are, as a file or a query (over files, or of a database that is a
# file; no server is asked, for the vault has no network), and the columns that
# tell them apart. With this the party also runs before there is a table.
# [align]
# source = "people.csv"
# schema = "schema.toml"  # says how the file is written: delimiter, encoding
# id = ["person"]
"""


class PartyConfig(Strict, frozen=True, kw_only=True, rename={"ledger_folder": "ledger"}):
    """What a party is told."""

    coordinator: str
    credentials: Path | None = None  # None on an insecure loopback connection
    data: Path
    ledger_folder: Path
    mirror: Path | None = None
    policy: Path
    uplink_log: Path = Path("uplink.jsonl")
    decisions: Path = Path("decisions")
    answer_grid_ms: Whole = ANSWER_GRID_MS
    insecure: bool = False
    identity: str = ""  # only for an insecure connection; else the certificate says it
    coordinator_identity: str = ""  # with a certificate: the only coordinator that is talked to
    drop_out_percent: Whole = 0  # clients that a host leaves out, at random, as a trial
    metrics: str | None = None
    health: str | None = None
    engine: EngineName = "local"
    scheduler: str | None = None
    scheduler_tls: Path | None = None
    workers: Whole = 0
    isolation: Literal["best-effort", "required"] = "best-effort"
    socket: Path | None = None  # of the vault, where net is started by itself
    socket_mode: Literal["0600", "0660"] = "0600"
    align: AlignConfig | None = None  # where the people are that alignments list

    def __post_init__(self) -> None:
        with about("coordinator"):
            for address in self.addresses:
                split_address(address)
                if self.insecure:
                    require_loopback(address)
        self.monitoring.check()
        check_engine(self.engine, self.scheduler, self.scheduler_tls, self.workers)
        if self.insecure:
            force_setattr(self, "credentials", None)
        needed = ("identity", "coordinator_identity") if self.insecure else ("credentials",)
        for key in needed:
            if not getattr(self, key):
                raise ValueError(f"{key}: is missing")

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the processes of the coordinator listen, in the order of dialling."""
        return tuple(each.strip() for each in self.coordinator.split(","))

    @property
    def ledger(self) -> LedgerFiles:
        """The ledger's files."""
        return LedgerFiles(self.ledger_folder, self.mirror)

    def open_engine(self) -> "Engine":
        """Return where sums over rows are computed; the caller closes it."""
        from colonnade.party.engine.opening import open_engine  # with NumPy, which net never loads

        return open_engine(self.engine, self.scheduler, self.scheduler_tls, self.workers)

    @property
    def answer_grid_s(self) -> float:
        """Grid of the answers' times, in seconds."""
        return self.answer_grid_ms / 1000.0

    @property
    def monitoring(self) -> Addresses:
        """Where metrics and health are shown."""
        return Addresses(self.metrics, self.health)

    @property
    def drop_out(self) -> float:
        """Fraction of its clients that a host leaves out."""
        return min(99, self.drop_out_percent) / 100.0


def load_config(path: Path) -> PartyConfig:
    """Read a party's file; unknown keys are refused."""
    config = load_toml(path, PartyConfig)
    here = path.resolve().parent
    return replace(config, uplink_log=here / config.uplink_log, decisions=here / config.decisions)
