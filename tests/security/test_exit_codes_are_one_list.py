"""The exit codes are one list in the code; documentation, help and errors agree with it."""

import re
from pathlib import Path

import pytest

from colonnade.cli.main import main
from colonnade.core import errors
from colonnade.core.errors import EXIT_CODES, ColonnadeError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
CLASSES = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ColonnadeError)
]


def test_the_page_has_the_list_word_for_word() -> None:
    table = PAGE.read_text().split("## Exit codes", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", table, re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == dict(EXIT_CODES)
    assert len(rows) == len(EXIT_CODES)


def test_help_has_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == errors.EXIT_OK
    said = " ".join(capsys.readouterr().out.split())
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in said


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_ends_with_a_code_of_the_list_and_is_on_the_page(
    kind: type[ColonnadeError],
) -> None:
    assert kind.exit_code in EXIT_CODES
    table = PAGE.read_text().split("## Error codes", 1)[1]
    assert f"`{kind.code}`" in table


def test_every_constant_has_a_meaning() -> None:
    codes = {
        value
        for name, value in vars(errors).items()
        if re.fullmatch(r"EXIT_[A-Z_]+", name) and isinstance(value, int)
    }
    assert codes - {errors.EXIT_SIGNAL} <= EXIT_CODES.keys()
