"""Fuzz all targets: guided by coverage where atheris is installed, else at random.

``python -m fuzz.run --seconds 60 --json`` from the folder of the tests, or ``make fuzz``. What is
found lies in ``build/fuzz/<target>`` as files; each becomes a test in `test_fuzz`. A run that a
signal stops prints the figures so far.
"""

import argparse
import importlib.util
import json
import logging
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.bench.progress import keeping_figures, told
from colonnade.cli.stopping import Stopped, stoppable
from fuzz.mutate import mutations
from fuzz.targets import LONGEST, targets

ALL = "all"

CORPUS = Path(__file__).parent / "corpus"
TESTS = Path(__file__).parents[1]
FOUND = TESTS.parent / "build" / "fuzz"
_DONE = re.compile(rb"(?:Done|stat::number_of_executed_units:) *(\d+)")


def file_name(target: str) -> str:
    """Return the folder of a target."""
    return target.replace(" ", "-")


def corpus_of(target: str) -> list[bytes]:
    """Return the examples of a target that are kept with the tests."""
    folder = CORPUS / file_name(target)
    return [path.read_bytes() for path in sorted(folder.glob("*"))] if folder.is_dir() else []


def fuzz_at_random(name: str, *, seconds: float, seed: int) -> Iterator[dict[str, Any]]:
    """Mutate examples until the time is up; yield the figures so far, again and again."""
    target, draw = targets()[name], np.random.default_rng(seed)
    pool = [*target.examples, *corpus_of(name)]
    count, taken, until = 0, 0, time.process_time() + seconds
    while time.process_time() < until:
        for body in mutations(pool, draw, 500):
            try:
                taken += target(body)
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                yield _found(name, body, count, repr(error))
                return
            count += 1
        yield {"executions": count, "crashes": 0, "taken": taken}


def _found(name: str, body: bytes, count: int, what: str) -> dict[str, Any]:
    place = FOUND / file_name(name)
    place.mkdir(parents=True, exist_ok=True)
    (place / f"crash-{abs(hash(body)):x}").write_bytes(body)
    return {"executions": count, "crashes": 1, "what": what[:300]}


def fuzz_guided(name: str, *, seconds: float, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Have libFuzzer search, in a process of its own; yield its figures, also if it is stopped."""
    corpus = folder / file_name(name)
    corpus.mkdir(parents=True, exist_ok=True)
    for place, body in enumerate(_examples(name)):
        (corpus / f"example-{place}").write_bytes(body)
    limits = (f"-max_total_time={max(1, int(seconds))}", f"-seed={seed + 1}", "-timeout=10")
    memory = ("-rss_limit_mb=3000", "-malloc_limit_mb=1000", f"-max_len={LONGEST}")
    quiet = ("-print_final_stats=1", "-verbosity=0")
    found = f"-artifact_prefix={corpus}/crash-of-"
    command = [sys.executable, "-m", "fuzz.guided", name, str(corpus), *limits, *memory]
    with tempfile.TemporaryFile() as said:
        search = subprocess.Popen([*command, *quiet, found], cwd=TESTS, stdout=said, stderr=said)
        stopped = None
        try:
            search.wait()
        except (Stopped, KeyboardInterrupt) as stop:
            stopped = stop
            search.terminate()  # upon which it prints its figures
            search.wait()
        said.seek(0)
        text = said.read()
    counts = [int(each) for each in _DONE.findall(text)]
    crashes = len(list(folder.glob(f"{file_name(name)}/crash-of-*")))
    result: dict[str, Any] = {"executions": max(counts, default=0), "crashes": crashes}
    if search.returncode and (crashes or stopped is None):
        result["what"] = text.decode(errors="replace")[-1500:]
        result["crashes"] = max(1, crashes)
    yield result
    if stopped is not None:
        raise stopped


def _examples(name: str) -> list[bytes]:
    if name != ALL:
        return [*targets()[name].examples, *corpus_of(name)]
    return [
        bytes([place]) + body
        for place, each in enumerate(targets())
        for body in (*targets()[each].examples, *corpus_of(each))
    ]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target")
    parser.add_argument("--only", help=f"one target, or {ALL}: all of them in one process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--random", action="store_true", help="not guided by coverage")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    guided = not asked.random and importlib.util.find_spec("atheris") is not None
    results: dict[str, dict[str, Any]] = {}
    common = {"seconds": asked.seconds, "seed": asked.seed}
    with stoppable(), keeping_figures() as ending:
        for name in [asked.only] if asked.only else targets():
            tell = told(f"executions of {name}")
            parts = (
                fuzz_guided(name, folder=FOUND, **common)
                if guided
                else fuzz_at_random(name, **common)
            )
            for part in parts:
                results[name] = part
                tell(part["executions"])
            print(name, results[name], file=sys.stderr, flush=True)
    total = {
        key: sum(int(each[key]) for each in results.values()) for key in ("executions", "crashes")
    }
    figures = total | {"engine": "atheris" if guided else "random", "targets": results}
    print(json.dumps(figures | ending.fields) if asked.json else f"{total}")
    return ending.exit_code(1 if total["crashes"] else 0)


if __name__ == "__main__":
    sys.exit(main())
