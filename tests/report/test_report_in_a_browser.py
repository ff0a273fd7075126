"""The report as people meet it: Chromium, wide and narrow, light and dark, by hand and by ear."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from support.browser import CHROMIUM, Browser, browser
from support.clients import ClientDesk, admm_job
from support.reports import HOSTILE, QUALITY, make_fit, make_moments, make_report

from colonnade.report import to_html
from colonnade.server.engine.progress import find_job, run_of
from colonnade.server.results import report_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

AXE = Path(os.environ.get("COLONNADE_AXE", "absent"))
LONG = "a_column_whose_name_goes_on_and_on_without_any_space_until_it_is_far_too_wide_" * 2


def clients_report() -> dict[str, Any]:
    desk = ClientDesk({"gateway": 6, "lab": 1})
    name = desk.run(admm_job({"gateway": 6, "lab": 1}, sampled=4, rounds=3))
    run = run_of(desk.engine, desk.store, find_job(desk.engine, desk.store, name))
    report = report_of(desk.engine, desk.store, run)
    desk.store.close()
    found: dict[str, Any] = json.loads(json.dumps(report))
    return found


def moments_report() -> dict[str, Any]:
    moments = make_moments()
    found = moments["intervals"]
    found["low"] = [each - 0.1 for each in found["coef"]]
    found["high"] = [each + 0.1 for each in found["coef"]]
    return make_report(method="moments", moments=moments, quality=QUALITY, rounds=3)


def held_out_report() -> dict[str, Any]:
    """Return a report with all that may be known: evaluation and contributions too."""
    groups = [
        {"predicted": 2.0 + each, "observed": 2.1 + each, "error": 0.05} for each in range(10)
    ]
    evaluation = {"metric": "r2", "value": 0.78, "error": 0.012, "epsilon": 0.1, "n_rows": 10_000}
    parties = ("hospital", "laboratory", "insurer")
    return moments_report() | {
        "evaluation": evaluation | {"calibration": groups},
        "contribution": {
            party: {"alone": 0.3, "without": 0.5, "alone_error": 0.04} for party in parties
        },
    }


REPORTS: dict[str, Callable[[], dict[str, Any]]] = {
    "frank-wolfe": lambda: make_report(quality=QUALITY, bounds=7),
    "moments": moments_report,
    "clients": clients_report,
    "fit": make_fit,
    "held-out": held_out_report,
    "failed": lambda: make_report(done=0, state="failed", reason="a party withdrew"),
    "not-private": lambda: make_report(private=False, quality=QUALITY, done=2, state="running"),
    "crowd": lambda: make_report(
        parties=[f"{LONG}{each}" for each in range(9)], feature=LONG, name=LONG, rounds=90
    ),
    "hostile": lambda: make_report(
        parties=[HOSTILE, "<i>", "'\">"],
        feature="<img src=x onerror=document.hacked=1>",
        name="</script><script>document.hacked=1</script>",
        moments=make_moments([HOSTILE, "<i>", "'\">"], feature=HOSTILE),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("reports")
    for name, make in REPORTS.items():
        (made / f"{name}.html").write_text(to_html(make()), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def page(chromium: Browser) -> Iterator[Browser]:
    chromium.errors.clear()
    chromium.requests.clear()
    yield chromium
    assert chromium.errors == []
    assert [each for each in chromium.requests if not each.startswith(("file:", "blob:"))] == []


OPEN_ALL = "document.querySelectorAll('details').forEach(each => each.open = true)"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

# Texts on the page whose letters are too small or too faint for their background.
UNREADABLE = """(() => {
  const parse = text => (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(value => value / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, place) => sum + v * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = node => {
    for (let each = node; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.checkVisibility()) continue;
    if (node.closest("title, script, style, .sr, .skip")) continue;
    const style = getComputedStyle(node);
    const size = parseFloat(style.fontSize);
    const colour = parse(node.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(colour), light(behind(node))].sort((x, y) => y - x);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const contrast = (a + 0.05) / (b + 0.05);
    if (size < 12 || contrast < (large ? 3 : 4.5))
      found.push([node.textContent.trim().slice(0, 40), size, contrast]);
  }
  return found;
})()"""

# What somebody who listens, or has no mouse, would stumble over.
STRUCTURE = """(() => {
  const found = [], all = selector => [...document.querySelectorAll(selector)];
  let last = 0;
  for (const each of all("h1, h2, h3, h4")) {
    const level = Number(each.tagName[1]);
    if (level > last + 1) found.push("heading skips a level: " + each.textContent);
    last = level;
  }
  if (all("h1").length !== 1 || all("main").length !== 1) found.push("one h1, one main");
  const ids = all("[id]").map(each => each.id);
  if (new Set(ids).size !== ids.length) found.push("ids twice");
  for (const each of all("[aria-labelledby]"))
    if (!document.getElementById(each.getAttribute("aria-labelledby"))) found.push("no label");
  for (const each of all("a[href^='#']"))
    if (!document.getElementById(each.hash.slice(1))) found.push("leads nowhere: " + each.hash);
  for (const each of all("th")) if (!each.scope) found.push("heading without scope");
  for (const each of all("table")) {
    if (!each.caption?.textContent) found.push("table without caption");
    for (const cell of each.querySelectorAll("thead th"))
      if (!cell.textContent.trim()) found.push("column without heading: " + each.id);
    const width = each.tHead.rows[0].cells.length;
    for (const row of each.rows) if (row.cells.length !== width) found.push("ragged: " + each.id);
  }
  for (const each of all("svg")) {
    if (each.closest("[role=img]") || each.closest("[aria-hidden]")) continue;
    found.push("picture that is neither named nor hidden");
  }
  for (const each of all(".scroll"))
    if (each.scrollWidth > each.clientWidth && each.tabIndex) found.push("cannot be scrolled");
  for (const each of all("button, summary, select, .top nav a, .brand")) {
    const box = each.getBoundingClientRect();
    if (each.checkVisibility() && box.height && box.height < 28)
      found.push("too small to press: " + each.textContent);
  }
  return found;
})()"""


# Every report is read wide and narrow, light and dark. Each page is loaded once a width: the narrow
# one dark and the wide one light, and then the colours change, as they do at dusk.
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", REPORTS)
def test_everything_can_be_read(page: Browser, folder: Path, name: str, width: int) -> None:
    dark = width < 600
    page.open(folder / f"{name}.html", width=width, dark=dark)
    assert page.run(OVERFLOW) == 0
    page.run(OPEN_ALL)
    assert page.run(OVERFLOW) == 0
    assert page.run(STRUCTURE) == []
    for scheme in (dark, not dark):
        page.colours(dark=scheme)
        assert page.run("getComputedStyle(document.body).backgroundColor") == (
            "rgb(14, 18, 23)" if scheme else "rgb(246, 247, 249)"
        )
        assert page.run(UNREADABLE) == []
    assert page.run("document.hacked ?? null") is None


@pytest.mark.parametrize("name", REPORTS)
def test_everything_that_acts_or_shows_has_a_name(page: Browser, folder: Path, name: str) -> None:
    page.open(folder / f"{name}.html")
    page.run(OPEN_ALL)
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = (
        "button",
        "link",
        "image",
        "img",
        "checkbox",
        "combobox",
        "region",
        "table",
        "navigation",
    )
    seen = [node for node in nodes if node.get("role", {}).get("value") in roles]
    assert len(seen) > 20
    assert [node for node in seen if not node.get("name", {}).get("value", "").strip()] == []


def test_the_first_tab_skips_to_the_content(page: Browser, folder: Path) -> None:
    page.open(folder / "moments.html")
    key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
    page.call("Input.dispatchKeyEvent", type="keyDown", **key)
    page.call("Input.dispatchKeyEvent", type="keyUp", **key)
    assert page.run("document.activeElement.className") == "skip"
    assert page.run("document.activeElement.getBoundingClientRect().left") >= 0.0
    assert page.run("getComputedStyle(document.activeElement).outlineWidth") == "3px"


COLUMN = """[...document.querySelectorAll('#coefficients tbody tr')]
  .map(row => row.cells[{0}].dataset.value ?? row.cells[{0}].textContent)"""
VISIBLE = "[...document.querySelectorAll('#coefficients tbody tr')].filter(r => !r.hidden)"


def test_tables_sort_by_any_heading_and_back(page: Browser, folder: Path) -> None:
    page.open(folder / "moments.html")
    button = "document.querySelectorAll('#coefficients thead th')[{}].querySelector('button')"
    for _ in range(2):
        page.run(f"{button.format(3)}.click()")
        values = [float(each) for each in page.run(COLUMN.format(3))]
        way = page.run(f"{button.format(3)}.closest('th').ariaSort")
        assert values == sorted(values, reverse=way == "descending")
    assert way == "descending"  # it came so, by size; then ascending, and back
    page.run(f"{button.format(0)}.click()")
    names = page.run(COLUMN.format(0))
    assert names == sorted(names)
    assert page.run("document.querySelectorAll('#coefficients th[aria-sort]').length") == 1


def test_only_clear_effects_show_until_all_are_asked_for(page: Browser, folder: Path) -> None:
    page.open(folder / "moments.html")
    coef = make_moments()["intervals"]["coef"]
    clear = sum(abs(each) > 0.1 for each in coef)
    assert 0 < clear < len(coef)
    assert page.run(f"{VISIBLE}.length") == clear
    page.run("document.querySelector('[name=unclear]').click()")
    assert page.run(f"{VISIBLE}.length") == len(coef)
    choose = "const s = document.querySelector('[name=party]'); s.value = 'laboratory'"
    page.run(f"{choose}; s.dispatchEvent(new Event('change', {{bubbles: true}}))")
    assert page.run(f"{VISIBLE}.map(row => row.dataset.party)") == ["laboratory"] * 4


def saved(folder: Path, name: str) -> str:
    """Return a download once it is whole."""
    for _ in range(200):
        if (folder / name).exists():
            return (folder / name).read_bytes().decode()
        time.sleep(0.05)
    raise AssertionError(f"{name} was not saved")


def test_tables_and_plots_are_saved_exactly(page: Browser, folder: Path, tmp_path: Path) -> None:
    page.open(folder / "moments.html")
    page.downloads_to(tmp_path)
    page.run("document.querySelector('[data-csv=amounts]').click()")
    lines = saved(tmp_path, "amounts.csv").split("\r\n")
    assert lines[0] == '"whose data","amount","units","ρ","ε"'
    spent = moments_report()["privacy"]["parties"][0]["max"]
    exact = ",".join(f'"{spent[key]!r}"' for key in ("units", "rho", "epsilon"))
    assert lines[1] == f'"hospital","job\'s maximum",{exact}'
    for key in ("path-plot", "correlations-plot", "l1-path-plot", "quality-plot"):
        page.run(f"document.querySelector('[data-svg={key}]').click()")
        drawn = ET.fromstring(saved(tmp_path, f"{key}.svg"))
        assert float(drawn.get("width", 0)) > 200.0
        assert len(list(drawn.iter("{http://www.w3.org/2000/svg}text"))) > 4
        assert "var(" not in saved(tmp_path, f"{key}.svg")
    page.run("document.querySelector('[data-strips=coefficients]').click()")
    drawn = ET.fromstring(saved(tmp_path, "coefficients.svg"))
    clear = page.run(f"{VISIBLE}.length")
    assert len([each for each in drawn if each.get("transform")]) == clear


def test_a_saved_table_holds_no_formula(page: Browser, folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(to_html(make_report(feature='=HYPERLINK("x")')), encoding="utf-8")
    page.open(bad)
    page.downloads_to(tmp_path)
    page.run("document.querySelector('[data-csv=model-table]').click()")
    text = saved(tmp_path, "model-table.csv")
    assert '"\'=HYPERLINK(""x"") 0"' in text
    assert '"=' not in text


def test_on_paper_everything_is_open_and_dark_ink_on_white(page: Browser, folder: Path) -> None:
    page.open(folder / "moments.html", dark=True, media="print")
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run("document.querySelectorAll('details:not([open])').length") == 0
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run(UNREADABLE) == []
    assert not page.run("document.querySelector('button[data-csv]').checkVisibility()")
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run("document.querySelectorAll('details[open]').length") == 0


def test_without_scripts_nothing_is_missing(page: Browser, folder: Path) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(folder / "moments.html")
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert page.run(f"{VISIBLE}.length") == 12


# Contrast, which takes axe longest, is left to `UNREADABLE`: that looks at every text, in plots too
# and in both colours. A page's tree is the same at any width but for what is hidden, so axe sees
# each kind of page narrow and every page wide.
AXE_OPTIONS = "{rules: {'color-contrast': {enabled: false}}}"
KINDS = ("moments", "clients", "fit")


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed")
@pytest.mark.parametrize(
    ("name", "width"), [*((name, 1280) for name in REPORTS), *((name, 390) for name in KINDS)]
)
def test_axe_finds_no_serious_problem(page: Browser, folder: Path, name: str, width: int) -> None:
    page.open(folder / f"{name}.html", width=width)
    page.run(OPEN_ALL)
    page.run(AXE.read_text(encoding="utf-8") + ";0")
    told = "found.violations.map(each => [each.impact, each.id, each.nodes.map(n => n.html)])"
    found = page.run(f"axe.run(document, {AXE_OPTIONS}).then(found => {told})")
    assert [each for each in found if each[0] in ("serious", "critical")] == []
