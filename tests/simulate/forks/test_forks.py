"""Members of a simulated federation are forks of one process that has imported everything."""

import contextlib
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from support.federation import sites

from colonnade.core.errors import EXIT_BAD_INPUT, EXIT_OK, EXIT_SIGNAL
from colonnade.privacy.accounting import units_down
from colonnade.simulate.federation import create_federation
from colonnade.simulate.forks.client import ForkServer, begun, shared
from colonnade.simulate.processes import Processes

pytestmark = pytest.mark.slow


def test_a_fork_runs_a_command_writes_its_log_and_tells_its_exit_code(tmp_path: Path) -> None:
    with ForkServer() as server, (tmp_path / "log").open("wb") as log:
        good = server.start(["coordinator", "--template"], log.fileno())
        bad = server.start(["coordinator", "--config", str(tmp_path / "none")], log.fileno())
        assert good.wait(60) == EXIT_OK
        assert bad.wait(60) == EXIT_BAD_INPUT
        assert good.poll() == EXIT_OK
    written = (tmp_path / "log").read_text()
    assert "listen =" in written
    assert "colonnade: " in written


def test_a_fork_is_killed_by_its_own_number_and_ends_with_its_starter(tmp_path: Path) -> None:
    config = tmp_path / "hub.toml"
    config.write_text('listen = "127.0.0.1:0"\ninsecure = true\ndatabase = "sqlite:///hub.db"\n')
    other = tmp_path / "other"
    other.mkdir()
    (other / "hub.toml").write_text(config.read_text())
    server = ForkServer()
    with (tmp_path / "log").open("wb") as log:
        killed = server.start(["coordinator", "--config", str(config)], log.fileno())
        left = server.start(["coordinator", "--config", str(other / "hub.toml")], log.fileno())
        with pytest.raises(subprocess.TimeoutExpired):
            killed.wait(0.01)
        killed.kill()
        assert killed.wait(60) == -signal.SIGKILL
        assert left.poll() is None
        os.close(server._leash)  # as the end of this process would
        assert left.wait(60) in (EXIT_OK, EXIT_SIGNAL + signal.SIGTERM)
        server._leash = os.open(os.devnull, os.O_RDONLY)
    server.close()


def test_a_signal_to_all_ends_forks_and_leaves_the_server_to_tell_of_it(tmp_path: Path) -> None:
    with ForkServer() as server, (tmp_path / "log").open("wb") as log:
        for name in map(str, range(12)):  # a signal may come before a fork has its handlers back
            (tmp_path / name).write_text(
                f'listen = "127.0.0.1:0"\ninsecure = true\ndatabase = "sqlite:///{name}.db"\n'
            )
            fork = server.start(["coordinator", "--config", str(tmp_path / name)], log.fileno())
            for pid in (server._process.pid, fork.pid):
                os.kill(pid, signal.SIGINT)
            assert fork.wait(60) in (EXIT_OK, EXIT_SIGNAL + signal.SIGINT)


def test_a_fork_whose_server_was_killed_is_still_ended(tmp_path: Path) -> None:
    (tmp_path / "hub.toml").write_text(
        'listen = "127.0.0.1:0"\ninsecure = true\ndatabase = "sqlite:///hub.db"\n'
    )
    with ForkServer() as server, (tmp_path / "log").open("wb") as log:
        fork = server.start(["coordinator", "--config", str(tmp_path / "hub.toml")], log.fileno())
        server._process.kill()
        server._process.wait()
        assert fork.poll() is None
        fork.kill()
        assert fork.wait(60) == -signal.SIGKILL


def test_a_server_whose_starter_went_away_amid_a_request_ends_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = ForkServer()
    with (tmp_path / "log").open("wb") as log:
        # Asked while it still imports: when it forks, nobody is there to be told.
        request = [b'["coordinator", "--template"]']
        socket.send_fds(server._socket, request, [log.fileno()])
        server._asked = True
    server.close()
    assert server._process.returncode == 0
    assert capfd.readouterr().err == ""


def test_a_server_that_nobody_asked_is_not_waited_for() -> None:
    server = ForkServer()
    server.close()
    assert server._process.returncode == -signal.SIGKILL


def test_all_processes_of_a_command_are_forks_of_the_server_that_it_began_with() -> None:
    with begun(), shared() as first:
        with begun(), shared() as second:
            assert second is first
        assert first._process.poll() is None  # whoever began it ends it
    assert first._process.returncode is not None
    with shared() as other:
        assert other is not first


def test_a_process_has_not_ended_because_an_earlier_one_of_its_number_has() -> None:
    with ForkServer() as server, Path(os.devnull).open("wb") as log:
        first = server.start(["coordinator", "--template"], log.fileno())
        assert first.wait(60) == 0
        server.codes = dict.fromkeys(range(1 << 22), 77)  # every number was somebody's
        assert server.start(["coordinator", "--template"], log.fileno()).wait(60) == 0


def test_a_killed_party_ends_its_net_which_is_a_process_of_its_own(tmp_path: Path) -> None:
    made = create_federation(tmp_path, sites(names=("hospital", "lab")), cap_units=units_down(1.0))
    with begun(), shared() as server, Processes(made, tmp_path / "logs") as processes:
        with processes.client() as client:
            processes.wait_for_parties(client)
        members = _children(server._process.pid)
        assert len(members) == 1 + 2 * len(made.parties)  # what starts a net is one, too
        assert len(_children(*members)) == len(made.parties)
        processes.process("hospital").kill()
        while len(left := _children(server._process.pid)) > len(members) - 2:
            pass
        assert left < members
        assert len(_children(*left)) == 1


def _children(*parents: int) -> set[int]:
    found = set()
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            state, parent = place.read_text().rpartition(")")[2].split()[:2]
            if int(parent) in parents and state != "Z":
                found.add(int(place.parent.name))
    return found
