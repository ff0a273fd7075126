"""Settings for all tests."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from colonnade.simulate.forks.client import ForkServer, lent

# The processes of ``pytest -n`` share the processors, which threads of BLAS keep busy as they wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples every time: a suite that passes once passes again. To search for new failures
# set COLONNADE_EXPLORE=1. No deadlines: a busy machine is no failure.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile("explore" if os.environ.get("COLONNADE_EXPLORE") else "fixed")


def pytest_configure() -> None:
    """Heed SIGINT, which a runner in the background ignores, and children with it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Folders whose tests have a marker by where they are; elsewhere a test carries its own.
MARKED_FOLDERS = {
    "crash": pytest.mark.slow,
    "e2e": pytest.mark.slow,
    "statistical": pytest.mark.statistical,
}


# What takes longest begins, so that no process of ``pytest -n`` is left alone with it at the end.
LONGEST = (
    "e2e/",
    "bench/test_bench_faults.py",
    "crash/",
    "bench/test_bench_stopped.py",
    "simulate/test_simulate_api.py",
    "bench/test_bench_scale.py",
    "methods/admm/test_admm_federation.py",
    "federation/test_faults.py",
    "console/",
    "security/test_intervals_cover_what_they_promise.py",
    "security/test_a_stopped_simulation_leaves_nothing.py",
    "security/test_answer_times.py",
    "report/test_report_in_a_browser.py",
    "methods/admm/",
    "statistical/",
    "federation/",
    "simulate/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order by how long it takes; mark whole folders that `make quick` leaves out."""

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(Path(__file__).parent).as_posix()
        found = (at for at, name in enumerate(LONGEST) if path.startswith(name))
        return next(found, len(LONGEST))

    items.sort(key=place)
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in MARKED_FOLDERS:
            item.add_marker(MARKED_FOLDERS[folder])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out whole files to the processes of ``pytest -n``: their tests share what they made.

    The containers' tests go to one process, because they share an engine and images. The order is
    that of collection, which begins with what takes longest.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return "tests/e2e" if file.startswith("tests/e2e/") else file

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session")
def one_fork_server() -> Iterator[ForkServer]:
    """Return the process of this worker that has imported what members of federations need."""
    with ForkServer() as server:
        yield server


@pytest.fixture(scope="module")
def fork_server(one_fork_server: ForkServer) -> Iterator[None]:
    """Fork the federations of a module from one process, which many modules share.

    Not for modules that change the working directory or the environment of what they start.
    """
    with lent(one_fork_server):
        yield
