"""A net that somebody else controls: code planted in the shipped process, after its start.

`planted` makes a folder for ``PYTHONPATH`` whose ``sitecustomize`` replaces the event loop of a
party's net, where the process has just given up what it can, by `attack`. What it finds it writes
into the folder of the certificate, the one place where net may write.
"""

import ctypes
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

from colonnade.party.frames import Frames, to_frame
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import vault_pb2

PLAN, LOOT = "plan.json", "loot.json"
_CUSTOM = """\
import sys
if "--control-fd" in sys.orig_argv:
    import asyncio
    sys.path.append({tests!r})
    from support.hostile_net import attack
    sys.path.remove({tests!r})
    def run(main, **_):
        words = main.cr_frame.f_locals
        main.close()
        attack(words["config"].credentials, words["link"])
    asyncio.run = run
"""


def planted(folder: Path) -> Path:
    """Return a folder that plants `attack` in the net of a party that has it in PYTHONPATH."""
    folder.mkdir()
    text = _CUSTOM.format(tests=str(Path(__file__).parents[1]))
    (folder / "sitecustomize.py").write_text(text)
    return folder


def attack(pki: Path, link: socket.socket) -> None:
    """Read what can be read, then be the worst of coordinators."""
    while not (pki / PLAN).exists():
        time.sleep(0.01)
    plan = json.loads((pki / PLAN).read_text())
    files = {each: _content(Path(each)) for each in plan["files"]}
    loot: dict[str, Any] = {
        "open": [_target(number) for number in Path("/proc/self/fd").iterdir()],
        "read": [name for name, found in files.items() if found is not None],
        "memory": _memory(plan["vault"]),
        "sent": [],
    }
    if (pki / LOOT).exists():  # started again: there is nothing more to do
        while link.recv(1 << 16):
            pass
        return
    said = [bytes.fromhex(each) for each in plan["says"]]
    _talk(link, said, loot["sent"])
    # What nobody asked for, and what is no frame.
    link.sendall(to_frame(vault_pb2.NetAnswer(id=2**60, message=said[-1])))
    (pki / "new").write_text(json.dumps(loot))
    (pki / "new").rename(pki / LOOT)


def _talk(link: socket.socket, said: list[bytes], sent: list[str]) -> None:
    frames, names = Frames(), vault_pb2.Dialled()
    names.identity = "spiffe://simulation/party/hospital"
    names.coordinator = "spiffe://simulation/coordinator/hub"
    left = iter(said)
    while data := link.recv(1 << 16):
        for call in frames.take(data, vault_pb2.NetCall):
            answer = vault_pb2.NetAnswer(id=call.id)
            match call.WhichOneof("call"):
                case "dial":
                    answer.dialled.CopyFrom(names)
                case "enrol":
                    answer.message = pb.EnrolResponse(protocol=4).SerializeToString()
                case "write":
                    sent.append(call.write.hex())
                    answer.done.SetInParent()
                case "read":
                    if (message := next(left, None)) is None:
                        return
                    answer.message = message
                case _:
                    answer.done.SetInParent()
            link.sendall(to_frame(answer))


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def _memory(vault: int) -> list[str]:
    """Return the ways that led into the vault's memory."""
    found = []
    for name in ("mem", "environ", "maps"):
        try:
            with Path(f"/proc/{vault}/{name}").open("rb") as file:
                file.read(0 if name == "mem" else 1)
            found.append(name)
        except OSError:
            continue
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, vault, None, None) == 0:  # seize
        libc.ptrace(17, vault, None, None)
        found.append("ptrace")
    handle = libc.syscall(434, vault, 0)  # pidfd_open
    if handle >= 0 and libc.syscall(438, handle, 0, 0) >= 0:  # pidfd_getfd
        found.append("pidfd_getfd")
    return found


if __name__ == "__main__":
    sys.exit("planted, not run")
