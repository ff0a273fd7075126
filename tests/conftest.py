"""Settings for all tests."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The same examples every time: a suite that passes once passes again. To search for new failures
# set COLONNADE_EXPLORE=1. No deadlines: a busy machine is no failure.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile("explore" if os.environ.get("COLONNADE_EXPLORE") else "fixed")


# Folders whose tests have a marker by where they are; elsewhere a test carries its own.
MARKED_FOLDERS = {
    "crash": pytest.mark.slow,
    "e2e": pytest.mark.slow,
    "statistical": pytest.mark.statistical,
}


# The containers' tests are one long chain; the others fill the time beside it.
FIRST_FOLDERS = ("e2e", "crash", "bench")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whole folders that `make quick` leaves out; begin with what takes longest."""
    items.sort(key=_rank)
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in MARKED_FOLDERS:
            item.add_marker(MARKED_FOLDERS[folder])


def _rank(item: pytest.Item) -> int:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    return FIRST_FOLDERS.index(folder) if folder in FIRST_FOLDERS else len(FIRST_FOLDERS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out whole files to the processes of ``pytest -n``: their tests share what they made.

    The containers' tests go to one process, because they share an engine and images. The order is
    that of `pytest_collection_modifyitems`, not by numbers of tests.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return "tests/e2e" if file.startswith("tests/e2e/") else file

    config.option.loadscopereorder = False
    return ByFile(config, log)
