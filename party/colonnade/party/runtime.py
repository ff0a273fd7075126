"""A party's process: opens its ledger and table, dials out, and dials again when cut off."""

import asyncio
import datetime as dt
import logging
import secrets
import signal
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
from colonnade.ledger.create import open_ledger
from colonnade.ledger.ledger import Ledger
from colonnade.methods.alignment.crypto.exchange import Attestor, Unattested
from colonnade.methods.alignment.sizes import ATTESTATION_BYTES
from colonnade.methods.registry import method_of
from colonnade.party.alignment.store import AlignmentFolder
from colonnade.party.config import PartyConfig
from colonnade.party.data.binding import claim, note_use, rows_of
from colonnade.party.data.dataset import Dataset, open_dataset
from colonnade.party.data.units import units_of
from colonnade.party.meter import Meter
from colonnade.party.methods.sealed_keys import FileKeys
from colonnade.party.metrics import readings
from colonnade.party.officer.inbox import DecisionFolder
from colonnade.party.pacing import Pace
from colonnade.party.policy_file import load_policy
from colonnade.party.renewal import renewed_if_due
from colonnade.party.session import Dial, hold_session
from colonnade.party.vault import Vault
from colonnade.party.warming import warm
from colonnade.pki.attestation import CertificateAttestor
from colonnade.pki.authority import Credentials, load_credentials
from colonnade.pki.identity import PARTY, Identity
from colonnade.pki.register import days_left
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.wire.channels import server_identity
from colonnade.wire.monitoring import Reading, monitored

logger = logging.getLogger(__name__)
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.25, 30.0
# A session that lasted so long was a good one: the next wait is short again.
_GOOD_S = 10.0


class Party:
    """A party that runs until it is stopped or must not go on."""

    def __init__(
        self, config: PartyConfig, ledger: Ledger, *, noise: NoiseSource | None = None
    ) -> None:
        self._config, self._ledger = config, ledger
        self._noise = noise or OsNoise()
        self._policy = load_policy(config.policy)
        self.meter, self.pace = Meter(config.uplink_log), Pace(config.answer_grid_s)
        self._vault: Vault | None = None
        self._ends: dt.datetime | None = None  # of the certificate
        self.attached = False

    @property
    def certificate_days(self) -> int | None:
        """How many days the certificate is valid yet, once a session was opened with it."""
        return None if self._ends is None else days_left(self._ends, dt.datetime.now(dt.UTC))

    def reload(self) -> None:
        """Take up policy and certificate as they are on disk: both, or neither and say why."""
        try:
            policy = load_policy(self._config.policy)
            if self._config.credentials is not None:
                load_credentials(self._config.credentials)
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
        config = self._config
        # Read each time: a renewed certificate is taken up without a restart.
        credentials = load_credentials(config.credentials) if config.credentials else None
        if config.credentials is not None and credentials is not None:
            address = config.coordinator
            credentials = await renewed_if_due(config.credentials, address, credentials)
            self._ends = credentials.not_after
        identity, coordinator = await asyncio.to_thread(self._who, credentials)
        vault = self._vault
        if vault is None:
            vault = self._vault = self._open_vault(dataset, coordinator)
        elif coordinator != vault.coordinator:
            raise BadIdentity(f"{config.coordinator} is now {coordinator.uri}; start again")
        await asyncio.to_thread(vault.take_policy)
        dial = Dial(config.coordinator, identity, credentials, version("colonnade"))

        def say(attached: bool) -> None:
            self.attached = attached
            said(attached)

        try:
            await hold_session(dial, vault, self.meter, pace=self.pace, attached=lambda: say(True))
        finally:
            say(False)

    def _who(self, credentials: Credentials | None) -> tuple[Identity, Identity]:
        config = self._config
        if credentials is None:
            identity = Identity.from_uri(config.identity)
            coordinator = Identity.from_uri(config.coordinator_identity)
        else:
            identity = credentials.identity
            coordinator = server_identity(config.coordinator, credentials)
        if identity.role != PARTY or identity.name != self._ledger.opened.party:
            raise BadInput(
                f"the certificate is of {identity.uri} but the ledger of party "
                f"{self._ledger.opened.party}; use the folders of one party"
            )
        return identity, coordinator

    def _open_vault(self, dataset: Dataset | None, coordinator: Identity) -> Vault:
        align, pki = self._config.align, self._config.credentials
        # Read at each use, as for a session; in plaintext on one machine nobody has a certificate.
        attestor: Attestor = Unattested()
        if pki is not None:
            attestor = CertificateAttestor(lambda: load_credentials(pki), ATTESTATION_BYTES)
        folder = AlignmentFolder.beside(self._config.data)
        return Vault(
            dataset,
            self._ledger,
            self._noise,
            policy=self._policy,
            coordinator=coordinator,
            today=lambda: dt.datetime.now(dt.UTC).date(),
            drop_out=self._config.drop_out,
            align=(align, folder, attestor) if align else None,
            inbox=DecisionFolder(self._config.decisions),
            keys=FileKeys.beside(self._config.ledger_folder),
        )


async def serve(config: PartyConfig, attached: Callable[[], None] | None = None) -> None:
    """Run a party until SIGTERM or SIGINT; SIGHUP takes up policy and certificate anew."""
    ledger = open_ledger(config.ledger)
    try:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        party, disk = Party(config, ledger), config.ledger.folder
        loop.add_signal_handler(signal.SIGHUP, party.reload)

        def read() -> Sequence[Reading]:
            return readings(
                ledger,
                party.meter,
                party.pace,
                attached=party.attached,
                disk=disk,
                certificate_days=party.certificate_days,
            )

        async with monitored(config.monitoring, read) as monitor:

            def said(is_attached: bool) -> None:
                monitor.ready(is_attached)
                if is_attached and attached is not None:
                    attached()

            await party.run(stop, said)
    finally:
        with ledger.lock:  # a release that is being made ends first
            ledger.close()


def _ignore(_attached: bool) -> None:
    return


async def _wait(stop: asyncio.Event) -> None:
    await stop.wait()


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait between half and all of ``seconds``, so that parties do not come back in step."""
    jitter = 0.5 + secrets.randbelow(1000) / 2000.0
    try:
        async with asyncio.timeout(seconds * jitter):
            await stop.wait()
    except TimeoutError:
        return
