"""`docker compose up` tells the whole story: report, walls, kills in the middle of a job."""

import csv
import http.client
import http.server
import json
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.containers import PARTY, ROOT, SIMULATION, Ended, Project, docker, run

from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.progress import find_job, run_of
from colonnade.server.store.sql import Database
from colonnade.simulate.federation import free_port

pytestmark = [pytest.mark.usefixtures("images"), pytest.mark.timeout(1200)]

PARTIES = ("hospital", "laboratory", "insurer")
DESKS = ("hub", "analyst", "watcher", *PARTIES)
OPERATOR = "colonnade-test-operator"
# Noise that leaves columns of both other organizations in the model, so that people are scored.
SMALL = {"COLONNADE_PEOPLE": "3000", "COLONNADE_EPSILON": "20", "COLONNADE_CAP": "80"}
SCORED = 300
ROUNDS = 1500  # of a job that is interrupted: the rest takes longer than looking and killing


@dataclass(frozen=True, slots=True)
class Finished:
    """The simulation after its story: containers stopped, volumes and report there."""

    project: Project
    up: Ended
    folder: Path  # of the run


def project_in(home: Path, name: str, overlay: str, **settings: str) -> Project:
    """Copy the compose file, an overlay and what they use to a folder of their own."""
    for file in ("docker-compose.yml", overlay):
        shutil.copy(ROOT / file, home)
    shutil.copytree(ROOT / "deploy" / "simulation", home / "deploy" / "simulation")
    places = ("COLONNADE_LISTEN", "COLONNADE_CONSOLE", "COLONNADE_HOSPITAL_CONSOLE")
    ports = {place: f"127.0.0.1:{free_port()}" for place in places}
    return Project(name, home, ports | settings)


@contextmanager
def up(project: Project) -> Iterator[Ended]:
    """Run a project until the job's author ends; everything but the runs is gone afterwards."""
    project.remove()
    try:
        arguments = ("--no-color", "--no-build", "--exit-code-from", "submit")
        yield project.compose("up", *arguments, check=False, timeout=900)
    finally:
        project.remove()


