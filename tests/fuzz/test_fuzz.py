"""No parser of foreign bytes crashes: examples, what fuzzing found, and changes of both.

``make fuzz`` searches on, guided by coverage where atheris is installed.
"""

import logging
from collections.abc import Iterator

import numpy as np
import pytest

from fuzz.mutate import mutations
from fuzz.run import CORPUS, corpus_of, file_name
from fuzz.targets import Target, targets

pytestmark = pytest.mark.slow
MUTATIONS = 300
NAMES = (
    *("frames AttachRequest", "frames AttachResponse", "specification", "alignment spec"),
    *("prediction spec", "submission", "proposal", "task frank-wolfe", "task frank-wolfe sketched"),
    *("task moments", "task moments sketched", "task admm", "task alignment", "task sealed"),
    *("ledger", "export", "receipt", "mirror", "head", "certificate", "request", "fingerprint"),
    *("schema", "policy", "configuration", "table", "model", "ciphertext", "masked words"),
    *("points", "segments", "alignment state", "alignment outcome", "prediction task"),
    "prediction record",
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)


def test_every_parser_is_a_target_and_takes_a_whole_example() -> None:
    assert tuple(targets()) == NAMES
    # Examples of these are whole in form; a vault or an engine then refuses what they say.
    refused = {"head", "alignment outcome"}
    for name, target in targets().items():
        taken = [target(example) for example in target.examples]
        assert any(taken) or name in refused or "frames" in name, name


@pytest.mark.parametrize("name", NAMES)
def test_it_refuses_what_it_cannot_read(name: str) -> None:
    target, kept = targets()[name], corpus_of(name)
    pool = [*target.examples, *kept]
    draw = np.random.default_rng(len(name))
    taken = [target(body) for body in (*kept, *mutations(pool, draw, MUTATIONS))]
    assert len(taken) == len(kept) + MUTATIONS


def test_a_crash_is_noticed() -> None:
    def crash(body: bytes) -> None:
        raise KeyError(body)

    with pytest.raises(KeyError):
        Target(crash, [b"a"])(b"a")


def test_the_corpus_is_small_and_of_known_targets() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} <= {file_name(name) for name in NAMES}
    assert sum(path.stat().st_size for path in files) < 200_000
