"""A coordinator's configuration file."""

from dataclasses import dataclass
from pathlib import Path

from colonnade.core.config import load_settings
from colonnade.wire.limits import require_loopback, split_address
from colonnade.wire.monitoring import KEYS, MONITORING, NOWHERE, Addresses, addresses_of

_KEYS = (
    "listen",
    "credentials",
    "database",
    "denylist",
    "federation",
    "insecure",
    "connection_age_s",
    "handshake_timeout_s",
    *KEYS,
)

TEMPLATE = f"""\
# A Colonnade coordinator. Paths are relative to this file.

# The one address that parties and operators dial.
listen = "0.0.0.0:7443"

# Folder with key, certificate and root, as `colonnade pki request` and `install` make it.
credentials = "pki"

# Jobs, what was asked, what was answered, every iterate: SQLite, or
# "postgresql+psycopg://user@host/name" (the password from ~/.pgpass or PGPASSWORD).
database = "sqlite:///coordinator.db"

# Fingerprints of keys that are refused, one a line; read again when it changes.
# denylist = "denied.txt"

# Connections end after so long, because TLS looks at a certificate only when one opens.
# connection_age_s = 3600
# handshake_timeout_s = 5
{MONITORING}"""


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """What a coordinator is told."""

    listen: str
    credentials: Path | None  # None on an insecure loopback port
    database: str
    denylist: Path | None
    federation: str  # only for an insecure port; else the certificate says it
    connection_age_s: int
    handshake_timeout_s: int
    monitoring: Addresses = NOWHERE


def load_config(path: Path) -> CoordinatorConfig:
    """Read a coordinator's file; unknown keys are refused."""
    settings = load_settings(path)
    settings.refuse_unknown(_KEYS)
    listen, insecure = settings.text("listen"), settings.flag("insecure")
    split_address(listen)
    if insecure:
        require_loopback(listen)
    return CoordinatorConfig(
        listen=listen,
        credentials=None if insecure else settings.path("credentials"),
        database=_database(settings.text("database"), settings.folder),
        denylist=settings.optional_path("denylist"),
        federation=settings.text("federation", "insecure"),
        connection_age_s=settings.integer("connection_age_s", 3600, low=1),
        handshake_timeout_s=settings.integer("handshake_timeout_s", 5, low=1),
        monitoring=addresses_of(settings),
    )


def _database(url: str, folder: Path) -> str:
    """Return the URL with a relative SQLite file seen from the configuration's folder."""
    prefix = "sqlite:///"
    if url.startswith(prefix) and not url.startswith("sqlite:////"):
        return f"{prefix}{folder / url.removeprefix(prefix)}"
    return url