@pytest.fixture(scope="module")
def finished(images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    project = project_in(
        tmp_path_factory.mktemp("simulation"),
        "colonnade-test-simulation",
        "docker-compose.postgres.yml",
        **SMALL,
    )
    with up(project) as ended:
        folders = list((project.folder / "runs").glob("*"))
        assert len(folders) == 1, ended.stdout[-5000:] + ended.stderr[-2000:]
        yield Finished(project, ended, folders[0])


@pytest.fixture(scope="module")
def running(finished: Finished) -> Iterator[Project]:
    """All but the job's author, running again, and an operator at whose shell to sit."""
    project = finished.project
    project.compose("start", "setup", "coordinator", *PARTIES, "officer")
    for service in ("coordinator", *PARTIES):
        project.wait(service)
    project.compose(
        *("run", "-d", "--no-deps", "--entrypoint", "sleep", "--name", OPERATOR, "submit", "1200")
    )
    try:
        operator(". /simulation/enrol.sh; enrol operator analyst")
        yield project
    finally:
        docker("rm", "--force", OPERATOR)


def operator(script: str, *, check: bool = True) -> Ended:
    """Run a line at the operator's shell."""
    where = "--env=COLONNADE_COORDINATOR=coordinator:7443", "--env=COLONNADE_CREDENTIALS=/tmp/pki"
    command = ["docker", "exec", *where, OPERATOR, "sh", "-ec", script]
    return run(command, check=check, timeout=600)


def told(script: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(operator(script).stdout)
    return answer


def report_of(finished: Finished) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((finished.folder / "report.json").read_text())
    return report


# -- The first job ---------------------------------------------------------------------------------


def test_up_ends_well_and_tells_every_step_in_plain_lines(finished: Finished) -> None:
    assert finished.up.returncode == 0, finished.up.stdout[-5000:]
    lines = finished.up.stdout.splitlines()
    said = [line.partition("| ")[2] for line in lines if line.startswith("submit")]
    steps = [line.partition(" ")[0].rstrip(":") for line in said if not line.startswith(" ")]
    story = ["Align", "Plan", "Fit", "Evaluate", "Score"]
    assert [step for step in steps if step in story] == story
    told = [line.strip().partition(":")[0] for line in said]
    assert told.count("what left") == 2  # of the alignment, of the fit
    assert {"cost", "spent"} <= {*told}
    assert any("round " in line and "left of the job's price" in line for line in said)
    assert f"the report is runs/{finished.folder.name}/report.html" in said
    assert any(line.startswith("officer") and "the officer signs" in line for line in lines)


def test_the_hospital_alone_has_the_scores(finished: Finished) -> None:
    name = finished.project.name
    homes = [f"--volume={name}_{party}:/home/{party}:ro" for party in PARTIES]
    runs = f"--volume={finished.project.folder / 'runs'}:/home/runs:ro"
    script = "find /home -path '*/predictions/*.csv'; cat /home/*/rows.csv | wc -l"
    found = docker("run", "--rm", *homes, runs, SIMULATION, "sh", "-c", script).split()
    *files, asked = found
    assert {file.split("/")[2] for file in files} == {"hospital"}
    assert int(asked) == SCORED + 1  # and a head
    shown = docker("run", "--rm", *homes, SIMULATION, "cat", *files)
    rows = [row for row in csv.DictReader(shown.splitlines()) if row["row"].isdigit()]
    people = {row["patient"] for row in rows if row["patient"]}
    assert len(people) >= SCORED  # these, and those of the evaluation whom the hospital has


def test_the_report_says_finished_under_the_caps_and_to_the_byte(finished: Finished) -> None:
    report = report_of(finished)
    assert report["state"] == "finished"
    assert report["job_id"].startswith(finished.folder.name)
    assert report["rounds"]["done"] == report["rounds"]["planned"] > 0
    assert report["uplink"]["payload_bytes"] == report["uplink"]["predicted_bytes"] > 0
    parties = {each["party"]: each for each in report["privacy"]["parties"]}
    assert set(parties) == set(PARTIES)
    for each in parties.values():
        assert 0.0 < each["ledger_spent"]["rho"] <= each["cap"]["rho"]
    assert 0.5 < report["evaluation"]["value"] <= 1.0
    assert report["evaluation"]["metric"] == "auc"
    assert (finished.folder / "report.html").stat().st_size > 10_000
    owner = (finished.folder / "report.html").stat()
    assert (owner.st_uid, owner.st_gid) == (1000, 1000)


def test_the_model_is_what_the_coordinator_stored(finished: Finished, tmp_path: Path) -> None:
    container = finished.project.container("coordinator")
    docker("cp", f"{container}:/var/lib/colonnade/.", tmp_path / "hub")
    store = Database(f"sqlite:///{tmp_path / 'hub' / 'coordinator.db'}")
    try:
        engine = Coordinator(store, "simulation")
        job = run_of(engine, store, find_job(engine, store, finished.folder.name))
        stored = job.algorithm.model(job.state).to_object()
    finally:
        store.close()
    given = json.loads((finished.folder / "model.json").read_text())
    assert {each["party"] for each in given["features"]} == set(PARTIES)
    for part in ("features", "intercept", "label", "job_id"):
        assert given[part] == stored[part]


def test_ledgers_agree_with_the_report(finished: Finished) -> None:
    parties = report_of(finished)["privacy"]["parties"]
    assert len(parties) == len(PARTIES)
    for each in parties:
        volume = f"--volume={finished.project.name}_{each['party']}:/var/lib/colonnade"
        script = "colonnade ledger verify ledger >&2; colonnade ledger show ledger --json"
        command = ("--entrypoint=sh", PARTY, "-ec", script)
        shown = docker("run", "--rm", "--tmpfs=/tmp", volume, *command)
        account = json.loads(shown)["accounts"][0]  # of the table; then that of membership
        assert account["spent"]["units"] == each["ledger_spent"]["units"]


def test_private_keys_stay_in_the_volume_they_were_made_in(finished: Finished) -> None:
    name = finished.project.name
    desks = [f"--volume={name}_{desk}-desk:/look/{desk}:ro" for desk in DESKS]
    homes = [f"--volume={name}_{each}:/home/{each}:ro" for each in (*PARTIES, "officer")]
    look = "grep -rl 'PRIVATE KEY'"
    script = f"find /look -type f; echo --; {look} /look; echo --; {look} /home"
    found = docker("run", "--rm", *desks, *homes, SIMULATION, "sh", "-c", script)
    there, at_desks, at_home = (part.split() for part in found.split("--"))
    carried = {"key.txt", "peers.txt", "job.txt", "granted", "people.csv", "schema.toml"}
    expected = {f"{each}/certificate.pem" for each in DESKS}
    expected |= {f"{party}/{each}" for party in PARTIES for each in carried}
    expected |= {f"hospital/{each}" for each in ("officer.pem", "tonight.csv", "rows.csv")}
    expected |= {f"analyst/{each}" for each in ("job.txt", "granted", "rows.csv")}
    assert {path.removeprefix("/look/") for path in there} == expected
    assert at_desks == []
    # The look that finds nothing at the desks finds these.
    assert {path.split("/")[2] for path in at_home} == {*PARTIES, "officer"}


# -- Walls -----------------------------------------------------------------------------------------

PROBE = """
import concurrent.futures, socket, sys
def found(target):
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 3).close()
    except OSError:
        return "closed"
    return "open"
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    for target, state in zip(sys.argv[1:], pool.map(found, sys.argv[1:])):
        print(target, state)
"""


def probe(project: Project, service: str, *targets: str) -> dict[str, str]:
    """Try connections from inside a container."""
    said = project.exec(service, "python3", "-", *targets, told=PROBE).stdout
    return dict(line.split() for line in said.splitlines())


@contextmanager
def listening_here() -> Iterator[int]:
    """Listen on all addresses of this machine."""
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def addresses_of(project: Project, service: str) -> dict[str, str]:
    networks = project.inspect(service)["NetworkSettings"]["Networks"]
    return {name.removeprefix(f"{project.name}_"): it["IPAddress"] for name, it in networks.items()}


def test_a_party_reaches_the_coordinator_and_nothing_else(running: Project) -> None:
    for party in PARTIES[1:]:
        serve = ("python3", "-m", "http.server", "8000", "--directory", "/tmp")
        docker("exec", "--detach", running.container(party), *serve)
    others = [f"{addresses_of(running, party)[party]}:8000" for party in PARTIES[1:]]
    hub = addresses_of(running, "coordinator")
    deadline = time.monotonic() + 30
    while probe(running, "coordinator", *others) != dict.fromkeys(others, "open"):
        assert time.monotonic() < deadline, "the listeners did not start"
    with listening_here() as port:
        gateway = docker(
            *("network", "inspect", f"{running.name}_operators"),
            *("--format", "{{(index .IPAM.Config 0).Gateway}}"),
        ).strip()
        host = {gateway, "172.17.0.1", *machine_addresses()}
        machine = [f"{address}:{port}" for address in sorted(host)]
        # Something listens there: the coordinator, which has a way out, finds it.
        assert probe(running, "coordinator", f"{gateway}:{port}") == {f"{gateway}:{port}": "open"}
        names = [f"{party}:8000" for party in PARTIES[1:]]
        beyond = [f"{hub[party]}:7443" for party in PARTIES[1:]]  # the hub's other networks
        closed = [*others, *names, *machine, *beyond, "1.1.1.1:443", "example.org:443"]
        found = probe(running, "hospital", "coordinator:7443", *closed)
    assert found.pop("coordinator:7443") == "open"
    assert found == dict.fromkeys(closed, "closed")


def machine_addresses() -> set[str]:
    found = {address[4][0] for address in socket.getaddrinfo(socket.gethostname(), None)}
    return {
        str(each) for each in found if ":" not in str(each) and not str(each).startswith("127.")
    }


@pytest.mark.parametrize("service", ["coordinator", *PARTIES, "officer"])
def test_containers_have_no_more_rights_than_they_need(running: Project, service: str) -> None:
    limits = running.inspect(service)["HostConfig"]
    assert limits["ReadonlyRootfs"] is True
    assert limits["CapDrop"] == ["ALL"]
    assert not limits["CapAdd"]
    assert limits["SecurityOpt"] == ["no-new-privileges:true"]
    assert limits["Memory"] == 1 << 30
    assert limits["PidsLimit"] == 256
    status = running.exec(service, "cat", "/proc/1/status").stdout
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    assert running.exec(service, "touch", "/opt/x", check=False).returncode != 0


# -- Faults ----------------------------------------------------------------------------------------


def test_kills_in_the_middle_of_a_job_cost_nothing(running: Project) -> None:
    before = spent_at_the_ledgers(running)
    job = told(
        "cd /tmp; colonnade job submit --target readmitted --epsilon 0.5 --yes "
        f"--method frank-wolfe --rounds {ROUNDS} --json"
    )["job_id"]
    for service in ("laboratory", "coordinator"):
        wait_for_rounds(job, 10)
        docker("kill", running.container(service))
        docker("start", running.container(service))
        running.wait(service)
    assert operator(f"colonnade job watch {job}").returncode == 0
    report = told(f"colonnade job report {job} --json")
    assert report["state"] == "finished"
    assert report["uplink"]["payload_bytes"] == report["uplink"]["predicted_bytes"]
    view = told(f"colonnade job show {job} --json")
    after = spent_at_the_ledgers(running)
    for party in view["parties"]:
        name = party["party"]
        assert after[name] - before[name] == party["spent_units"] > 0
        assert party["spent_units"] <= party["max_units"]


def wait_for_rounds(job: str, more: int) -> None:
    """Wait until a job has done some more rounds; it must not end meanwhile."""
    first, deadline = None, time.monotonic() + 120
    while True:
        view = told(f"colonnade job show {job} --json")
        assert view["state"] in ("proposed", "running"), view
        first = view["rounds_done"] if first is None else first
        if view["rounds_done"] >= first + more:
            return
        assert time.monotonic() < deadline, view
        time.sleep(0.2)


def spent_at_the_ledgers(project: Project) -> dict[str, int]:
    """Return what each ledger says, from the party's own metrics: the ledger is in use."""
    code = (
        "import urllib.request as u;"
        "print(u.urlopen('http://127.0.0.1:9464/metrics', timeout=10).read().decode())"
    )
    units = {}
    for party in PARTIES:
        lines = project.exec(party, "python3", "-c", code).stdout.splitlines()
        shown = next(line for line in lines if line.startswith('colonnade_budget_rho{part="spent"'))
        units[party] = round(float(shown.rsplit(" ", 1)[1]) * 2**50)
    return units


def test_a_party_with_a_strangers_certificate_is_refused_by_name(running: Project) -> None:
    script = """
        cd /tmp
        colonnade pki init --folder ca --federation simulation
        colonnade pki request --folder pki --role party --federation simulation --name hospital
        colonnade pki approve pki/request.csr --authority ca --out hospital.pem
        colonnade pki install --folder pki hospital.pem
        sed 's|credentials = "pki"|credentials = "/tmp/pki"|; /metrics/d; /health/d' \\
            /var/lib/colonnade/party.toml >strange.toml
        for name in data ledger policy.toml uplink.jsonl schema.toml; do
            sed -i "s|= \\"$name\\"|= \\"/var/lib/colonnade/$name\\"|" strange.toml
        done
        exit_code=0
        colonnade party run --config strange.toml || exit_code=$?
        echo "exit code $exit_code"
    """
    docker("stop", running.container("hospital"))
    try:
        arguments = ("run", "--rm", "-T", "--no-deps", "--entrypoint", "sh", "hospital", "-ec")
        ended = running.compose(*arguments, script, check=False)
        said = ended.stdout + ended.stderr
        assert "exit code 4" in said, said
        # Each side trusts its own root only, and the party is the first to look.
        told_why = "coordinator:7443 is not to be trusted: unable to get local issuer certificate"
        assert f"colonnade: {told_why}" in said
    finally:
        docker("start", running.container("hospital"))
        running.wait("hospital")


def test_a_party_whose_key_was_denied_is_refused_by_name(running: Project) -> None:
    show = ("colonnade", "pki", "show", "/exchange/certificate.pem", "--json")
    found = json.loads(running.exec("hospital", *show).stdout)["shown"][0]["fingerprint"]
    running.exec("coordinator", "sh", "-c", f"echo {found} >denied.txt")
    container = running.container("hospital")
    docker("restart", container)
    try:
        assert docker("wait", container).strip() == "4"
        # The engine's log may lag behind the end of what it logs.
        for _ in range(100):
            if "denied" in (last := running.logs("hospital").rstrip().splitlines()[-1]):
                break
            time.sleep(0.1)
        assert "denied" in last
    finally:
        running.exec("coordinator", "sh", "-c", "echo >denied.txt")
        # A coordinator reads its denylist again now and then: until it has, the party ends again.
        for attempt in range(5):
            docker("start", container)
            try:
                running.wait("hospital")
                break
            except AssertionError:
                if attempt == 4:
                    raise


def links(project: Project, service: str) -> list[str]:
    """Return the addresses that a console printed, one for each time that it started."""
    return re.findall(r"http://\S+/enter\?token=\S+", project.logs(service))


def fetched(place: str, path: str, **headers: str) -> tuple[int, str, str]:
    """Return status, cookie and text of a page."""
    with closing(http.client.HTTPConnection(place, timeout=60)) as connection:
        connection.request("GET", path, headers=headers)
        with closing(connection.getresponse()) as answer:
            return answer.status, answer.getheader("Set-Cookie") or "", answer.read().decode()


@pytest.mark.parametrize(
    ("service", "shown"), [("console", "laboratory"), ("hospital-console", "Party running")]
)
def test_a_console_is_opened_by_the_address_in_its_log(
    running: Project, service: str, shown: str
) -> None:
    before = links(running, service)
    running.compose("start", service)
    while len(found := links(running, service)) == len(before):
        time.sleep(0.5)  # a container takes a moment to start
    address = urlsplit(found[-1])
    place, home = address.netloc, address.path.removesuffix("enter")
    status, _, page = fetched(place, "/")
    assert (status, shown in page) == (404, False)  # the pages lie under a random path
    status, _, page = fetched(place, home)
    assert (status, shown in page) == (401, False)  # not without the token
    _, cookie, _ = fetched(place, f"{address.path}?{address.query}")
    status, _, page = fetched(place, home, Cookie=cookie.partition(";")[0])
    assert (status, shown in page) == (200, True)


@pytest.mark.parametrize("service", ["hospital", "coordinator"])
def test_sigterm_stops_cleanly_within_ten_seconds(running: Project, service: str) -> None:
    docker("stop", "--time", "10", running.container(service))
    state = running.inspect(service)["State"]
    assert state["ExitCode"] == 0  # 137 would say that it had to be killed
    said = run(["docker", "logs", running.container(service)]).stdout  # the log is on stderr
    assert said.rstrip().splitlines()[-1] == "stopped"
    docker("start", running.container(service))
    running.wait(service)


def test_the_overlay_moves_the_state_to_postgresql(finished: Finished) -> None:
    files = ("--file", "docker-compose.yml", "--file", "docker-compose.postgres.yml")
    refused = finished.project.compose(*files, "config", check=False)
    assert refused.returncode != 0
    assert "set POSTGRES_PASSWORD in .env" in refused.stderr
    settings = {**finished.project.settings, "POSTGRES_PASSWORD": "a"}
    shown = Project(finished.project.name, finished.project.folder, settings).compose(
        *files, "config"
    )
    assert "postgresql+psycopg://colonnade@database/colonnade" in shown.stdout
    assert os.environ.get("POSTGRES_PASSWORD") is None


def test_the_overlay_adds_clients_that_each_pay_for_themselves(
    images: None, tmp_path: Path
) -> None:
    overlay = "docker-compose.admm.yml"
    project = project_in(
        tmp_path,
        "colonnade-test-clients",
        overlay,
        **SMALL,
        COLONNADE_CLIENTS="60",
        COMPOSE_FILE=f"docker-compose.yml:{overlay}",
    )
    with up(project) as ended:
        assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-2000:]
    reports = [json.loads(each.read_text()) for each in (tmp_path / "runs").glob("*/report.json")]
    by_method = {report["method"]: report for report in reports}
    assert len(by_method) == len(reports) == 2
    report = by_method["admm"]
    assert report["state"] == "finished"
    assert report["rounds"]["done"] == report["rounds"]["planned"]
    assert report["uplink"]["payload_bytes"] == report["uplink"]["predicted_bytes"] > 0
    (gateway,) = report["privacy"]["parties"]
    assert gateway["party"] == "gateway"
    assert 0 < gateway["spent"]["units"] <= gateway["cap"]["units"]
