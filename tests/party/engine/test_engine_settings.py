"""Settings that do not say, or say twice, where an engine computes are refused."""

from pathlib import Path

import pytest

from colonnade.core.errors import BadInput
from colonnade.party.config import TEMPLATE, load_config
from colonnade.party.engine.local import LOCAL


def written(folder: Path, lines: str) -> Path:
    head, _, rest = TEMPLATE.partition("answer_grid_ms")
    path = folder / "party.toml"
    path.write_text(f"{head}{lines}\nanswer_grid_ms{rest}")
    return path


def test_a_party_computes_on_its_own_machine_unless_it_says_otherwise(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, "")).open_engine() is LOCAL


@pytest.mark.parametrize(
    "lines",
    [
        "workers = 2",
        'scheduler = "tls://host:1"',
        'engine = "dask"',
        'engine = "spark"\nworkers = 2',
        'engine = "dask"\nworkers = 2\nscheduler = "tls://host:1"\nscheduler_tls = "x"',
        'engine = "dask"\nscheduler = "tls://host:1"',
        'engine = "dask"\nscheduler = "tcp://host:1"\nscheduler_tls = "x"',
        'engine = "dask"\nworkers = -1',
    ],
)
def test_settings_that_contradict_each_other_are_refused(tmp_path: Path, lines: str) -> None:
    with pytest.raises(BadInput):
        load_config(written(tmp_path, lines))


def test_a_cluster_is_a_number_of_workers_or_a_scheduler_over_tls(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, 'engine = "dask"\nworkers = 2')).workers == 2
    tls = 'engine = "dask"\nscheduler = "tls://host:1"\nscheduler_tls = "x"'
    assert load_config(written(tmp_path, tls)).scheduler == "tls://host:1"
