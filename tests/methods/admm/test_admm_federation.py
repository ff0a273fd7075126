"""Jobs over clients with real files, ledgers and processes."""

import datetime as dt
import html
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.dying import kill_and_restart

from colonnade.cli.main import main
from colonnade.client import Client, PartyOffer
from colonnade.client.builder import job_over_clients
from colonnade.core.errors import BadInput, PolicyRefused
from colonnade.data.schema import parse_schema
from colonnade.data.table import COARSE_NAME, Table, TableWriter
from colonnade.ledger.create import open_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.methods.admm import prox
from colonnade.methods.admm.codec import tasks_to_bytes
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.releases import DISPLACEMENT
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.methods.base import Unit
from colonnade.methods.job import Job, job_id
from colonnade.methods.problem import Loss
from colonnade.party.config import load_config
from colonnade.party.data.binding import claim, rows_of
from colonnade.party.data.bounding.bounds import buy_bounds
from colonnade.party.data.clients import CLIENTS_NAME, TableClients, read_clients
from colonnade.party.data.columns import version_of
from colonnade.party.data.dataset import open_dataset
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.fit_order import party_table
from colonnade.party.policy_file import load_policy
from colonnade.party.vault.meter import read_log
from colonnade.party.vault.vault import Vault
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import units_down
from colonnade.privacy.sampling import OsNoise
from colonnade.simulate.admm.run import TARGET, Dealt, Population, found, people
from colonnade.simulate.federation import FEDERATION, Federation
from colonnade.simulate.processes import Processes
from colonnade.v1 import job_pb2
from colonnade.wire.cohort import Replies
from colonnade.wire.jobspec import job_to_bytes

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fork_server")]

PRICE = units_down(0.2)
HUB = Identity(FEDERATION, "coordinator", "hub")
POPULATION = Population(clients=24, rows_per_client=6, features=3, hosts=2, loss=Loss.LOGISTIC)


