"""A federation's processes on this machine: one coordinator and its parties, as real programs."""

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

from colonnade.client import Client, PartyOffer
from colonnade.core.errors import JobEnded, Unreachable
from colonnade.pki.authority import load_credentials
from colonnade.simulate.federation import Federation, only_mine
from colonnade.simulate.forks.client import ForkServer, shared
from colonnade.wire.limits import split_address
from colonnade.wire.session import public_text

_START_S = 600.0  # of a busy machine that compiles first; what has ended is noticed at once
_STOP_S = 10.0
_ERROR = "colonnade: "  # how the one line begins that a command ends with


class Running(Protocol):
    """A process, as far as its starter needs to know it; `subprocess.Popen` is one."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self) -> int | None:
        """Return the exit code if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit code."""

    def send_signal(self, number: int, /) -> None:
        """Send a signal."""

    def terminate(self) -> None:
        """Ask it to stop."""

    def kill(self) -> None:
        """Stop it at once."""


@dataclass(slots=True)
class Processes:
    """The running programs; their output goes to ``logs``."""

    federation: Federation
    logs: Path
    _running: dict[str, Running] = field(default_factory=dict)
    _files: list[IO[bytes]] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)
    _server: ForkServer | None = None

    @only_mine()
    def __enter__(self) -> Self:
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            self._server = self._stack.enter_context(shared())
            self.start_coordinator()
            self.start_parties()
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

    def start_coordinator(self, name: str = "coordinator", config: Path | None = None) -> None:
        """Start the coordinator, or another process of it."""
        self._start(name, ["coordinator", "--config", config or self.federation.coordinator_config])

    def start_party(self, party: str) -> None:
        """Start a party."""
        self._start(party, ["party", "run", "--config", self.federation.party_config(party)])

    def start_parties(self) -> None:
        """Start all parties."""
        for party in self.federation.parties:
            self.start_party(party)

    def stop_parties(self) -> None:
        """Stop all parties, gently, and leave the coordinator running."""
        self._end([self._running.pop(party) for party in self.federation.parties])

    def reload(self, party: str) -> None:
        """Have a party take up its policy anew."""
        self._running[party].send_signal(signal.SIGHUP)

    def process(self, name: str) -> Running:
        """Return the process of a party, or ``coordinator``."""
        return self._running[name]

    def client(self) -> Client:
        """Return a client with the operator's certificate, once the coordinator listens."""
        self._wait_for_port()
        credentials = load_credentials(self.federation.operator_credentials)
        # One machine does everything here, and may be slow.
        return Client(self.federation.address, credentials, timeout_s=300.0)

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

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that a process does by itself."""
        if not any(condition() for _ in self._tries()):
            raise Unreachable(f"a process did not do within {_START_S:.0f} s what it was told")

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
        self._end(self._running.values())
        for file in self._files:
            file.close()
        self._running.clear()
        self._stack.close()

    @staticmethod
    def _end(processes: Collection[Running]) -> None:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

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
        if self._server is None:
            raise Unreachable("the processes have not been started")
        self._running[name] = self._server.start([*map(str, arguments)], file.fileno())
