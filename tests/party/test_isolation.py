"""What the two processes of a party give up, in real processes; and what they refuse without it."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from msgspec.structs import replace

from colonnade.cli.party.processes.vault import isolated
from colonnade.core.errors import BadInput
from colonnade.party.config import TEMPLATE, load_config
from colonnade.party.isolation import measures
from colonnade.party.isolation.kernel import system_call
from colonnade.party.isolation.measures import Gained, isolate_net
from colonnade.party.isolation.seccomp import FORBIDDEN, program
from colonnade.party.net import process

CLI = "colonnade.cli.party.processes"
# What a vault gives up, and a process of tests must not.
VAULTS = (
    *("no_new_privileges", "own_network", "forbid_sockets", "only_own_processes", "no_core_dumps"),
)
_TRY = """
import json, os, socket, sys, threading
def attempt(work):
    try:
        work()
    except OSError as error:
        return error.errno
    return 0
def dial():
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
def all_of_them():
    found = {"dial": attempt(dial)}
    for name in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"):
        found[name] = attempt(lambda: socket.socket(getattr(socket, name)).close())
    def datagrams():
        for each in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
            each.close()
    found["datagrams"] = attempt(datagrams)  # they need no connection to reach others
    found["exec"] = attempt(lambda: os.execv("/bin/true", ["true"])) if "FILTER" in globals() else 0
    a, b = socket.socketpair()
    a.send(b"x")
    found["pair"] = 0 if b.recv(1) == b"x" else 1
    return found
