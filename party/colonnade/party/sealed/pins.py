"""Write a peer's ledger key into a policy, and nothing else of it."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from colonnade.core.config import parse_toml, read_text
from colonnade.core.errors import BadInput
from colonnade.party.policy_file import PolicyFile
from colonnade.party.sealed.policy import check_distinct, key_from_text, key_to_text

_PEERS = re.compile(r"^sealed_peers[ \t]*=[ \t]*\{[^\n{}]*\}[ \t]*(#[^\n]*)?$", re.MULTILINE)
_GRANT = re.compile(r"^sealed[ \t]*=[^\n]*$", re.MULTILINE)


def pin(path: Path, party: str, key: str) -> None:
    """Pin the ledger key of ``party`` in the policy at ``path``; what else it says stays.

    A policy with several grants is for its own people to edit.
    """
    try:
        wanted = key_to_text(key_from_text(key))
    except ValueError as error:
        raise BadInput(f"{error}; `colonnade party peers` prints that of a party") from None
    before = read_text(path)
    after = pinned(before, party, wanted, origin=str(path))
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(after, "utf-8")
    scratch.chmod(path.stat().st_mode)
    scratch.replace(path)


def pinned(text: str, party: str, key: str, *, origin: str) -> str:
    """Return a policy's text in which ``party`` is pinned by ``key``."""
    document = tomllib.loads(text) if parse_toml(text, PolicyFile, origin=origin) else {}
    allowed: list[dict[str, Any]] = document.get("allow", [])
    granting = [table for table in allowed if table.get("sealed")]
    if len(granting) != 1:
        raise BadInput(
            f"{origin}: {len(granting) or 'no'} [[allow]] grants sealed jobs; write one with "
            "sealed and sealed_columns first, or edit sealed_peers by hand"
        )
    peers = {**granting[0].get("sealed_peers", {}), party: key}
    try:
        check_distinct({name: key_from_text(text) for name, text in peers.items()})
    except ValueError as error:
        raise BadInput(f"{origin}: sealed_peers: {error}") from None
    granting[0]["sealed_peers"] = peers
    table = ", ".join(f"{json.dumps(name)} = {json.dumps(each)}" for name, each in peers.items())
    line = f"sealed_peers = {{ {table} }}"
    if _PEERS.search(text):
        made = _PEERS.sub(lambda _: line, text, count=1)
    else:
        made = _GRANT.sub(lambda found: f"{found[0]}\n{line}", text, count=1)
    if tomllib.loads(made) != document:  # written in a way that this does not understand
        raise BadInput(f"{origin}: sealed_peers is written in another way; edit it by hand: {line}")
    return made
