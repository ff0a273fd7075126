"""``colonnade preflight``: what would go wrong, why, and how to mend it, before the first job."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from colonnade.party.config import PartyConfig
    from colonnade.party.data.binding import Rows
    from colonnade.pki.authority import Credentials
    from colonnade.v1.federation_pb2 import CheckResponse

T = TypeVar("T")
_LEAST_FREE_BYTES = 64 << 20
_MAX_SKEW_S = 60.0


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "preflight",
        help="check a party or a coordinator before it runs",
        description="Check certificate, names, clock, reachability, data, ledger, policy and disk. "
        "Nothing is changed, nothing is charged. Exit code 1 if anything would fail.",
    )
    role = parser.add_mutually_exclusive_group(required=True)
    role.add_argument("--party", metavar="FILE", type=Path, help="a party's configuration")
    role.add_argument("--coordinator", metavar="FILE", type=Path, help="a coordinator's")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_run)


@dataclass(frozen=True, slots=True)
class Finding:
    """One check and what it found."""

    check: str
    ok: bool
    text: str


@dataclass(slots=True)
class Checklist:
    """Collects findings; a check that raises has found a problem."""

    findings: list[Finding] = field(default_factory=list)

    @contextmanager
    def check(self, name: str) -> Iterator[Callable[[str], None]]:
        """Run one check; call what it yields with what is well."""
        from colonnade.core.errors import ColonnadeError

        said: list[str] = []
        try:
            yield said.append
        except ColonnadeError as error:
            self.findings.append(Finding(name, ok=False, text=str(error)))
        except OSError as error:
            text = f"{error.filename or name}: {(error.strerror or 'failed').lower()}"
            self.findings.append(Finding(name, ok=False, text=text))
        else:
            self.findings.append(Finding(name, ok=True, text="; ".join(said)))

    def config(self, path: Path, load: Callable[[Path], T]) -> T | None:
        """Read the configuration, without which there is nothing to check."""
        found: list[T] = []
        with self.check("config") as say:
            found.append(load(path))
            say(str(path))
        return found[0] if found else None


def _run(arguments: argparse.Namespace) -> int:
    import json
    from dataclasses import asdict

    from colonnade.core.errors import EXIT_CHECK_FAILED, EXIT_OK

    checklist = Checklist()
    if arguments.party is not None:
        _check_party(checklist, arguments.party)
    else:
        _check_coordinator(checklist, arguments.coordinator)
    failed = [finding for finding in checklist.findings if not finding.ok]
    if arguments.json:
        rows = [asdict(finding) for finding in checklist.findings]
        print(json.dumps({"ok": not failed, "checks": rows}))
    else:
        for finding in checklist.findings:
            print(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.check:<12}  {finding.text}")
        problems = f"{len(failed)} of {len(checklist.findings)} checks failed"
        print(problems if failed else "ready")
    return EXIT_CHECK_FAILED if failed else EXIT_OK


def _check_party(checklist: Checklist, path: Path) -> None:
    from colonnade.party.config import load_config
    from colonnade.party.policy import load_policy

    if (config := checklist.config(path, load_config)) is None:
        return
    credentials = _check_certificate(checklist, config.credentials, "party")
    with checklist.check("policy") as say:
        policy = load_policy(config.policy)
        count = len(policy.allowances)
        say(f"{count} allowances" if count else "allows nothing: every job will be refused")
    rows = _check_data(checklist, config)
    _check_ledger(checklist, config, credentials, rows)
    _check_disk(checklist, config.ledger.folder)
    if credentials is not None:
        _check_reach(checklist, config, credentials)


def _check_certificate(
    checklist: Checklist, folder: Path | None, role: str
) -> "Credentials | None":
    from datetime import UTC, datetime

    from colonnade.core.errors import BadIdentity
    from colonnade.pki.authority import load_credentials, renew_due

    found: list[Credentials] = []
    with checklist.check("certificate") as say:
        if folder is None:
            say("insecure: no certificate is used")
            return None
        credentials = load_credentials(folder)
        if credentials.identity.role != role:
            raise BadIdentity(f"{folder} is of {credentials.identity.uri}, not of a {role}")
        found.append(credentials)
        left = (credentials.not_after - datetime.now(UTC)).days
        say(f"{credentials.identity.uri}, {left} days left")
        if renew_due(credentials, datetime.now(UTC)):
            say("renew it now: colonnade pki request")
    return found[0] if found else None


def _check_data(checklist: Checklist, config: "PartyConfig") -> "Rows | None":
    from colonnade.party.data.binding import rows_of
    from colonnade.party.data.dataset import open_dataset
    from colonnade.party.pacing import advised_ms, estimated_s

    found: list[Rows] = []

    with checklist.check("data") as say, open_dataset(config.data) as dataset:
        table = dataset.coarse
        label = "a label" if table.label is not None else "no label"
        say(f"{table.n_rows} rows, {len(table.names)} features, {label}")
        say(f"dataset {dataset.version}")
        longest = estimated_s(table)
        say(f"making an answer takes up to {1000.0 * longest:.1f} ms here")
        if 0.0 < config.answer_grid_s < longest:
            say(f"longer than answer_grid_ms: set it to {advised_ms(longest)}")
        found.append(rows_of(dataset))
    return found[0] if found else None


def _check_ledger(
    checklist: Checklist,
    config: "PartyConfig",
    credentials: "Credentials | None",
    rows: "Rows | None",
) -> None:
    from colonnade.core.errors import BadInput
    from colonnade.ledger.create import open_ledger
    from colonnade.party.data.binding import check_binding
    from colonnade.privacy.accounting import rho_from_units

    with checklist.check("ledger") as say:
        ledger = open_ledger(config.ledger)
        try:
            name, budget = ledger.opened.party, ledger.budget()
            if credentials is not None and credentials.identity.name != name:
                raise BadInput(f"the ledger is of party {name}, not {credentials.identity.name}")
            if rows is not None:
                check_binding(rows, ledger)
            left = budget.remaining - ledger.state.reserved.get("", 0)
            say(f"rho {rho_from_units(left):.6g} of {rho_from_units(budget.cap):.6g} is free")
        finally:
            ledger.close()


def _check_disk(checklist: Checklist, folder: Path) -> None:
    import shutil

    from colonnade.core.errors import LowDisk

    with checklist.check("disk") as say:
        free = shutil.disk_usage(folder if folder.exists() else folder.parent).free
        if free < _LEAST_FREE_BYTES:
            raise LowDisk(
                f"{free >> 20} MiB free where {folder} is; make room for "
                f"{_LEAST_FREE_BYTES >> 20} MiB"
            )
        say(f"{free >> 20} MiB free")


def _check_reach(checklist: Checklist, config: "PartyConfig", credentials: "Credentials") -> None:
    import asyncio
    import time

    from colonnade.core.errors import BadInput
    from colonnade.party.policy import load_policy
    from colonnade.party.session import check_coordinator
    from colonnade.wire.channels import server_identity

    answers: list[CheckResponse] = []
    with checklist.check("coordinator") as say:
        identity = server_identity(config.coordinator, credentials)
        say(f"{config.coordinator} is {identity.uri}")
        load_policy(config.policy).for_coordinator(identity)
        answers.append(asyncio.run(check_coordinator(config.coordinator, credentials)))
        say("it accepts this certificate")
        enrolled = answers[0].enrolled
        say("the ledger is enrolled" if enrolled else "the ledger enrols at the first run")
    if answers:
        with checklist.check("clock") as say:
            skew = time.time() - answers[0].time
            if abs(skew) > _MAX_SKEW_S:
                raise BadInput(
                    f"this clock differs from the coordinator's by {skew:.0f} s; set both by NTP"
                )
            say(f"{abs(skew):.1f} s from the coordinator's")


def _check_coordinator(checklist: Checklist, path: Path) -> None:
    import socket
    import time

    from colonnade.core.errors import BadInput
    from colonnade.pki.authority import load_denied
    from colonnade.server.config import load_config
    from colonnade.server.store.sql import Database
    from colonnade.wire.limits import split_address

    if (config := checklist.config(path, load_config)) is None:
        return
    _check_certificate(checklist, config.credentials, "coordinator")
    with checklist.check("port") as say:
        host, port = split_address(config.listen)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                what = (error.strerror or "failed").lower()
                raise BadInput(f"cannot listen on {config.listen}: {what}") from None
        say(f"{config.listen} is free")
    with checklist.check("database") as say:
        store = Database(config.database)
        jobs = store.jobs()
        store.close()
        say(f"{len(jobs)} jobs")
        if jobs and jobs[0].submitted_at > time.time() + _MAX_SKEW_S:
            raise BadInput("the newest job is from the future; this clock went back, set it by NTP")
    if config.denylist is not None:
        with checklist.check("denylist") as say:
            say(f"{len(load_denied(config.denylist))} fingerprints")
    _check_disk(checklist, path.resolve().parent)
