"""The documentation says what the code does: it builds, and its commands, files and codes exist."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from colonnade.cli.parser import WrongUsage, find, load

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
READ = [*PAGES, *ROOT.glob("*.md"), *(ROOT / "deploy").rglob("*.md")]
READ.remove(ROOT / "CHANGELOG.md")  # it speaks of the past too
FOLDERS = ("proto", "common", "server", "party", "sim", "bench", "tests", "examples", "deploy")
SOURCES = [str(file.relative_to(ROOT)) for part in FOLDERS for file in (ROOT / part).rglob("*.py")]
FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# A module, or what is in it, as docstrings and comments name it; doubled quotes are for code.
NAMED = re.compile(r"(?<!`)`(?:colonnade\.)?([a-z_]+\.[\w.]+)`(?!`)")
# What looks like an author and a year and is none.
NO_WORKS = {("CRYPTO", "2023"), ("May", "2027"), ("Print", "2023")}
# What comes before the command in containers.
CONTAINER = re.compile(r"^docker compose (?:run|exec)(?: -\S+(?: COLONNADE_\w+)?)* ")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def in_blocks(text: str) -> Iterator[str]:
    """Yield the calls of ``colonnade`` in the shell blocks of a page."""
    for language, body in FENCE.findall(text):
        if language == "sh":
            for line in body.replace("\\\n", " ").splitlines():
                line = re.sub(r'"\$\(.*?\)"', "SUBSTITUTED", line.strip())
                call = CONTAINER.sub("", line).replace("colonnade colonnade", "colonnade")
                if call.startswith("colonnade "):
                    yield re.split(r" [|>&#]", call)[0].strip()


def in_text(text: str) -> Iterator[str]:
    """Yield the calls in the code spans of a page, which may leave arguments out."""
    yield from re.findall(r"(?<!`)`(colonnade [a-z][^`\n]*)`(?!`)", FENCE.sub("", text))


BLOCKS = sorted({(name(path), call) for path in READ for call in in_blocks(path.read_text())})
SPANS = sorted({(name(path), call) for path in READ for call in in_text(path.read_text())})


def refusal(call: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return why the command line refuses a call, or nothing."""
    try:
        found = find(shlex.split(call)[1:])
        if found.command.module:
            load(found)[1].parse_args(found.rest)
        elif found.rest and not found.wants_help and found.rest != ("--version",):
            return f"{found.prog} takes a verb"
    except WrongUsage as error:
        return str(error)
    except SystemExit:  # of --help
        capsys.readouterr()
    return ""


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"NO_MKDOCS_2_WARNING": "1", "PATH": ""},
    )
    assert build.returncode == 0, build.stderr
    pages = [path for path in tmp_path.rglob("*.html") if path.name != "404.html"]
    assert len(pages) >= len(PAGES)
    text = {path.name: path.read_text() for path in pages}
    # What is generated is there, and formulas are not left as source.
    assert "colonnade party ingest" in text["command-line.html"]
    assert "answer_grid_ms" in text["configuration.html"]
    assert "<math" in text["moments.html"]
    assert "PrivateRidge" in text["python.html"]
    assert "frailty" in text["three-organizations.html"]
    for page, html in text.items():
        assert not re.search(r'(src|<link[^>]*href)="(https?:)?//', html), page
        assert "<!-- generated" not in html, page
        assert not re.search(r"--8\s*&lt;", html), page  # an included part
        assert 'class="arithmatex"' not in html, page


def test_make_builds_strictly_and_sees_warnings() -> None:
    (line,) = [
        line for line in (ROOT / "Makefile").read_text().splitlines() if "mkdocs build" in line
    ]
    options = line.split("#")[0].split()
    assert "--strict" in options
    assert "--quiet" not in options  # warnings that are not logged do not count


def test_the_commands_are_found() -> None:
    assert len({page for page, _ in BLOCKS}) > 10
    assert len(BLOCKS) > 50
    assert len(SPANS) > 20


