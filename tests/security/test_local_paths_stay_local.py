"""A coordinator is told why it is refused and nothing of a party's files."""

import ast
import asyncio
import datetime as dt
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.federation import CAP, founded, make_job
from support.vaults import HUB, ME, ledger_of

from colonnade.core import errors
from colonnade.core.errors import FATAL, ColonnadeError
from colonnade.core.fixedpoint import Bounds
from colonnade.data.table import COARSE_NAME, FINE_NAME
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.job import Job
from colonnade.party.data import columns as versions
from colonnade.party.data.dataset import open_dataset
from colonnade.party.policy_file import load_policy
from colonnade.party.vault import session
from colonnade.party.vault.pacing import Pace
from colonnade.party.vault.vault import Vault
from colonnade.privacy.simulation import SeededNoise
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.jobspec import job_to_bytes

MARK = "where-the-secrets-are"
ROOT = Path(errors.__file__).parents[3]

# Messages of these are told to peers. Whoever adds one sees to it that they name nothing local.
PUBLIC = {
    *(
        "AwaitingApproval",
        "BadMessage",
        "BudgetExceeded",
        "RequestConflict",
        "ReleasePurged",
        "JobClosed",
    ),
    *("NotPrivate", "PolicyRefused", "NotEnrolled", "StaleEpoch", "UnknownJob", "JobEnded"),
}
KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ColonnadeError)
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a copy of a party's folder, under a name that must not get out."""
    return Path(shutil.copytree(founded().folder / ME, tmp_path / MARK / "home"))


def vault_at(home: Path) -> Vault:
    return Vault(
        open_dataset(home / "data"),
        ledger_of(CAP),
        SeededNoise(1),
        policy=load_policy(home / "policy.toml"),
        coordinator=HUB,
        today=lambda: dt.date(2026, 1, 1),
    )


def tight_job() -> Job:
    """Return a job whose bounds differ from the table's, so that columns have to be made."""
    job = make_job(founded(), [ME])
    (member,) = job.members
    bounds = tuple(Bounds(each.low / 2, each.high / 2) for each in member.bounds)
    return replace(job, members=(replace(member, bounds=bounds),))


def raising(error: BaseException) -> Callable[..., Any]:
    def fault(*_: object, **__: object) -> Any:
        raise error

    return fault


# -- by class ------------------------------------------------------------------------------------


def test_the_classes_whose_messages_are_told_are_these() -> None:
    assert {kind.__name__ for kind in KINDS if kind.public} == PUBLIC


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in FATAL])
def test_of_any_other_error_a_coordinator_hears_the_code_and_one_sentence(
    kind: type[ColonnadeError], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = kind(f"/srv/{MARK}/data: something of this site")
    made = vault_at(home)
    monkeypatch.setattr(made, "_admit", raising(error))
    decision = made.consider(job_to_bytes(make_job(founded(), [ME])))
    sent = sent_for(error)
    for message in (decision, *sent):
        assert (MARK.encode() in message.SerializeToString()) == kind.public
    assert decision.code == kind.code
    if not isinstance(error, errors.LowDisk):  # then it waits for room
        (refusal,) = sent
        assert refusal.refusal.code == kind.code


def sent_for(error: ColonnadeError) -> list[pb.AttachRequest]:
    """Return what a session sends when an answer fails."""
    sent: list[pb.AttachRequest] = []

    class Wire:
        async def write(self, message: pb.AttachRequest) -> None:
            sent.append(message)

    class Silent:
        answer = staticmethod(raising(error))

        def note(self, _: object) -> None:
            return

    if not isinstance(error, errors.LowDisk):
        each = session._Session(Wire(), Silent(), Silent(), Pace(0.0), None)  # type: ignore[arg-type]
        asyncio.run(each._answer(pb.Task(job_id="job", round=3)))
    return sent


# -- by what can go wrong ------------------------------------------------------------------------


def _gone(home: Path, _: pytest.MonkeyPatch) -> None:
    (home / "data" / FINE_NAME).unlink()


def _damaged(home: Path, _: pytest.MonkeyPatch) -> None:
    for name in (COARSE_NAME, FINE_NAME):
        path = home / "data" / name
        path.write_bytes(b"no table")


def _swapped(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = errors.BadInput(f"/{MARK}/data: swapped")
    monkeypatch.setattr(versions.ColumnCache, "of_job", raising(error))


FAULTS = {_gone: "dataset_changed", _damaged: "dataset_changed", _swapped: "bad_input"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_of_a_partys_own_files_names_none_of_them(
    fault: Callable[[Path, pytest.MonkeyPatch], None],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = vault_at(home)
    fault(home, monkeypatch)
    decision = made.consider(job_to_bytes(tight_job()))
    assert not decision.accepted
    assert decision.code == FAULTS[fault]
    assert MARK.encode() not in decision.SerializeToString()
    assert "log says more" in decision.message
    assert MARK in caplog.text  # it does


def test_without_a_fault_the_same_job_is_accepted(home: Path) -> None:
    assert vault_at(home).consider(job_to_bytes(tight_job())).accepted


def test_a_refusal_does_not_tell_which_hidden_columns_exist(home: Path) -> None:
    policy = home / "policy.toml"
    text = policy.read_text()
    policy.write_text(text.replace('features = ["*"]', 'features = ["x0", "x1"]'))
    made, job = vault_at(home), make_job(founded(), [ME])
    assert isinstance(job.method, FrankWolfeSpec)
    (member,), (block,) = job.members, job.method.blocks
    told = []
    for name in ("x2", "income"):  # the table has the first and not the second
        names = ("x0", "x1", name)
        method = replace(job.method, blocks=(replace(block, features=names),))
        asked = replace(job, members=(replace(member, features=names),), method=method)
        decision = made.consider(job_to_bytes(asked))
        told.append((decision.code, decision.message.replace(name, "it")))
    assert told == [("policy_refused", "feature 'it' may not take part")] * 2


# -- by what is written --------------------------------------------------------------------------

_LOCAL = re.compile(r"path|folder|director|\bfiles?\b|\b_data\b|home|origin", re.IGNORECASE)


def test_no_public_message_is_made_of_a_path() -> None:
    """Look at every place where a public error is raised, for what is put into its message."""
    looked, found = 0, []
    for source in (*ROOT.glob("common/**/*.py"), *ROOT.glob("party/**/*.py")):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            call = node.exc if isinstance(node, ast.Raise) else None
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                continue
            if call.func.id not in PUBLIC:
                continue
            looked += 1
            inserted = [n for n in ast.walk(call) if isinstance(n, ast.FormattedValue)]
            texts = [ast.unparse(each.value) for each in inserted]
            found += [f"{source}:{call.lineno} {text}" for text in texts if _LOCAL.search(text)]
    assert looked > 60
    assert found == []
