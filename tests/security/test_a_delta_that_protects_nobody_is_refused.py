"""A delta above one in n, with which rows could be published as they are, is refused everywhere."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.desk import Desk
from support.federation import NAMES, founded, make_job
from support.ledgers import spending
from support.vaults import ledger_of, vault_of

from colonnade.cli.main import main
from colonnade.core.errors import EXIT_BAD_INPUT, EXIT_OK, BadInput
from colonnade.estimators import PrivateRidge
from colonnade.ledger.create import open_ledger
from colonnade.ledger.state import Head
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.policy_file import TEMPLATE, load_policy
from colonnade.privacy.accounting import default_delta, delta_for, units_down
from colonnade.v1 import job_pb2
from colonnade.wire.jobspec import job_to_bytes


@pytest.mark.parametrize(
    ("delta", "n_rows"),
    [
        (0.999, None),
        (1.001e-3, None),  # nobody knows how many rows
        (1.001e-3, 10),  # nor do few rows allow more
        (1.001e-4, 10**4),
        (1e-6, 10**6 + 1),
        (0.0, None),
        (-1e-9, 100),
        (float("nan"), 100),
        (float("inf"), None),
    ],
)
def test_such_a_delta_is_refused(delta: float, n_rows: int | None) -> None:
    with pytest.raises(ValueError, match="delta"):
        delta_for(delta, n_rows)


@pytest.mark.parametrize("n_rows", [None, 1, 999, 10**4, 10**9])
def test_one_in_n_is_the_most_and_the_default_lies_far_below(n_rows: int | None) -> None:
    most = 1e-3 if n_rows is None else min(1e-3, 1 / n_rows)
    assert delta_for(most, n_rows) == most
    assert delta_for(None, n_rows) == default_delta(n_rows) <= most / 10


LEDGER = ["party", "init", "--ledger", "made", "--name", "hospital"]
FIT = ["--epsilon", "1", "--out", "out"]
COMMANDS = {
    "init": [*LEDGER, "--epsilon", "1"],
    "init by rho": [*LEDGER, "--rho", "1"],
    "cap": ["ledger", "cap", "ledger", "--epsilon", "1", "--reason", "x"],
    "show": ["ledger", "show", "ledger"],
    "verify": ["ledger", "verify", "ledger"],
    "simulate": ["simulate", "--rows", "2000", "--epsilon", "1", "--out", "out"],
    "simulate admm": ["simulate", "admm", "--clients", "20", "--out", "out"],
    "plan": ["plan", "--rows", "2000", "--epsilon", "1", "--quick"],
    "fit": ["fit", "--data", "people.csv", "--schema", "schema.toml", *FIT],
    "charged fit": ["fit", "--data", "data", *FIT, "--ledger", "ledger"],
    "party fit": ["party", "fit", "--data", "data", "--ledger", "ledger", *FIT],
    "party bounds": ["party", "bounds", "--data", "data", "--ledger", "ledger", "--epsilon", "1"],
}
N_ROWS = 2000


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make what the commands need, and go there."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{value:.3f},{value / 2:.3f}" for value in np.linspace(0.0, 1.0, N_ROWS)]
    Path("people.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    bounds = "low = 0.0\nhigh = 1.0\n"
    Path("schema.toml").write_text(f"[[feature]]\nname='x'\n{bounds}[label]\nname='y'\n{bounds}")
    ingest = ["party", "ingest", "people.csv", "--schema", "schema.toml", "--out", "data"]
    assert main([*ingest, "--json"]) == EXIT_OK
    made = ["party", "init", "--ledger", "ledger", "--name", "hospital", "--epsilon", "1"]
    assert main(made) == EXIT_OK
    return tmp_path


def head(home: Path) -> Head:
    ledger = open_ledger(LedgerFiles(home / "ledger"))
    ledger.close()
    return ledger.head


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_refuses_it_and_leaves_nothing(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = head(home)
    capsys.readouterr()
    # Where rows are known, one in 2000 is the most; where they are not, one in 1000.
    rows = name in ("simulate", "plan", "fit", "charged fit", "party fit", "party bounds")
    for delta in ("0.999", "0.00051" if rows else "0.0011"):
        assert main([*COMMANDS[name], "--delta", delta]) == EXIT_BAD_INPUT
        said = capsys.readouterr()
        assert "delta must lie above 0 and not above" in said.err
        assert len(said.err.splitlines()) == 1
    assert head(home) == before
    assert not (home / "made").exists()
    assert not (home / "out" / "model.json").exists()


def test_a_larger_delta_than_usual_is_told_at_the_usual_one(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home.is_dir()
    assert main([*LEDGER, "--epsilon", "1", "--delta", "1e-3"]) == EXIT_OK
    assert "epsilon 1 at delta 0.001, which is epsilon 1.615 at delta 1e-06" in (
        capsys.readouterr().out
    )


def test_a_policy_with_such_a_delta_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(TEMPLATE)
    load_policy(path)
    path.write_text(TEMPLATE.replace("delta = 1e-6", "delta = 0.999"))
    with pytest.raises(BadInput, match="delta"):
        load_policy(path)


def test_a_job_with_such_a_delta_is_none() -> None:
    job = make_job(founded(), NAMES[:2])
    with pytest.raises(ValueError, match="delta"):
        replace(job, delta=0.999)
    spec = job_pb2.JobSpec.FromString(job_to_bytes(job))
    spec.delta = 0.999
    ledger = ledger_of(units_down(2.0))
    before = spending(ledger)
    decision = vault_of(ledger).consider(spec.SerializeToString())
    assert (decision.accepted, decision.code) == (False, "bad_message")
    assert spending(ledger) == before
    desk = Desk(*NAMES[:2])
    hostile = spec.SerializeToString()
    desk.refused(BadInput, "delta must lie", desk.engine.submit, hostile, "operator")


def test_an_estimator_with_such_a_delta_does_not_fit() -> None:
    X, y = np.linspace(0.0, 1.0, 4000).reshape(2000, 2), np.linspace(0.0, 1.0, 2000)
    model = PrivateRidge(epsilon=1.0, bounds=(0.0, 1.0), y_bounds=(0.0, 1.0))
    assert model.fit(X, y).privacy_.delta == 1e-6
    for delta in (0.999, 0.00051):
        with pytest.raises(ValueError, match="2000"):
            model.set_params(delta=delta).fit(X, y)
