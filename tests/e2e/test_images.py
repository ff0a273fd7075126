"""What is in the images, and what is not."""

import json
import re

import pytest
from support.containers import COORDINATOR, PARTY, ROOT, SIMULATION, docker, run

pytestmark = [pytest.mark.usefixtures("images"), pytest.mark.timeout(1200)]

HARDENED = (
    "--rm",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--network=none",
)


def shell(image: str, script: str) -> str:
    return docker("run", *HARDENED, "--tmpfs=/tmp", "--entrypoint=sh", image, "-c", script)


@pytest.mark.parametrize(
    ("image", "own", "others"),
    [
        (PARTY, "party", ["server", "simulate", "bench"]),
        (COORDINATOR, "server", ["party", "simulate", "bench"]),
    ],
)
def test_an_image_has_only_its_own_role(image: str, own: str, others: list[str]) -> None:
    paths = shell(image, "find / -xdev -type d -path '*/colonnade/*' 2>/dev/null || true").split()
    folders = {path.split("/")[-1] for path in paths if path.split("/")[-2] == "colonnade"}
    assert {own, "core", "privacy", "wire", "cli"} <= folders
    assert not folders & set(others)
    # Nor under another name: no file of the other role's source is there.
    other = ROOT / others[0] / "colonnade" / others[0]
    first = {path.read_text("utf-8").splitlines()[0] for path in other.glob("*.py")}
    texts = shell(image, "find /opt -path '*/colonnade/*.py' -exec head -n 1 {} ';'").splitlines()
    assert len(texts) > 50
    assert not first & set(texts) - {""}


@pytest.mark.parametrize(("image", "role"), [(PARTY, "party"), (COORDINATOR, "coordinator")])
def test_what_is_installed_is_what_was_pinned(image: str, role: str) -> None:
    pinned = dict(
        re.findall(
            r"^([\w.-]+)==([^\s;]+)(?!.*win32)",
            (ROOT / "deploy" / f"requirements-{role}.txt").read_text(),
            re.MULTILINE,
        )
    )
    script = (
        "from importlib.metadata import distributions as d; import json;"
        "print(json.dumps({x.name.lower().replace('_', '-'): x.version for x in d()}))"
    )
    found = json.loads(shell(image, f'/opt/colonnade/bin/python -c "{script}"'))
    assert found.pop("colonnade")
    assert found == pinned


@pytest.mark.parametrize("image", [PARTY, COORDINATOR])
def test_an_image_runs_as_nobody_special(image: str) -> None:
    settings = json.loads(docker("image", "inspect", image))[0]["Config"]
    assert settings["User"] == "10001:10001"
    assert not settings.get("Volumes")
    assert shell(image, "id -u").strip() == "10001"
    assert shell(image, "find /opt /usr/local -xdev -writable -not -type l").strip() == ""
    # No secret of the machine that built it.
    assert "PIP_INDEX_URL" not in " ".join(settings["Env"])


def test_compiled_kernels_come_with_the_image() -> None:
    script = (
        "export NUMBA_CACHE_DIR=/tmp/kernels; cp -R /opt/colonnade/kernels /tmp/kernels;"
        "list() { (cd /tmp/kernels && find . -type f | sort | xargs sha256sum) };"
        "list >/tmp/before;"
        "/opt/colonnade/bin/python -c "
        "'from colonnade.party.vault.warming import warm_all; warm_all()';"
        "list >/tmp/after; wc -l </tmp/before; cmp /tmp/before /tmp/after && echo unchanged"
    )
    count, said = shell(PARTY, script).splitlines()
    assert int(count) > 10
    assert said == "unchanged"
    # They are valid for sources of one time only, and layers that travel keep whole seconds.
    times = "find /opt/colonnade/lib -name '*.py' -printf '%T@ ' | tr ' ' '\\n' | sort -u"
    assert {float(each) % 1.0 for each in shell(PARTY, times).split()} == {0.0}


def test_a_command_of_the_other_role_says_where_it_is() -> None:
    ended = run(
        ["docker", "run", *HARDENED, "--tmpfs=/tmp", PARTY, "coordinator", "--template"],
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr == (
        "colonnade: this installation leaves out colonnade.server; use the coordinator's image\n"
    )


def test_without_a_place_for_temporary_files_one_line_says_so() -> None:
    ended = run(["docker", "run", *HARDENED, PARTY, "--version"], check=False)
    assert ended.returncode == 3
    assert ended.stderr == (
        "colonnade: /tmp cannot be written; give the container a tmpfs there (--tmpfs /tmp)\n"
    )


def test_the_simulation_has_what_both_leave_out() -> None:
    assert shell(SIMULATION, "python3 -c 'import colonnade.simulate.data.story'") == ""
