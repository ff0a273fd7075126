"""One target under libFuzzer: ``python -m fuzz.guided TARGET CORPUS -runs=...``."""

import logging
import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

ALL = "all"  # in one process: the first byte says which
ROOT = Path(__file__).parents[2]


def compiled() -> list[str]:
    """Return the modules that numba compiles: it cannot read instrumented code."""
    paths = [path for path in ROOT.glob("*/colonnade/**/*.py") if "jit" in path.read_text()]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts[1:]) for path in paths]


def main() -> None:
    """Run the fuzzer; it ends the process."""
    logging.disable(logging.CRITICAL)
    with atheris.instrument_imports(include=["colonnade"], exclude=compiled()):
        from fuzz.targets import targets

        chosen = [*targets().values()] if sys.argv[1] == ALL else [targets()[sys.argv[1]]]

    def take(body: bytes) -> None:
        if len(chosen) == 1:
            chosen[0](body)
        elif body:
            chosen[body[0] % len(chosen)](body[1:])

    atheris.Setup([sys.argv[0], *sys.argv[2:]], take)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
