"""A PostgreSQL of the benchmark's own, where its programs are installed."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from colonnade.simulate.federation import free_port

_USER = "postgres"


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    program = shutil.which("initdb")
    return None if program is None else Path(program).parent


@contextmanager
def temporary_postgres(folder: Path, password: str = "") -> Iterator[str | None]:
    """Start a server on loopback in ``folder`` and yield its URL; None if that is impossible.

    Parameters
    ----------
    password
        What it asks for, if anything.
    """
    programs, before = _programs(), list[str]()
    if os.getuid() == 0:  # it does not run as root
        known = {user.pw_name for user in pwd.getpwall()}
        before = ["runuser", "-u", _USER, "--"] if _USER in known else []
    if programs is None or (os.getuid() == 0 and not before):
        yield None
        return
    home, port = folder / "postgres", free_port()
    home.mkdir()
    secret = home / "password"
    secret.write_text(password)
    if before:
        for path in (home, secret):
            shutil.chown(path, _USER)
        for parent in home.parents:
            if parent.stat().st_uid == 0 and parent.stat().st_mode & 0o777 == 0o700:
                parent.chmod(0o711)

    def run(program: str, *arguments: str) -> None:
        command = [*before, str(programs / program), *arguments]
        subprocess.run(command, check=True, cwd=home, capture_output=True, timeout=120)

    data = home / "data"
    trust = ("-A", "scram-sha-256", f"--pwfile={secret}") if password else ("-A", "trust")
    run("initdb", "-D", str(data), "-U", "hub", *trust, "-N", "-E", "UTF8", "--locale=C")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home}"
    run("pg_ctl", "-D", str(data), "-o", options, "-l", str(home / "log"), "-w", "start")
    try:
        user = f"hub:{password}" if password else "hub"
        yield f"postgresql://{user}@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
