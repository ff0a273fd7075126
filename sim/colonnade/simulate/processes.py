"""A federation's processes on this machine: one coordinator and its parties, as real programs."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

from colonnade.client import Client, PartyOffer
from colonnade.core.errors import JobEnded, Unreachable
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.pki.authority import load_credentials
from colonnade.simulate.federation import only_mine
from colonnade.wire.limits import split_address
from colonnade.wire.session import public_text

_START_S = 60.0
_STOP_S = 10.0
_ERROR = "colonnade: "  # how the one line begins that a command ends with


class Places(Protocol):
    """Where a federation's files are, and where its coordinator listens."""

    @property
    def address(self) -> str:
        """``host:port`` of the coordinator."""

    @property
    def parties(self) -> tuple[str, ...]:
        """The parties' names."""

    @property
    def coordinator_config(self) -> Path:
        """The coordinator's file."""

    @property
    def operator_credentials(self) -> Path:
        """The operator's key and certificate."""

    def party_config(self, party: str) -> Path:
        """Return a party's file."""

    def ledger(self, party: str) -> LedgerFiles:
        """Return where a party's ledger is."""


@dataclass(slots=True)
class Processes:
    """The running programs; their output goes to ``logs``."""

    federation: Places
    logs: Path
    _running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    _files: list[IO[bytes]] = field(default_factory=list)
    _leash: list[int] = field(default_factory=list)  # both ends of a pipe; nobody writes to it

    @only_mine()
    def __enter__(self) -> Self:
        try:
            self._leash[:] = os.pipe()
            self.logs.mkdir(parents=True, exist_ok=True)
            self.start_coordinator()
            for party in self.federation.parties:
                self.start_party(party)
        except BaseException:  # a signal too: nobody else will stop those that run
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start_coordinator(self) -> None:
        """Start the coordinator."""
        self._start("coordinator", ["coordinator", "--config", self.federation.coordinator_config])

    def start_party(self, party: str) -> None:
        """Start a party."""
        self._start(party, ["party", "run", "--config", self.federation.party_config(party)])

    def process(self, name: str) -> "subprocess.Popen[bytes]":
        """Return the process of a party, or ``coordinator``."""
        return self._running[name]

    def client(self) -> Client:
        """Return a client with the operator's certificate, once the coordinator listens."""
        self._wait_for_port()
        credentials = load_credentials(self.federation.operator_credentials)
        return Client(self.federation.address, credentials)

    def wait_for_parties(self, client: Client) -> list[PartyOffer]:
        """Return the parties' offers once all are attached."""
        names, away = self.federation.parties, list[str]()
        for _ in self._tries():
            attached = {offer.party: offer for offer in client.parties() if offer.attached}
            if not (away := [name for name in names if name not in attached]):
                return [attached[name] for name in names]
        raise Unreachable(
            f"{away[0]} did not attach within {_START_S:.0f} s: {self._last_words(away[0])}"
        )

    def check(self) -> None:
        """Raise if a process has ended by itself."""
        for name, process in self._running.items():
            if (code := process.poll()) is not None:
                raise JobEnded(f"{name} ended with exit code {code}: {self._last_words(name)}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Say of a coordinator that cannot be reached any more why it ended, if it did."""
        try:
            yield
        except Unreachable:
            self.check()
            raise

    def stop(self) -> None:
        """Stop all processes, gently."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for file in self._files:
            file.close()
        self._running.clear()
        while self._leash:
            os.close(self._leash.pop())

    def _wait_for_port(self) -> None:
        host, port = split_address(self.federation.address)
        for _ in self._tries():
            try:
                socket.create_connection((host, port), timeout=1.0).close()
            except OSError:
                continue  # it is still starting
            return
        words = self._last_words("coordinator")
        raise Unreachable(f"the coordinator did not start within {_START_S:.0f} s: {words}")

    def _last_words(self, name: str) -> str:
        """Return the error that a process ended with, or what it wrote last."""
        lines = (self.logs / f"{name}.log").read_text("utf-8", "replace").split("\n")
        written = [line for line in lines if line.strip()]
        errors = [line.partition(_ERROR)[2] for line in written if _ERROR in line]
        return public_text((errors or written or ["it wrote nothing"])[-1])

    def _tries(self) -> Iterator[None]:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            yield
            self.check()
            time.sleep(0.02)

    @only_mine()
    def _start(self, name: str, arguments: Sequence[str | Path]) -> None:
        file = (self.logs / f"{name}.log").open("ab")
        self._files.append(file)
        command = [sys.executable, "-m", "colonnade.simulate.child", *map(str, arguments)]
        # The pipe ends when this process does, and the children with it, even if it is killed.
        self._running[name] = subprocess.Popen(
            command, stdin=self._leash[0], stdout=file, stderr=subprocess.STDOUT
        )
