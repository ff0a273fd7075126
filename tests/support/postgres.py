"""A PostgreSQL of the tests' own."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from colonnade.simulate.federation import free_port

PASSWORD = "correct-horse"


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    program = shutil.which("initdb")
    return None if program is None else Path(program).parent


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@contextmanager
def running_postgres(folder: Path) -> Iterator[str]:
    """Start a PostgreSQL on a free port, that asks for a password; yield its URL."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    if os.getuid() == 0 and (shutil.which("runuser") is None or not _has_user("postgres")):
        pytest.skip("PostgreSQL does not run as root and there is no other user for it")
    secret, data, port = folder / "password", folder / "data", free_port()
    secret.write_text(PASSWORD)
    before: list[str] = []
    if os.getuid() == 0:
        before = ["runuser", "-u", "postgres", "--"]
        for path in (folder, secret):
            shutil.chown(path, "postgres")
        for parent in folder.parents:  # pytest's folders are private
            if parent.stat().st_uid == 0 and parent.stat().st_mode & 0o777 == 0o700:
                parent.chmod(0o711)

    def run(program: str, *arguments: str) -> None:
        command = [*before, str(programs / program), *arguments]
        subprocess.run(command, check=True, cwd=folder, capture_output=True, timeout=120)

    whose = ("-U", "hub", "-A", "scram-sha-256", f"--pwfile={secret}")
    run("initdb", "-D", str(data), *whose, "-N", "-E", "UTF8", "--locale=C")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    run("pg_ctl", "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield f"postgresql://hub:{PASSWORD}@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")


def reset(url: str) -> None:
    """Remove all tables."""
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    engine.dispose()
