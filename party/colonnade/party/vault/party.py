"""A party as its vault sees it: net dials on its behalf, and dials again when it is cut off."""

import asyncio
import contextlib
import datetime as dt
import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version

from colonnade.core.errors import (
    BadIdentity,
    BadInput,
    CertificateExpired,
    ColonnadeError,
    StoreFailed,
    Unreachable,
)
from colonnade.data.table import COARSE_NAME
from colonnade.ledger.ledger import Ledger
from colonnade.methods.alignment.crypto.exchange import Attestor, Unattested
from colonnade.methods.registry import method_of
from colonnade.party.alignment.store import AlignmentFolder
from colonnade.party.config import PartyConfig
from colonnade.party.data.binding import claim, note_use, rows_of
from colonnade.party.data.dataset import Dataset, open_dataset
from colonnade.party.data.units import units_of
from colonnade.party.engine.base import Engine
from colonnade.party.engine.local import LOCAL
from colonnade.party.methods.sealed_keys import FileKeys
from colonnade.party.officer.inbox import DecisionFolder
from colonnade.party.policy_file import load_policy
from colonnade.party.vault.attestor import NetAttestor, keep_root
from colonnade.party.vault.link import DialledCoordinator, Links, dial
from colonnade.party.vault.meter import Meter
from colonnade.party.vault.metrics import readings
from colonnade.party.vault.pacing import Pace
from colonnade.party.vault.partner import Partner
from colonnade.party.vault.session import attend
from colonnade.party.vault.vault import Vault
from colonnade.party.vault.warming import warm
from colonnade.pki.identity import PARTY, Identity
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.wire.readings import Reading

logger = logging.getLogger(__name__)
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.25, 30.0
# A session that lasted so long was a good one: the next wait is short again.
_GOOD_S = 10.0


