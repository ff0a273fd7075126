"""Generate the protobuf bindings, or with ``--check`` tell whether they are up to date."""

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent


def generate(target: Path) -> None:
    """Write the bindings of every ``.proto`` file below ``target``."""
    sources = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.proto"))
    builtin = resources.files("grpc_tools") / "_proto"
    command = ["protoc", f"-I{ROOT}", f"-I{builtin}", f"--python_out={target}"]
    if protoc.main([*command, f"--pyi_out={target}", *sources]) != 0:
        raise SystemExit("protoc failed; see its message above")


def stale() -> list[str]:
    """Return the bindings that differ from what the ``.proto`` files give."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        fresh = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in Path(folder).rglob("*_pb2.*")
        }
    committed = {str(path.relative_to(ROOT)): path.read_bytes() for path in ROOT.rglob("*_pb2.py*")}
    committed = {name: text for name, text in committed.items() if "__pycache__" not in name}
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
