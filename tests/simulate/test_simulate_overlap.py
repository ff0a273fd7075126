"""``colonnade simulate --overlap``: align, ingest and fit, with real processes."""

import json
from pathlib import Path

import pytest

from colonnade.cli.main import main
from colonnade.ledger.create import open_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.membership import MEMBERSHIP


@pytest.mark.slow
@pytest.mark.usefixtures("fork_server")
def test_parties_with_half_of_the_people_each_are_aligned_and_fitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [
        "simulate",
        "--rows",
        "600",
        "--features",
        "6",
        "--overlap",
        "0.5",
        "--seed",
        "3",
        "--json",
    ]
    keep = tmp_path / "kept"
    assert main([*line, "--out", str(tmp_path / "run"), "--keep", str(keep)]) == 0
    result = json.loads(capsys.readouterr().out)
    found = result["alignment"]
    assert found["payload_bytes"] == found["predicted_bytes"] > 0
    # 525 of 600 people are at one of three parties at least, and every of 7 patterns has between
    # 0 and 90 dummies; 3 pairs have 64 canaries; phantoms are between 0 and 180.
    assert 450 + 192 < found["kept"] < 600 + 192 + 7 * 90 + 180
    assert {len(each["parties"]) for each in found["overlap"]} == {1, 2, 3}
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    pairs = {tuple(each["parties"]): each["people"] for each in report["moments"]["overlap"]}
    told = {tuple(e["parties"]): e["people"] for e in found["overlap"] if len(e["parties"]) == 2}
    assert pairs == told
    assert result["uplink"]["payload_bytes"] == result["uplink"]["predicted_bytes"]
    names = [each["party"] for each in result["privacy"]["parties"]]
    assert len(names) == 3
    for name in names:
        ledger = open_ledger(LedgerFiles(keep / name / "ledger"))
        assert ledger.budget(MEMBERSHIP).remaining == 0  # one run, paid once
        assert ledger.budget().spent > 0
        ledger.close()
        assert len(list((keep / name / "alignments").glob("*.alignment"))) == 1
        assert not list((keep / name / "alignments").glob("*.state"))


def test_a_part_that_leaves_nobody_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["simulate", "--rows", "100", "--overlap", "0.01", "--out", str(tmp_path / "run")]
    assert main(line) == 3
    said = capsys.readouterr().err
    assert "--overlap" in said
    assert "aligning" not in said