class Party:
    """A party that runs until it is stopped or must not go on."""

    def __init__(
        self,
        config: PartyConfig,
        ledger: Ledger,
        *,
        links: Links,
        noise: NoiseSource | None = None,
    ) -> None:
        self._config, self._ledger = config, ledger
        self._noise = noise or OsNoise()
        self._policy = load_policy(config.policy)
        self.meter, self.pace = Meter(config.uplink_log), Pace(config.answer_grid_s)
        self._vault: Vault | None = None
        self._engine: Engine = LOCAL
        self.attached = False
        shown = None if config.metrics is None else self._readings
        self._partner = Partner(links, self.pace, shown)

    async def reload(self) -> None:
        """Take up policy and certificate as they are on disk: both, or neither and say why."""
        try:
            policy = load_policy(self._config.policy)
            await self._partner.check_credentials()
            if self._vault is not None:
                self._vault.stage_policy(policy)
            self._policy = policy
        except ColonnadeError as error:
            logger.error("reload_refused everything stays as it was: %s", error)
        else:
            logger.info("reloaded policy=%s", self._config.policy)

    async def run(self, stop: asyncio.Event, said: Callable[[bool], None] | None = None) -> None:
        """Hold sessions until ``stop`` is set; raise what a retry would not fix.

        ``said`` is told when a session opens and when it ends.
        """
        dataset = await asyncio.to_thread(self._open_dataset)
        if dataset is not None:
            self._engine = await asyncio.to_thread(self._config.open_engine)
        stopping = asyncio.create_task(_wait(stop))
        # A daemon: a party that is told to stop does not wait for it.
        threading.Thread(target=warm, args=(self._kinds(dataset),), daemon=True).start()
        wait = _FIRST_WAIT_S
        try:
            if dataset is not None:
                claim(rows_of(dataset), self._ledger)
            while not stop.is_set():
                began = time.monotonic()
                session = asyncio.create_task(self._session(dataset, said or _ignore))
                try:
                    await asyncio.wait({session, stopping}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    session.cancel()
                try:
                    await session
                except asyncio.CancelledError:
                    return
                except (Unreachable, StoreFailed) as error:  # its store: ours are fatal
                    logger.warning("disconnected %s", error)
                except CertificateExpired as error:
                    if self._vault is None:
                        raise  # at the start somebody is there to be told
                    logger.warning("certificate_expired %s", error)  # goes on once it is renewed
                if time.monotonic() - began > _GOOD_S:
                    wait = _FIRST_WAIT_S
                await _pause(stop, wait)
                wait = min(2 * wait, _LONGEST_WAIT_S)
        finally:
            stopping.cancel()
            await self._partner.close()
            await asyncio.to_thread(self._engine.close)
            if dataset is not None:
                note_use(rows_of(dataset), self._ledger)
                dataset.close()

    def _open_dataset(self) -> Dataset | None:
        """Open the table; a party that lists people for alignments may have none yet."""
        if self._config.align is not None and not (self._config.data / COARSE_NAME).exists():
            logger.info("no_table_yet folder=%s", self._config.data)
            return None
        return open_dataset(self._config.data)

    def _kinds(self, dataset: Dataset | None) -> list[str]:
        """Return the kinds of job that the policy allows and the table is made for."""
        if dataset is None:
            return []
        unit = units_of(dataset.coarse.n_rows, dataset.clients).unit
        allowed = {kind for allowance in self._policy.allowances for kind in allowance.kinds}
        return [kind for kind in allowed if method_of(kind).unit is unit]

    async def _session(self, dataset: Dataset | None, said: Callable[[bool], None]) -> None:
        link = await self._partner.link()
        connection = await dial(link)
        self._check_names(connection)
        vault, coordinator = self._vault, connection.coordinator
        if vault is None:
            vault = self._vault = self._open_vault(dataset, coordinator)
        elif coordinator != vault.coordinator:
            where = self._config.coordinator
            raise BadIdentity(f"{where} is now {coordinator.uri}; start again")
        await asyncio.to_thread(vault.take_policy)

        def say(attached: bool) -> None:
            self.attached = attached
            self._partner.tell_attached(attached)
            said(attached)

        program, meter, pace = version("colonnade"), self.meter, self.pace
        opened = lambda: say(True)  # noqa: E731 - one line of a call
        try:
            await attend(connection, vault, meter, pace=pace, program=program, attached=opened)
        finally:
            say(False)

    def _check_names(self, connection: DialledCoordinator) -> None:
        """Refuse a certificate of another party, and a coordinator that the file does not name.

        Net says both, so this finds mistakes; what a coordinator may ask is the policy's to say.
        """
        identity, coordinator = connection.identity, connection.coordinator
        if identity.name != self._ledger.opened.party:
            raise BadInput(
                f"the certificate is of {identity.uri} but the ledger of party "
                f"{self._ledger.opened.party}; use the folders of one party"
            )
        expected = self._config.coordinator_identity
        if expected and coordinator.uri != expected:
            raise BadIdentity(f"{coordinator.uri} answers; the configuration names {expected}")

    def _open_vault(self, dataset: Dataset | None, coordinator: Identity) -> Vault:
        align = self._config.align
        folder = AlignmentFolder.beside(self._config.data)
        return Vault(
            dataset,
            self._ledger,
            self._noise,
            policy=self._policy,
            coordinator=coordinator,
            today=lambda: dt.datetime.now(dt.UTC).date(),
            drop_out=self._config.drop_out,
            align=(align, folder, self._attestor(coordinator.federation)) if align else None,
            inbox=DecisionFolder(self._config.decisions),
            keys=FileKeys.beside(self._config.ledger_folder),
            engine=self._engine,
        )

    def _attestor(self, federation: str) -> Attestor:
        """Return who attests; in plaintext on one machine nobody has a certificate."""
        pki = self._config.credentials
        if pki is None:
            return Unattested()
        own = Identity(federation, PARTY, self._ledger.opened.party)
        root = keep_root(self._config.ledger_folder, pki)
        return NetAttestor(self._partner.attest, own, root)

    def _readings(self) -> Sequence[Reading]:
        disk = self._config.ledger.folder
        return readings(self._ledger, self.meter, self.pace, attached=self.attached, disk=disk)


def _ignore(_attached: bool) -> None:
    return


async def _wait(stop: asyncio.Event) -> None:
    await stop.wait()


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait between half and all of ``seconds``, so that parties do not come back in step."""
    jitter = 0.5 + secrets.randbelow(1000) / 2000.0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds * jitter):
            await stop.wait()
