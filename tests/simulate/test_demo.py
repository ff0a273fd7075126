"""The whole story in one command, with real processes."""

import json
from pathlib import Path

import pytest

from colonnade.cli.main import main
from colonnade.client import JobReport
from colonnade.core.errors import EXIT_BAD_INPUT, EXIT_OK
from colonnade.simulate.demo.story import Story
from colonnade.simulate.demo.tables import BOUNDS, PARTIES, make_people, write_tables


def test_the_files_are_messy_each_in_its_own_way(tmp_path: Path) -> None:
    people = make_people(60, seed=1)
    listed = write_tables(tmp_path, people, seed=1)
    assert [len(listed[party]) for party in PARTIES] == [40, 40, 40]
    assert set(listed["hospital"]) != set(listed["insurer"])
    assert (tmp_path / "insurer.csv").read_bytes().startswith(b"\xff\xfe")
    hospital = (tmp_path / "hospital.csv").read_text("utf-8-sig").splitlines()
    assert hospital[0] == "patient;born;ward;glucose;readmitted"
    assert any(";;" in line for line in hospital)  # blanks
    assert "glucose" in BOUNDS


@pytest.mark.slow
def test_the_story_ends_in_scores_that_are_better_than_chance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs"
    (out / "of-before").mkdir(parents=True)
    command = ["demo", "--people", "3000", "--epsilon", "20", "--out", str(out), "--json"]
    assert main(command) == EXIT_OK
    found = json.loads(capsys.readouterr().out)
    assert found["payload_bytes"] == found["predicted_bytes"] > 0
    assert 3000 <= found["alignment"]["rows"] < 4000
    assert 0.0 < found["epsilon"] <= 20.0
    assert found["prediction"]["rows"] == 300
    # Scores of the wrong people have an AUC of .5, with a deviation of .035 for 300 people of whom
    # .36 are positive (Hanley and McNeil 1982). Without noise a logistic fit of these columns gives
    # .89 for people whom all have, and .77 for these, of whom a third is absent at the laboratory,
    # a third at the insurer, and counts there as the middle of the bounds. With noise less: .62 to
    # .82 in 25 runs of 9000 people at epsilon 4, .70 to .77 in 3 of 3000 at epsilon 20.
    assert found["prediction"]["auc"] > 0.55
    assert (Path(found["folder"]) / "report.html").stat().st_size > 10_000
    assert {each.name for each in out.iterdir()} == {"of-before", Path(found["folder"]).name}
    told = found["evaluation"]
    assert abs(told["value"] - found["prediction"]["auc"]) < 0.1 + 4.0 * told["error"]


def test_numbers_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    for option in (["--people", "10"], ["--epsilon", "0"], ["--seed", "-1"]):
        assert main(["demo", *option, "--out", str(tmp_path)]) == EXIT_BAD_INPUT


def test_nobody_is_scored_by_a_model_that_would_show_one_organizations_part(tmp_path: Path) -> None:
    said = list[str]()
    story = Story(tmp_path, 4.0, 1500, 0, lambda head, _: said.append(head), tmp_path)

    def report(*used: str) -> JobReport:
        features = [{"party": party, "coef_scaled": int(party in used)} for party in PARTIES]
        return JobReport({"model": {"features": features}})

    assert story.hides_parts(report("hospital", "laboratory", "insurer"))
    assert story.hides_parts(report("hospital"))  # nothing of anybody else's is in a score
    assert not said
    assert not story.hides_parts(report("hospital", "insurer"))
    assert said == ["Nobody is scored"]
