"""What a process shows to its operator's tools, and where; `monitoring` serves it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from colonnade.core.config import about
from colonnade.wire.limits import split_address

MONITORING = """
# For monitoring, both off by default; plain text, so keep them on this machine or inside your own
# network: Prometheus metrics, and gRPC health (`colonnade health ADDRESS` asks it).
# metrics = "127.0.0.1:9464"
# health = "127.0.0.1:9465"
"""


CERTIFICATE_DAYS = (
    "colonnade_certificate_days",
    "whole days until the own certificate ends; renew it from 14 on",
)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a process shows its metrics and its health; None is nowhere."""

    metrics: str | None = None
    health: str | None = None

    @property
    def any(self) -> bool:
        """Return whether anything is shown at all."""
        return self != NOWHERE

    def check(self) -> None:
        """Refuse what is not an address."""
        for key, address in asdict(self).items():
            if address is not None:
                with about(key):
                    split_address(address)


NOWHERE = Addresses()


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric's value, or its values by label."""

    name: str
    text: str
    values: Mapping[tuple[str, ...], float]
    labels: tuple[str, ...] = ()
    counts: bool = False  # only ever grows

    @classmethod
    def one(cls, name: str, text: str, value: float, *, counts: bool = False) -> "Reading":
        """Return a metric without labels."""
        return cls(name, text, {(): value}, counts=counts)