def spec_of(**changes: Any) -> AdmmSpec:
    numbers: dict[str, Any] = {
        "n_clients": 24,
        "n_features": 3,
        "rounds": 6,
        "sampled": 10,
        "release_units": PRICE,
        "gamma": 2.0,
        "lipschitz": 0.2,
        "intercept": True,
        "minimum": 3,
    }
    return AdmmSpec(**numbers | changes)


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    return found(tmp_path / "all", people(POPULATION), cap_units=8 * PRICE, drop_out=0.0)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A federation as processes, with a budget for several jobs; each test leaves all attached."""
    folder = tmp_path_factory.mktemp("running")
    made = found(folder, people(POPULATION), cap_units=40 * PRICE, drop_out=0.0)
    with Processes(made, folder / "logs") as processes:
        with processes.client() as client:
            processes.wait_for_parties(client)
        yield processes


def built(spec: AdmmSpec, offers: list[PartyOffer], *, round_timeout_s: int = 2) -> Job:
    return job_over_clients(
        spec,
        offers,
        target=TARGET,
        name="clients",
        delta=1e-6,
        round_timeout_s=round_timeout_s,
    )


def job_of(federation: Federation, **changes: Any) -> Job:
    """Return a job over the clients of both hosts, made from their tables."""
    offers = []
    for party in federation.parties:
        table = Table.open(federation.folder / party / "data" / COARSE_NAME)
        label = (TARGET, table.header.columns[-1].bounds)
        bounds = dict(zip(table.names, table.bounds, strict=True))
        fills, version = dict(zip(table.names, table.fills, strict=True)), version_of(table)
        offers.append(PartyOffer(party, True, version, 12, bounds, fills, label, 1, 0, Unit.CLIENT))
    return built(spec_of(**changes), offers)


def vault_of(federation: Federation, party: str) -> tuple[Vault, Ledger]:
    config = load_config(federation.party_config(party))
    ledger = open_ledger(config.ledger)
    policy = load_policy(config.policy)
    vault = Vault(
        open_dataset(config.data),
        ledger,
        OsNoise(),
        policy=policy,
        coordinator=HUB,
        today=lambda: dt.date(2030, 1, 1),
    )
    return vault, ledger


def task(clients: list[int], round_: int = 1, *, value: int = 0) -> bytes:
    """Return a task as anybody may send it, without the checks of an honest coordinator."""
    body = job_pb2.TaskBody()
    body.admm_step.clients.extend(clients)
    body.admm_step.rounds.extend([round_] * len(clients))
    body.admm_step.points = np.full((len(clients), 4), value, "<i8").tobytes()
    return body.SerializeToString(deterministic=True)


# -- hosts ---------------------------------------------------------------------------------------


def test_a_host_says_how_many_clients_it_has_and_not_who(federation: Federation) -> None:
    vault, ledger = vault_of(federation, "host-1")
    hello = vault.hello()
    assert hello.offer.unit == job_pb2.UNIT_CLIENT
    assert hello.offer.population == 12  # how many rows they have is nobody's business
    ledger.close()


def test_each_client_has_an_account_whose_name_survives_another_ingest(
    federation: Federation,
) -> None:
    home = federation.folder / "host-1"
    ledger = open_ledger(federation.ledger("host-1"))
    table = Table.open(home / "data" / COARSE_NAME)
    first = read_clients(home / "data", table.header)
    assert first is not None
    accounts = first.accounts(ledger)
    assert len(set(accounts)) == 12
    assert all(len(name) == 32 and int(name, 16) >= 0 for name in accounts)
    schema = parse_schema((home / "schema.toml").read_text(), origin="schema")
    ingest(schema, FileSource(home / "table.parquet"), out=home / "data")
    table = Table.open(home / "data" / COARSE_NAME)
    again = read_clients(home / "data", table.header)
    assert again is not None
    assert again.accounts(ledger) == accounts
    ledger.close()
    other = open_ledger(federation.ledger("host-2"))
    assert not {*again.accounts(other)} & {*accounts}  # the key is the ledger's
    other.close()


def test_a_host_answers_for_the_clients_asked_and_charges_each(federation: Federation) -> None:
    job = job_of(federation)
    spec = job_to_bytes(job)
    vault, ledger = vault_of(federation, "host-1")
    assert vault.consider(spec).accepted
    replies = vault.answer(job_id(spec), 1, task([0, 5]))
    assert isinstance(replies, Replies)
    assert list(replies.released) == [0, 5]
    assert ledger.head.spent == 2 * job.method.spec.mechanism.cost  # type: ignore[attr-defined]
    assert ledger.budget().spent == 0  # nobody pays from the default account
    same = vault.answer(job_id(spec), 1, task([0, 5]))
    assert isinstance(same, Replies)
    bodies = [each.body for each in replies.released.values()]
    assert [each.body for each in same.released.values()] == bodies
    ledger.close()


def test_another_question_under_an_answered_round_declines(federation: Federation) -> None:
    spec = job_to_bytes(job_of(federation))
    vault, ledger = vault_of(federation, "host-1")
    vault.consider(spec)
    vault.answer(job_id(spec), 1, task([3]))
    spent = ledger.head.spent
    again = vault.answer(job_id(spec), 1, task([3], value=1))
    assert isinstance(again, Replies)
    assert (dict(again.released), list(again.declined)) == ({}, [3])
    assert ledger.head.spent == spent
    ledger.close()


@pytest.mark.parametrize(
    ("round_", "body"),
    [
        (1, task([12])),
        (1, task([0, 0])),
        (7, task([0], 7)),
        (1, task([0], 2)),
        (1, b"\xff"),
        (1, task([0], 0)),
    ],
    ids=["no such client", "twice", "no such round", "a round to come", "no task", "round 0"],
)
def test_a_task_that_does_not_fit_costs_nothing(
    federation: Federation, round_: int, body: bytes
) -> None:
    spec = job_to_bytes(job_of(federation))
    vault, ledger = vault_of(federation, "host-1")
    vault.consider(spec)
    head = ledger.head
    with pytest.raises(BadInput):
        vault.answer(job_id(spec), round_, body)
    assert ledger.head == head
    ledger.close()


def test_a_client_without_enough_left_declines_by_itself(federation: Federation) -> None:
    ledger = open_ledger(federation.ledger("host-1"))
    ledger.close()
    vault, ledger = vault_of(federation, "host-1")
    account = vault._units.accounts(ledger)[2]
    ledger.set_cap(PRICE, reason="little", account=account)
    spec = job_to_bytes(job_of(federation))
    assert vault.consider(spec).accepted
    for round_ in (1, 2):
        replies = vault.answer(job_id(spec), round_, task([1, 2], round_))
        assert isinstance(replies, Replies)
        assert list(replies.declined) == ([] if round_ == 1 else [2])
    ledger.close()


def test_clients_rows_are_first_read_when_a_charge_is_durable(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How long a factorisation takes follows from how many rows clients have; proposals are free.
    spec = job_to_bytes(job_of(federation))
    vault, ledger = vault_of(federation, "host-1")
    spent_when_read: list[int] = []
    real = prox.factorise

    def factorise(clients: Any, spec: AdmmSpec) -> Any:
        spent_when_read.append(ledger.head.spent)
        return real(clients, spec)

    monkeypatch.setattr(prox, "factorise", factorise)
    assert vault.consider(spec).accepted
    assert not spent_when_read
    for round_ in (1, 2):
        vault.answer(job_id(spec), round_, task([1, 2], round_))
    assert spent_when_read == [2 * PRICE]  # once, when both had paid
    ledger.close()


def test_a_full_disk_is_told_to_the_coordinator_without_where_or_how_full(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, ledger = vault_of(federation, "host-1")
    monkeypatch.setattr("colonnade.ledger.storage.sqlite.RESERVE_BYTES", 2**62)
    decision = vault.consider(job_to_bytes(job_of(federation)))
    assert not decision.accepted
    assert decision.code == "low_disk"
    assert str(federation.folder) not in decision.message
    assert not any(character.isdigit() for character in decision.message)
    ledger.close()


def test_who_the_clients_are_is_for_their_host_alone_to_read(federation: Federation) -> None:
    path = federation.folder / "host-1" / "data" / CLIENTS_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_divided_table_serves_jobs_over_clients_only(federation: Federation) -> None:
    vault, ledger = vault_of(federation, "host-1")
    with open_dataset(federation.folder / "host-1" / "data") as dataset:
        with pytest.raises(BadInput, match="clients"):
            buy_bounds(dataset, ledger, Gate(ledger, OsNoise()), units=PRICE, label=True)
        with pytest.raises(BadInput, match="clients"):
            party_table(dataset, ledger, declared=True)
    job = job_of(federation)
    method = job.method
    assert isinstance(method, AdmmJobSpec)
    with pytest.raises(PolicyRefused, match="clients"):
        vault._over_columns.check_table(_vertical(job))
    ledger.close()


def _vertical(job: Job) -> Job:
    from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec

    members = tuple(replace(member, clients=0) for member in job.members)
    blocks = tuple(Block(each.party, each.features, 1.0, 1, True) for each in members)
    method = FrankWolfeSpec(
        n_rows=72,
        blocks=blocks,
        rounds=1,
        sketch_dim=8,
        sketch_entries=1,
        select_units=PRICE,
        share_units=PRICE,
        label_units=0,
        mean_units=PRICE,
    )
    return replace(job, members=members, method=method)


def test_clients_of_another_table_are_refused(federation: Federation) -> None:
    path = federation.folder / "host-1" / "data" / CLIENTS_NAME
    facts = json.loads(path.read_text())
    config = load_config(federation.party_config("host-1"))
    table = Table.open(config.data / COARSE_NAME)
    for change in (
        {"dataset": "00"},
        {"counts": [1]},
        {"counts": [0, *facts["counts"][1:]]},
        {"names": ["x"] * 12},
        {"names": None},
    ):
        path.write_text(json.dumps(facts | change))
        with pytest.raises(BadInput, match=r"another|damaged"):
            open_dataset(config.data)
        with pytest.raises(BadInput, match=r"another|damaged"):
            read_clients(config.data, table.header)
    path.unlink()
    with pytest.raises(BadInput, match="missing"):  # the table itself says that it is divided
        open_dataset(config.data)


SOURCE = "device,x,y\nb,1,0\na,2,1\nb,3,0\n,4,1\n"
SCHEMA = """
client = "device"
[[feature]]
name = "x"
low = 0
high = 9
[label]
name = "y"
low = 0
high = 1
"""


def test_rows_are_brought_together_by_client(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(SOURCE.replace(",4,1\n", "a,4,1\n"))
    ingest(parse_schema(SCHEMA, origin="s"), FileSource(tmp_path / "s.csv"), out=tmp_path / "data")
    table = Table.open(tmp_path / "data" / COARSE_NAME)
    clients = read_clients(tmp_path / "data", table.header)
    assert clients is not None
    assert clients == TableClients.of(("a", "b"), (2, 2))
    assert np.argsort(np.argsort(table.columns[0])).tolist() == [1, 3, 0, 2]  # 2, 4, 1, 3


def test_an_interrupted_ingest_of_a_whole_table_leaves_the_divided_one_divided(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = federation.folder / "host-1"
    text = (home / "schema.toml").read_text()
    whole = parse_schema(text.replace('client = "simulated client"', ""), origin="schema")
    assert whole.client is None
    assert parse_schema(text, origin="schema").client is not None

    def stop(writer: TableWriter) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TableWriter, "publish", stop)
    with pytest.raises(KeyboardInterrupt):
        ingest(whole, FileSource(home / "table.parquet"), out=home / "data")
    monkeypatch.undo()
    vault, ledger = vault_of(federation, "host-1")
    assert vault.hello().offer.population == 12
    ledger.close()


def test_a_ledger_that_paid_for_clients_pays_for_no_whole_table(federation: Federation) -> None:
    spec = job_to_bytes(job_of(federation))
    home = federation.folder / "host-1"
    vault, ledger = vault_of(federation, "host-1")
    vault.consider(spec)
    vault.answer(job_id(spec), 1, task([3]))
    vault._dataset.close()
    text = (home / "schema.toml").read_text().replace('client = "simulated client"', "")
    whole = parse_schema(text, origin="schema")
    assert whole.client is None
    ingest(whole, FileSource(home / "table.parquet"), out=home / "data")
    with open_dataset(home / "data") as dataset:
        with pytest.raises(BadInput, match="paid"):
            buy_bounds(dataset, ledger, Gate(ledger, OsNoise()), units=PRICE, label=False)
        with pytest.raises(BadInput, match="paid"):
            claim(rows_of(dataset), ledger)
    ledger.close()
    config = str(federation.party_config("host-1"))
    assert main(["party", "bind", "--config", config, "--reason", "why", "--force"]) == 3


def test_rows_without_a_client_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(SOURCE)
    with pytest.raises(BadInput, match=r"'device'.*row 4"):
        ingest(parse_schema(SCHEMA, origin="s"), FileSource(tmp_path / "s.csv"), out=tmp_path / "d")


# -- processes -----------------------------------------------------------------------------------


def finish(client: Client, name: str) -> dict[str, Any]:
    client.wait(name)
    return client.report(name).document


def test_hosts_and_coordinator_killed_amid_a_job_lose_nothing_and_pay_once(
    federation: Federation,
) -> None:
    spec = spec_of(rounds=30, participations=8, sampled=6)
    with Processes(federation, federation.folder / "logs") as processes:
        with processes.client() as client:
            offers = processes.wait_for_parties(client)
            job = built(spec, offers)
            name = client.submit(job)
            for view in client.watch(name):
                if view.rounds_done >= 3:
                    break
        kill_and_restart(processes, "host-2", "coordinator", "host-1")
        with processes.client() as client:
            report = finish(client, name)
    cost = spec.mechanism.cost
    answered = report["clients"]["answers_by_client"]
    for party in federation.parties:
        ledger = open_ledger(federation.ledger(party))
        table = Table.open(federation.folder / party / "data" / COARSE_NAME)
        clients = read_clients(federation.folder / party / "data", table.header)
        assert clients is not None
        spent = [ledger.budget(account).spent for account in clients.accounts(ledger)]
        keys = list(ledger.state.charges)
        assert len({(key.account, key.round) for key in keys}) == len(keys)
        # A client may have paid for an answer that was on its way when the job ended, no more.
        for paid, count in zip(spent, answered[party], strict=True):
            assert count * cost <= paid <= (count + 1) * cost
        ledger.close()
    uplink = report["uplink"]
    assert uplink["payload_bytes"] == uplink["predicted_bytes"]
    assert uplink["payload_bytes"] == sum(map(sum, answered.values())) * spec.body_bytes


def test_a_host_that_dies_for_good_does_not_stop_the_job(running: Processes) -> None:
    spec = spec_of(rounds=4, sampled=12, minimum=3, participations=4)
    with running.client() as client:
        offers = running.wait_for_parties(client)
        name = client.submit(built(spec, offers, round_timeout_s=1))
        for view in client.watch(name):
            if view.rounds_done >= 1:
                break
        victim = running.process("host-2")
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        report = finish(client, name)
        running.start_party("host-2")
        running.wait_for_parties(client)
    assert report["rounds"]["done"] == 4
    assert report["model"]["features"][0]["coef_scaled"] != 0.0


def test_the_hosts_own_log_has_every_client_round_and_kind(running: Processes) -> None:
    spec = spec_of(rounds=4, sampled=8, participations=4)
    with running.client() as client:
        offers = running.wait_for_parties(client)
        name = client.submit(built(spec, offers))
        report = finish(client, name)
    for party in running.federation.parties:
        lines = read_log(running.federation.party_config(party).with_name("uplink.jsonl"))
        counts = np.zeros(12, int)
        for line in lines:
            if line.job == name and line.kind == DISPLACEMENT:
                assert line.payload_bytes == spec.body_bytes
                counts[line.client] += 1
        assert counts.tolist() == report["clients"]["answers_by_client"][party]


# -- the command ---------------------------------------------------------------------------------


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "colonnade.cli.main", "simulate", "admm", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_one_command_runs_it_under_drop_out_and_prints_what_it_says(tmp_path: Path) -> None:
    out = tmp_path / "run"
    sizes = ("--clients", "60", "--sampled", "20", "--rounds", "8", "--rows-per-client", "10")
    done = command(*sizes, "--features", "4", "--drop-out", "0.1", "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["rounds"] == 8 + 5  # five for the intercept, which ask everybody once
    assert 0 < result["answers"] <= 160 + 60
    assert result["private"]
    local, central = result["privacy"]["local"], result["privacy"]["central"]
    assert local["enforced"] is True
    assert local["median"]["epsilon"] <= local["max"]["epsilon"] <= 8.0 + 1e-9
    assert local["max"]["rho"] > 0.0
    assert central["enforced"] is False
    assert 0.0 < central["epsilon"] < local["max"]["epsilon"]
    quality = result["quality"]
    assert quality["objective_gap"] > 0.0 == quality["nonprivate"]["objective_gap"]
    assert quality["score"] < quality["nonprivate"]["score"]
    assert (quality["rows"], quality["n_rows"]) == ("held-out", 120)  # a fifth as many again
    assert result["uplink"]["payload_bytes"] == result["uplink"]["predicted_bytes"]
    assert {path.name for path in out.iterdir()} == {"model.json", "report.json", "report.html"}
    page = html.unescape((out / "report.html").read_text())
    assert "model-based, not enforced" in page
    for premise in central["premises"]:
        assert premise.split(";")[0] in page


def test_heavy_drop_out_takes_more_drawings_and_every_round_has_its_minimum(
    tmp_path: Path,
) -> None:
    sizes = ("--clients", "40", "--sampled", "20", "--rounds", "3", "--rows-per-client", "10")
    more = ("--features", "3", "--minimum", "15", "--drop-out", "0.5", "--json")
    done = command(*sizes, *more, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["rounds"] == 3 + 5
    counts = result["rounds_by_clients"]
    assert [each["minimum"] for each in counts] == [15] * 3 + [8] * 5
    assert all(each["answers"] >= each["minimum"] for each in counts)
    assert sum(result["answers_by_round"]) == result["answers"]
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    assert any(feature["coef_scaled"] for feature in model["features"])
    # That 15 of 20 are there at once has a chance of 0.021 in each of the first three rounds, and
    # all 8 of 8 of 0.004 in each of the others.
    assert sum(each["drawings"] for each in counts) > len(counts)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--sampled", "0"),
        ("--sampled", "9", "--clients", "8"),
        ("--epsilon", "-1"),
        ("--delta", "2"),
        ("--gamma", "nan"),
        ("--hosts", "99"),
        ("--drop-out", "1"),
        ("--clients", "0"),
        ("--strength", "-1"),
    ],
    ids=" ".join,
)
def test_impossible_wishes_are_refused_in_one_line(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "admm", *arguments]) == 3
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert said.strip().splitlines()[-1].startswith("colonnade: ")


def test_an_operator_submits_a_job_over_the_clients_that_are_attached(
    running: Processes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = running.federation
    with running.client() as client:
        running.wait_for_parties(client)
    where = ("--coordinator", made.address, "--credentials", str(made.operator_credentials))
    options = ("--target", TARGET, "--rounds", "3", "--epsilon", "4", "--loss", "logistic")

    def job(*more: str) -> tuple[int, str, str]:
        return main(["job", "admm", *where, *more]), *capfd.readouterr()

    code, out, err = job(*options, "--dry-run", "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert (facts["method"], facts["rows"]) == ("admm", 24)
    assert facts["joint_max_epsilon"] == pytest.approx(4.0, rel=1e-6)  # of one client
    spec = tmp_path / "job.spec"
    code, out, err = job(*options, "--watch", "--json", "--write-spec", str(spec))
    assert code == 0, err
    assert job_id(spec.read_bytes()) in out
    for wrong in (("--target", "z"), ("--target", TARGET, "--parties", "nobody")):
        code, _, err = job(*wrong)
        assert code == 3
        assert len(err.strip().splitlines()) == 1


def test_the_benchmark_measures_real_processes(tmp_path: Path) -> None:
    from colonnade.bench.admm.figures import write_figures
    from colonnade.bench.admm.scale import ClientsScale, measure

    small = ClientsScale(
        clients=60,
        sampled=40,
        features=5,
        rows_per_client=4,
        rounds=25,
        growth=(20, 60),
        growth_rounds=25,
    )
    result = measure(tmp_path, small)
    assert result["throughput_fraction"] > 0.0
    assert result["clients_10k"]["seconds_per_round"] > 0.0
    assert 50.0 < result["clients_10k"]["peak_rss_mb"] < 2000.0
    assert [row["sampled"] for row in result["growth"]["rows"]] == [20, 60]
    write_figures(result, tmp_path / "figures")
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {"bench.json", "growth.png"}


# -- organizations that are one client each, and hostile coordinators ----------------------------


def test_an_undivided_table_is_one_client_that_pays_from_its_own_cap(tmp_path: Path) -> None:
    sites = [replace(site, clients=None) for site in people(POPULATION).sites]
    whole = found(
        tmp_path / "all", Dealt(tuple(sites), (), None), cap_units=2 * PRICE, drop_out=0.0
    )
    offers = []
    for party in whole.parties:
        table = Table.open(whole.folder / party / "data" / COARSE_NAME)
        bounds = dict(zip(table.names, table.bounds, strict=True))
        label = (TARGET, table.header.columns[-1].bounds)
        fills = dict(zip(table.names, table.fills, strict=True))
        offers.append(PartyOffer(party, True, version_of(table), 72, bounds, fills, label, 1, 0))
    two = spec_of(n_clients=2, sampled=2, minimum=1, rounds=2)
    spec = job_to_bytes(built(two, offers))
    vault, ledger = vault_of(whole, "host-2")
    assert vault.hello().offer.unit == job_pb2.UNIT_RECORD
    assert vault.consider(spec).accepted
    for round_ in (1, 2):
        replies = vault.answer(job_id(spec), round_, task([0], round_))
        assert isinstance(replies, Replies)
        assert list(replies.released) == [0]
        assert ledger.budget().spent == round_ * two.mechanism.cost
    ledger.close()


def test_no_series_of_tasks_makes_a_client_pay_more_than_it_set_aside(
    federation: Federation,
) -> None:
    job = job_of(federation, rounds=6, participations=2)
    spec = job_to_bytes(job)
    vault, ledger = vault_of(federation, "host-1")
    assert vault.consider(spec).accepted
    draw = np.random.default_rng(0)
    bodies: dict[tuple[str, int], bytes] = {}
    for _ in range(300):
        clients = draw.choice(12, int(draw.integers(1, 12)), replace=False)
        rounds = draw.integers(1, 7, clients.size)
        points = draw.integers(-(2**44), 2**44, (clients.size, 4), endpoint=True)
        if draw.random() < 0.5:  # the same question as others had
            points[:] = 0
        body = tasks_to_bytes(ClientTasks(clients, rounds, points))
        replies = vault.answer(job_id(spec), 6, body)
        for released in replies:
            key = (released.key.account, released.key.round)
            assert bodies.setdefault(key, released.body) == released.body  # one draw a key
    accounts = read_accounts(federation, ledger)
    spent = [ledger.budget(account).spent for account in accounts]
    assert max(spent) <= job.max_units("host-1")
    assert min(spent) > 0  # the attack reached everybody
    assert ledger.head.spent == len(bodies) * job.method.spec.mechanism.cost  # type: ignore[attr-defined]
    ledger.close()


def read_accounts(federation: Federation, ledger: Ledger) -> Sequence[str]:
    folder = federation.folder / "host-1" / "data"
    table = Table.open(folder / COARSE_NAME)
    clients = read_clients(folder, table.header)
    assert clients is not None
    return clients.accounts(ledger)
