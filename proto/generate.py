"""Generate the protobuf bindings, or with ``--check`` compare them."""

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent


def generate(target: Path) -> None:
    """Write the bindings of every ``.proto`` file below ``target``."""
    sources = sorted(ROOT.rglob("*.proto"))
    services = [path for path in sources if "\nservice " in path.read_text("utf-8")]
    typing = Path(sys.executable).with_name("protoc-gen-mypy_grpc")
    plugin = f"--plugin=protoc-gen-mypy_grpc={typing}"
    _run(sources, f"--python_out={target}", f"--pyi_out={target}")
    _run(services, plugin, f"--grpc_python_out={target}", f"--mypy_grpc_out=quiet:{target}")


def _run(sources: list[Path], *options: str) -> None:
    builtin = resources.files("grpc_tools") / "_proto"
    names = (str(path.relative_to(ROOT)) for path in sources)
    if protoc.main(["protoc", f"-I{ROOT}", f"-I{builtin}", *options, *names]) != 0:
        raise SystemExit("protoc failed; see its message above")


def stale() -> list[str]:
    """Return the bindings that differ from what the ``.proto`` files give."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        fresh = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in Path(folder).rglob("*_pb2*.py*")
        }
    committed = {
        str(path.relative_to(ROOT)): path.read_bytes()
        for path in ROOT.rglob("*_pb2*.py*")
        if "__pycache__" not in path.parts
    }
    return sorted(
        name for name in fresh.keys() | committed.keys() if fresh.get(name) != committed.get(name)
    )


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail on drift")
    if parser.parse_args().check:
        if names := stale():
            print(f"bindings are out of date, run 'make proto': {', '.join(names)}")
            return 1
        print("bindings are up to date")
        return 0
    generate(ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
