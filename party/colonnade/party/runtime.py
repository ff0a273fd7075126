"""Both halves of a party in one process, with the same frames between them: for tests."""

import asyncio
import socket

from colonnade.ledger.ledger import Ledger
from colonnade.party.config import PartyConfig
from colonnade.party.net.relay import Relay
from colonnade.party.vault.party import Party
from colonnade.privacy.sampling import NoiseSource


class InProcess:
    """Nets in this process, one after another."""

    def __init__(self, config: PartyConfig) -> None:
        self._config = config
        self._serving: asyncio.Task[None] | None = None

    async def next(self) -> socket.socket:
        """Start a net."""
        if self._serving is not None:
            self._serving.cancel()
        ours, vaults = socket.socketpair()
        self._serving = asyncio.create_task(Relay(self._config).serve(ours))
        return vaults


def in_one_process(
    config: PartyConfig, ledger: Ledger, *, noise: NoiseSource | None = None
) -> Party:
    """Return a party that is one process: nothing isolates its data from the network."""
    return Party(config, ledger, links=InProcess(config), noise=noise)
