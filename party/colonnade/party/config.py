"""A party's configuration file."""

from dataclasses import dataclass
from pathlib import Path

from colonnade.core.config import load_settings
from colonnade.ledger.files import LedgerFiles
from colonnade.wire.limits import require_loopback, split_address
from colonnade.wire.monitoring import KEYS, MONITORING, NOWHERE, Addresses, addresses_of

_KEYS = (
    "coordinator",
    "credentials",
    "data",
    "ledger",
    "mirror",
    "policy",
    "uplink_log",
    "answer_grid_ms",
    "insecure",
    "identity",
    "coordinator_identity",
    "drop_out_percent",
    *KEYS,
)

ANSWER_GRID_MS = 20

TEMPLATE = f"""\
# A Colonnade party. Paths are relative to this file. Nothing listens here: the party dials out.

# Where the coordinator listens; the name must be in its certificate.
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

# Answers leave so many milliseconds after their questions came, or twice as many, four times and
# so on, so that how long one took to make says little. Best longer than any takes; 0 sends each
# when it is made.
answer_grid_ms = {ANSWER_GRID_MS}
{MONITORING}"""


@dataclass(frozen=True, slots=True)
class PartyConfig:
    """What a party is told."""

    coordinator: str
    credentials: Path | None  # None on an insecure loopback connection
    data: Path
    ledger: LedgerFiles
    policy: Path
    uplink_log: Path
    identity: str  # only for an insecure connection; else the certificate says it
    coordinator_identity: str
    answer_grid_s: float = 0.0
    monitoring: Addresses = NOWHERE
    drop_out: float = 0.0  # share of its clients that a host leaves out, at random, as a trial


def load_config(path: Path) -> PartyConfig:
    """Read a party's file; unknown keys are refused."""
    settings = load_settings(path)
    settings.refuse_unknown(_KEYS)
    address, insecure = settings.text("coordinator"), settings.flag("insecure")
    split_address(address)
    if insecure:
        require_loopback(address)
    return PartyConfig(
        coordinator=address,
        credentials=None if insecure else settings.path("credentials"),
        data=settings.path("data"),
        ledger=LedgerFiles(settings.path("ledger"), settings.optional_path("mirror")),
        policy=settings.path("policy"),
        uplink_log=settings.path("uplink_log", "uplink.jsonl"),
        identity=settings.text("identity") if insecure else "",
        coordinator_identity=settings.text("coordinator_identity") if insecure else "",
        answer_grid_s=settings.integer("answer_grid_ms", ANSWER_GRID_MS) / 1000.0,
        monitoring=addresses_of(settings),
        drop_out=min(99, settings.integer("drop_out_percent", 0)) / 100.0,
    )
