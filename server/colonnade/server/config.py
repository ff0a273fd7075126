"""A coordinator's configuration file."""

from pathlib import Path

from msgspec.structs import force_setattr, replace

from colonnade.core.config import Count, Strict, about, load_toml
from colonnade.wire.limits import require_loopback, split_address
from colonnade.wire.readings import MONITORING, Addresses

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

# The authority's folder (parties.pem with its key, root.pem, revoked.txt), to renew by itself the
# certificates of parties that soon end, for so many days. It can then make members too: leave it
# out unless the coordinator is trusted so far.
# renewal_authority = "authority"
# renewal_days = 30

# Connections end after so long, because TLS looks at a certificate only when one opens.
# connection_age_s = 3600
# handshake_timeout_s = 5
{MONITORING}"""


class CoordinatorConfig(Strict, frozen=True, kw_only=True):
    """What a coordinator is told."""

    listen: str
    credentials: Path | None = None  # None on an insecure loopback port
    database: str
    denylist: Path | None = None
    renewal_authority: Path | None = None
    renewal_days: Count = 30
    federation: str = "insecure"  # only for an insecure port; else the certificate says it
    insecure: bool = False
    connection_age_s: Count = 3600
    handshake_timeout_s: Count = 5
    metrics: str | None = None
    health: str | None = None

    def __post_init__(self) -> None:
        with about("listen"):
            split_address(self.listen)
            if self.insecure:
                require_loopback(self.listen)
        self.monitoring.check()
        if self.insecure:
            force_setattr(self, "credentials", None)
        elif self.credentials is None:
            raise ValueError("credentials: is missing")

    @property
    def monitoring(self) -> Addresses:
        """Where metrics and health are shown."""
        return Addresses(self.metrics, self.health)


def load_config(path: Path) -> CoordinatorConfig:
    """Read a coordinator's file; unknown keys are refused."""
    config = load_toml(path, CoordinatorConfig)
    return replace(config, database=_database(config.database, path.resolve().parent))


def _database(url: str, folder: Path) -> str:
    """Return the URL with a relative SQLite file seen from the configuration's folder."""
    prefix = "sqlite:///"
    if url.startswith(prefix) and not url.startswith("sqlite:////"):
        return f"{prefix}{folder / url.removeprefix(prefix)}"
    return url
