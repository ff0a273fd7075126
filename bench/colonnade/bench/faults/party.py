"""A party's process: the shipped ledger, vault and session on a virtual disk, and how it dies."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from colonnade.bench.faults.cases import Organization
from colonnade.bench.faults.disk import Died, Disk
from colonnade.bench.faults.draws import RUNNING, Left, seed_of
from colonnade.bench.faults.network import Stub
from colonnade.core.arrays import IntArray
from colonnade.core.errors import StoreFailed, Unreachable
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.state import Refusal
from colonnade.methods.alignment.crypto.exchange import Unattested
from colonnade.party.alignment.store import AlignmentFolder
from colonnade.party.methods.sealed_keys import FileKeys
from colonnade.party.policy import Policy
from colonnade.party.vault.meter import Meter
from colonnade.party.vault.pacing import Pace
from colonnade.party.vault.session import attend
from colonnade.party.vault.vault import Vault
from colonnade.pki.identity import Identity
from colonnade.privacy.simulation import SeededNoise

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.25, 8.0


class KeyedNoise(SeededNoise):
    """Seeded noise that follows from what it is drawn for: a run with faults draws the same.

    What has left is drawn otherwise a second time, as real noise would be. Not private.
    """

    def __init__(self, party: str, drawing: Callable[[], None], left: Left) -> None:
        self._party, self._drawing, self._left = party, drawing, left
        super().__init__(0)

    def draw_for(self, keys: Sequence[ReleaseKey]) -> None:
        """Begin the stream of these releases."""
        what = keys[0][:3]  # without the account: their names are random
        super().__init__(seed_of(self._party, len(keys), tuple(what), self._left(what)))

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        """Draw, unless the process dies first."""
        self._drawing()
        return super().discrete_gaussian(sigma2, size)

    def discrete_laplace(self, scale: int, size: int) -> IntArray:
        """Draw, unless the process dies first."""
        self._drawing()
        return super().discrete_laplace(scale, size)

    def below(self, bound: int) -> int:
        """Draw, unless the process dies first."""
        self._drawing()
        return super().below(bound)


class ToldLedger(Ledger):
    """The shipped ledger, which tells seeded noise what is asked for."""

    noise: KeyedNoise

    def charge_many(self, requests: Sequence[ReleaseRequest]) -> dict[ReleaseKey, Refusal]:
        """Pay, as the shipped ledger does."""
        self.noise.draw_for([ask.key for ask in requests])
        return super().charge_many(requests)


class PartyHost:
    """A party that can be killed and started again on its disk."""

    def __init__(
        self,
        name: str,
        disk: Disk,
        made: Organization,
        *,
        policy: Policy,
        coordinator: Identity,
        clock: Callable[[], float],
        beside: Path,
        left: Left,
        ended: Callable[["PartyHost", BaseException | None], None],
    ) -> None:
        self.name, self.disk, self._made = name, disk, made
        self._policy, self._coordinator = policy, coordinator
        self._clock, self._beside, self._left, self._ended = clock, beside, left, ended
        self.ledger: ToldLedger | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._task is not None and not self._task.done() and self.disk.alive

    def start(self, stub: Stub, opened: Callable[["PartyHost"], None]) -> None:
        """Start a process on what the disk holds; ``opened`` is told when its ledger is open."""
        self.disk.alive = True
        self._task = asyncio.get_running_loop().create_task(self._live(stub, opened))
        self._task.add_done_callback(self._over)

    def die(self) -> None:
        """End the process where it is, from inside of it."""
        self.disk.alive = False
        raise Died

    def kill(self) -> None:
        """End the process from outside."""
        self.disk.alive = False
        if self._task is not None:
            self._task.cancel()

    async def _live(self, stub: Stub, opened: Callable[["PartyHost"], None]) -> None:
        RUNNING.set((self.name, self._left))
        storage = self.disk.storage()
        try:
            noise = KeyedNoise(self.name, self.disk.touched, self._left)
            ledger = ToldLedger(storage, self._made.signer, self._clock)
            ledger.noise, self.ledger = noise, ledger
            opened(self)
            await self._dial(ledger, noise, stub)
        finally:
            self.ledger = None
            for link in stub.links:
                link.cancel()
            alive, self.disk.alive = self.disk.alive, False  # however it ends, it writes no more
            storage.abandon()
            self.disk.alive = alive

    async def _dial(self, ledger: Ledger, noise: KeyedNoise, stub: Stub) -> None:
        listed: Any = self._made.listed
        vault = Vault(
            self._made.dataset,
            ledger,
            noise,
            policy=self._policy,
            coordinator=self._coordinator,
            today=lambda: dt.datetime.fromtimestamp(self._clock(), dt.UTC).date(),
            align=(listed, AlignmentFolder(self._beside / "alignments"), Unattested()),
            keys=FileKeys(self._beside / "keys"),
        )
        log = self._beside.parent / "uplink.jsonl"
        meter, pace, wait = Meter(log, clock=self._clock), Pace(0.0), _FIRST_WAIT_S
        while True:
            with contextlib.suppress(Unreachable, StoreFailed):
                await attend(stub, vault, meter, pace=pace, program="simulated")
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_S)

    def _over(self, task: "asyncio.Task[Any]") -> None:
        error = None if task.cancelled() else task.exception()
        self._ended(self, error if self.disk.alive else None)