"""


def outcome(code: str, port: int) -> dict[str, dict[str, int]]:
    ran = subprocess.run(
        [sys.executable, "-c", _TRY + textwrap.dedent(code), str(port)],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, dict[str, int]] = json.loads(ran.stdout)
    return found


@pytest.fixture
def port() -> object:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_in_a_network_namespace_of_its_own_nobody_is_reached(port: int) -> None:
    found = outcome(
        """
        from colonnade.party.isolation.namespace import own_network
        before = all_of_them()
        error = own_network()
        print(json.dumps({"before": before, "error": {"own": error}, "after": all_of_them()}))
        """,
        port,
    )
    if found["error"]["own"]:
        pytest.skip("no network namespaces here")
    assert found["before"]["dial"] == 0
    assert found["after"]["dial"] == errno.ENETUNREACH


def test_under_the_filter_there_are_no_sockets_and_no_other_programs_in_any_thread(
    port: int,
) -> None:
    found = outcome(
        """
        from colonnade.party.isolation.kernel import no_new_privileges
        from colonnade.party.isolation.seccomp import forbid_sockets
        before, go, seen = all_of_them(), threading.Event(), []
        earlier = threading.Thread(target=lambda: go.wait() and seen.append(attempt(dial)))
        earlier.start()
        no_new_privileges()
        error, FILTER = forbid_sockets(), True
        go.set()
        earlier.join()
        after = {**all_of_them(), "thread": seen[0]}
        print(json.dumps({"before": before, "error": {"own": error}, "after": after}))
        """,
        port,
    )
    if found["error"]["own"]:
        pytest.skip("no filters here")
    assert found["before"]["dial"] == 0
    after = found["after"]
    assert after.pop("pair") == 0  # what an event loop needs
    assert set(after.values()) == {errno.EPERM}
    assert {"dial", "thread", "exec", "AF_UNIX", "datagrams"} <= set(after)


def test_a_vault_has_no_processes_but_those_that_it_started() -> None:
    found = outcome(
        """
        from colonnade.party.isolation.measures import isolate_vault
        def memory(pid):
            with open(f"/proc/{pid}/mem", "rb"):
                pass
        def all_ways(pid):
            return {
                "memory": attempt(lambda: memory(pid)),
                "signal": attempt(lambda: os.kill(pid, 0)),
            }
        other = os.fork()
        if other == 0:
            threading.Event().wait()
        before = all_ways(other)
        if os.fork() == 0:  # the vault
            had = isolate_vault().measures["own_processes"]
            child = os.fork()
            if child == 0:
                threading.Event().wait()
            own = {"signal": attempt(lambda: os.kill(child, 9))}
            found = {"before": before, "after": all_ways(other), "own": own}
            print(json.dumps({**found, "had": {"here": int(had == "yes")}}))
            sys.stdout.flush()
            os._exit(0)
        os.wait()
        os.kill(other, 9)
        """,
        1,
    )
    assert found["own"]["signal"] == 0
    if not found["had"]["here"] or any(found["before"].values()):
        pytest.skip("no Landlock here, or no access before")
    assert found["after"]["memory"] == errno.EACCES
    if system_call(444, None, 0, 1)[0] >= 6:
        assert found["after"]["signal"] == errno.EPERM


def test_a_vault_that_crashes_writes_no_memory_to_disk(tmp_path: Path) -> None:
    def dumps(isolated: str) -> bool:
        code = f"""
            import os, resource
            from colonnade.party.isolation.measures import isolate_vault
            os.chdir({str(tmp_path)!r})
            most = resource.getrlimit(resource.RLIMIT_CORE)[1]
            resource.setrlimit(resource.RLIMIT_CORE, (most, most))
            {isolated}
            os.abort()
            """
        arguments = [sys.executable, "-c", textwrap.dedent(code)]
        _, status = os.waitpid(os.posix_spawn(sys.executable, arguments, os.environ), 0)
        assert os.WTERMSIG(status) == signal.SIGABRT
        return os.WCOREDUMP(status)

    if not dumps(""):
        pytest.skip("no core dumps here")
    assert not dumps("isolate_vault()")


def test_net_keeps_the_folder_of_its_certificate_alone(tmp_path: Path) -> None:
    for name in ("pki", "data", "ledger"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    code = f"""
        from pathlib import Path
        from colonnade.party.isolation.measures import isolate_net
        home = Path({str(tmp_path)!r})
        import grpc, ssl
        gained = isolate_net([home / "pki"], [home / "data", home / "ledger"])
        names = ("pki", "data", "ledger")
        found = {{name: attempt((home / name / "file").read_text) for name in names}}
        found["write"] = attempt(lambda: (home / "data" / "new").write_text("x"))
        found["list"] = attempt(lambda: list(home.iterdir()))
        found["link"] = attempt(lambda: (home / "data" / "file").hardlink_to(home / "pki" / "file"))
        found["renew"] = attempt(lambda: (home / "pki" / "file").rename(home / "pki" / "other"))
        found["names"] = 0 if socket.getaddrinfo("localhost", 80) else 1
        found["signal"] = attempt(lambda: os.kill(os.getppid(), 0))
        found["parent"] = attempt(lambda: Path(f"/proc/{{os.getppid()}}/environ").read_bytes())
        had = int(gained.measures["files"] == "yes")
        print(json.dumps({{"found": found, "gained": {{"files": had}}}}))
        """
    told = outcome(code, 1)
    if not told["gained"]["files"]:
        pytest.skip("no Landlock here")
    found = told["found"]
    assert {found[name] for name in ("pki", "renew", "names")} == {0}
    assert {found[name] for name in ("data", "ledger", "write", "list", "parent")} == {errno.EACCES}
    if system_call(444, None, 0, 1)[0] >= 6:
        assert found["signal"] == errno.EPERM  # a vault that is stopped for a while is slow
    assert found["link"] in (errno.EACCES, errno.EXDEV, errno.EEXIST)


def test_a_table_inside_what_net_needs_is_not_called_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_new_privileges", "no_core_dumps", "only_files"):
        monkeypatch.setattr(measures, name, lambda *_, **__: 0)
    apart = isolate_net([tmp_path / "pki"], [tmp_path / "data"])
    assert apart.measures["files"] == "yes"
    within = isolate_net([tmp_path], [tmp_path / "data"])
    assert within.measures["files"].startswith("no:")
    with pytest.raises(BadInput):
        within.require("files")


def test_whatever_the_configuration_names_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_new_privileges", "no_core_dumps", "only_files"):
        monkeypatch.setattr(measures, name, lambda *_, **__: 0)
    path = tmp_path / "party.toml"
    align = '[align]\nsource = "people.csv"\nschema = "schema.toml"\nid = ["person"]\n'
    path.write_text(f'isolation = "required"\nmirror = "head"\n{TEMPLATE}\n{align}')
    config = load_config(path)
    process.isolate(config)
    assert config.credentials is not None
    assert config.align is not None
    inside = config.credentials / "file"
    for place in ("data", "ledger_folder", "mirror", "policy", "uplink_log", "decisions"):
        exposed = replace(config, **{place: inside})
        with pytest.raises(BadInput, match="isolation is required"):
            process.isolate(exposed)
    for place in ("source", "schema"):
        exposed = replace(config, align=replace(config.align, **{place: inside}))
        with pytest.raises(BadInput, match="isolation is required"):
            process.isolate(exposed)


@pytest.mark.parametrize("isolation", ["required", "best-effort"])
@pytest.mark.parametrize("allowed", ["own_network", "forbid_sockets", ""])
def test_a_vault_that_must_be_isolated_and_cannot_be_does_not_start(
    isolation: str, allowed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VAULTS:
        answer = 0 if name == allowed else errno.EPERM
        monkeypatch.setattr(measures, name, lambda answer=answer: answer)
    path = tmp_path / "party.toml"
    path.write_text(TEMPLATE.replace('# isolation = "best-effort"', f'isolation = "{isolation}"'))
    config = load_config(path)
    assert config.isolation == isolation
    if isolation == "required" and not allowed:
        with pytest.raises(BadInput) as refused:
            isolated(config)
        assert len(str(refused.value).splitlines()) == 1
    else:
        isolated(config)


def test_an_engine_that_needs_a_network_keeps_it_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in VAULTS:
        monkeypatch.setattr(measures, name, lambda: 0)
    gained = measures.isolate_vault(network="engine_dask")
    assert gained.measures["filter"] == "no:engine_dask_needs_a_network"
    with pytest.raises(BadInput):
        gained.require("namespace", "filter")


def test_what_was_gained_is_one_line() -> None:
    gained = Gained({"namespace": "yes", "filter": "no:Operation_not_permitted"})
    assert gained.line == "namespace=yes filter=no:Operation_not_permitted"


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        (
            f"{CLI}.net, colonnade.party.net.process, colonnade.party.net.launcher",
            "numpy numba apsw duckdb colonnade.ledger.ledger colonnade.party.vault",
        ),
        (
            "colonnade.cli.party.processes.run, colonnade.cli.party.processes.vault",
            "numpy apsw grpc duckdb",
        ),
        ("colonnade.party.vault.process", "grpc duckdb sqlalchemy colonnade.party.net"),
    ],
    ids=["net", "before isolation", "vault"],
)
def test_neither_half_loads_what_belongs_to_the_other(modules: str, absent: str) -> None:
    code = f"import sys, {modules}; print([x for x in {absent.split()!r} if x in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "[]\n", ran.stderr


def test_there_is_a_filter_for_each_machine_that_there_are_images_for() -> None:
    x86, arm = program("x86_64"), program("aarch64")
    assert len(x86) == len(arm) == 8 * (len(FORBIDDEN) + 11)
    assert x86 != arm