@pytest.mark.parametrize(("page", "call"), BLOCKS, ids=lambda each: str(each)[:70])
def test_every_command_of_a_block_parses(
    page: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(call, capsys) == ""


@pytest.mark.parametrize(("page", "call"), SPANS, ids=lambda each: str(each)[:70])
def test_every_command_of_the_text_exists(
    page: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    why = refusal(call, capsys)
    assert "unrecognized" not in why
    assert "invalid choice" not in why


@pytest.mark.parametrize("path", READ, ids=name)
def test_every_source_file_that_is_named_exists(path: Path) -> None:
    text = FENCE.sub("", path.read_text())
    for file in re.findall(r"`([\w./-]+\.py)`", text):
        assert any(each == file or each.endswith("/" + file) for each in SOURCES), file


def test_every_module_that_a_docstring_or_comment_names_exists() -> None:
    shipped = [Path(file) for file in SOURCES if file.split("/")[1] == "colonnade"]
    modules = {".".join(file.with_suffix("").parts[2:]) for file in shipped}
    modules |= {".".join(file.parts[2:-1]) for file in shipped}
    packages = {each.split(".")[0] for each in modules}
    astray = []
    for file in shipped:
        for named in NAMED.findall((ROOT / file).read_text()):
            first, *rest = named.split(".")
            starts = [".".join([first, *rest[:count]]) for count in range(1, len(rest) + 1)]
            if first in packages and not any(each in modules for each in starts):
                astray.append(f"{file}: {named}")
    assert astray == []


@pytest.mark.parametrize("path", [*ROOT.glob("*.md"), *(ROOT / "deploy").rglob("*.md")], ids=name)
def test_links_outside_the_site_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (folder / "index.md").read_text()))
    assert linked == {page.name for page in folder.glob("*.md")} - {"index.md"}


def test_every_work_that_is_cited_is_listed() -> None:
    page = (ROOT / "docs" / "concepts" / "references.md").read_text()
    listed = {
        (name, year)
        for names, year in re.findall(r"^- (.*?) \((\d{4})\)", page, re.MULTILINE)
        for name in re.findall(r"[\w-]+", names)
    }
    # One name, two, three or "et al.", and the year, with or without brackets.
    cited = re.compile(
        r"([A-Z][\w-]+)(?:,? [A-Z][\w-]+)*(?: and [A-Z][\w-]+| et al\.)?,? \(?((?:19|20)\d\d)\b"
    )
    lacking, found = set(), 0
    code = [ROOT / file for file in SOURCES if file.split("/")[1] == "colonnade"]
    for path in [*code, *PAGES]:
        text = re.sub(r"\s+", " ", path.read_text())
        for work in cited.findall(text):
            found += work in listed
            lacking |= {work} - listed
    assert found > 100
    assert lacking <= NO_WORKS


def test_every_protocol_file_is_shown() -> None:
    page = (ROOT / "docs" / "reference" / "wire.md").read_text()
    files = [name(path) for path in (ROOT / "proto").rglob("*.proto")]
    assert files
    assert [file for file in files if f'"{file}"' not in page] == []


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text()
    assert 300 < len(text.split()) <= 700
    for term in ("vertical federated learning", "record-level", "threat model"):
        assert term in text.lower()


def test_every_error_code_is_in_the_reference() -> None:
    shipped = (file for file in SOURCES if file.startswith(("common", "server", "party", "sim")))
    found = (
        re.findall(r'^    code = "(\w+)"$', (ROOT / file).read_text(), re.MULTILINE)
        for file in shipped
    )
    codes = {code for each in found for code in each}
    assert len(codes) > 30
    page = (ROOT / "docs/reference/errors.md").read_text()
    assert not {code for code in codes if f"`{code}`" not in page}


def test_every_row_of_a_table_has_the_cells_of_its_header() -> None:
    # A row that was pasted from another table has another number of cells.
    ragged = []
    for page in READ:
        width, fenced = 0, False
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            fenced ^= line.lstrip().startswith("```")
            if fenced or not line.lstrip().startswith("|"):
                width = 0
                continue
            cells = re.sub(r"`[^`]*`|\\\|", "", line).count("|")
            width = width or cells
            if cells != width:
                ragged.append(f"{page.name}:{number}")
    assert ragged == []
