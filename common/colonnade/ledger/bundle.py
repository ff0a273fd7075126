"""One file of evidence: an export, and with it all that the entries speak of and do not contain.

A bundle begins with a ledger's entries as an export does. Then come, one JSON object a line, the
specification of every job that was proposed, the text of every policy, the newest receipt of every
job and the party's log of what left. The last line states the head under the ledger's signature,
with a digest of the lines between. No body of a release is in it.

What a bundle proves beyond an export: specifications and policies are those that the entries name
by their digests, and none that was kept is missing; receipts are the ledger's own and on its chain.
The log of what left is what the party says; it is signed with the rest.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import LedgerDamaged, VerificationFailed
from colonnade.ledger.entries import ReleaseKey, canonical
from colonnade.ledger.receipts import Receipt, public_bytes
from colonnade.ledger.state import LedgerState
from colonnade.ledger.storage.snapshot import Snapshot

SPECIFICATION, POLICY, RECEIPT, LEFT = "specification", "policy-text", "receipt", "left"
_KINDS = (SPECIFICATION, POLICY, RECEIPT, LEFT)
_HEAD = b"colonnade export v1\0"


def head_line(
    state: LedgerState, sign: Callable[[bytes], bytes], attached: "Attached | None" = None
) -> str:
    """Return the last line of an export or a bundle: the head, signed."""
    if state.opened is None:
        raise ValueError("an empty ledger has no head")
    head: dict[str, Any] = {
        "type": "head",
        "ledger_id": state.opened.ledger_id,
        "seq": state.head.seq,
        "chain_hash": state.head.chain_hash.hex(),
        "spent": state.head.spent,
    }
    if attached is not None and attached.lines:
        head |= {"attached": attached.lines, "attached_sha256": attached.digest}
    return canonical({**head, "signature": sign(head_statement(head)).hex()})


def head_statement(head: Mapping[str, Any]) -> bytes:
    """Return what the ledger's key signs of a head."""
    return _HEAD + canonical(head).encode()


@dataclass(slots=True)
class Attached:
    """The lines of a bundle between the entries and the head."""

    lines: int = 0
    specs: dict[str, bytes] = field(default_factory=dict)
    policies: dict[int, bytes] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)
    left: list[Mapping[str, Any]] = field(default_factory=list)  # the log of what left
    _hash: Any = field(default_factory=hashlib.sha256)

    @property
    def digest(self) -> str:
        """A digest of all lines."""
        return str(self._hash.hexdigest())

    @staticmethod
    def is_one(line: str) -> bool:
        """Return whether a line is attached, and no entry."""
        return any(line.endswith(f'"type":"{kind}"}}') for kind in _KINDS)

    def take(self, line: str) -> None:
        """Take one line; `VerificationFailed` if it cannot be read."""
        try:
            found = json.loads(line)
            if canonical(found) != line:
                raise ValueError("not canonical")
            match found["type"]:
                case "specification":
                    self.specs[found["job"]] = base64.b64decode(found["bytes"], validate=True)
                case "policy-text":
                    self.policies[found["policy"]] = found["text"].encode()
                case "receipt":
                    self.receipts.append(_receipt_from(found))
                case _:
                    self.left.append(found["line"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise VerificationFailed("what is attached to the entries cannot be read") from None
        self.lines += 1
        self._hash.update(line.encode() + b"\n")

    def check(self, state: LedgerState) -> None:
        """Refuse a bundle whose attachments are not what the entries name, or not all of it."""
        docket, opened = state.docket, state.opened
        kept = {job for job, each in docket.proposals.items() if each.seq}
        if kept != {*self.specs}:
            raise VerificationFailed("a specification is missing, or one too many is attached")
        for job, spec in self.specs.items():
            if hashlib.sha256(spec).hexdigest() != job:
                raise VerificationFailed(f"the specification of job {job[:12]} was changed")
        if {*docket.policies} != {*self.policies}:
            raise VerificationFailed("the text of a policy is missing, or one too many attached")
        for version, text in self.policies.items():
            if hashlib.sha256(text).hexdigest() != docket.policies[version][0].sha256:
                raise VerificationFailed(f"the text of policy {version} was changed")
        key = bytes.fromhex(opened.public_key) if opened else b""
        for receipt in self.receipts:
            if not receipt.signed_by(key) or not state.on_chain(receipt.seq, receipt.chain_hash):
                raise VerificationFailed("a receipt is not the ledger's, or not on its chain")


def bundle_lines(
    found: Snapshot, signer: Ed25519PrivateKey, log: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield the lines of a bundle of evidence, the signed head last."""
    _check_signer(found, signer)
    yield from found.lines
    attached = Attached()
    for line in _attachments(found, signer, log):
        attached.take(line)
        yield line
    yield head_line(found.state, signer.sign, attached)


def export_of(found: Snapshot, signer: Ed25519PrivateKey) -> Iterator[str]:
    """Yield the lines of an export of a ledger that may be in use, the signed head last."""
    _check_signer(found, signer)
    yield from found.lines
    yield head_line(found.state, signer.sign)


def _check_signer(found: Snapshot, signer: Ed25519PrivateKey) -> None:
    opened = found.state.opened
    if opened is None or opened.public_key != public_bytes(signer).hex():
        raise LedgerDamaged("the ledger key is not this ledger's; restore the right one")


def _attachments(
    found: Snapshot, signer: Ed25519PrivateKey, log: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    for job, spec in found.specs.items():
        body = base64.b64encode(spec).decode()
        yield canonical({"type": SPECIFICATION, "job": job, "bytes": body})
    for version, text in found.policies.items():
        yield canonical({"type": POLICY, "policy": version, "text": text.decode()})
    for receipt in _newest_receipts(found.state, signer):
        yield canonical(_receipt_to(receipt))
    for each in log:
        yield canonical({"type": LEFT, "line": dict(each)})


def _newest_receipts(state: LedgerState, signer: Ed25519PrivateKey) -> Iterator[Receipt]:
    """Yield a receipt of the newest stored release of every job; the chain covers the others."""
    newest: dict[str, ReleaseKey] = {}
    for key, kept in state.stored.items():
        if key.job not in newest or kept.seq >= state.stored[newest[key.job]].seq:
            newest[key.job] = key
    ledger_id = bytes.fromhex(state.opened.ledger_id) if state.opened else b""
    for key in newest.values():
        kept = state.stored[key]
        facts = (
            ledger_id,
            kept.seq,
            state.hashes[kept.seq],
            key.account,
            kept.spent,
            key.digest(),
            bytes.fromhex(kept.body_sha256),
        )
        yield Receipt(*facts, signature=signer.sign(Receipt(*facts).statement()))


_BYTES = ("ledger_id", "chain_hash", "key_sha256", "body_sha256", "signature")


def _receipt_to(receipt: Receipt) -> dict[str, Any]:
    facts = {name: getattr(receipt, name).hex() for name in _BYTES}
    return {
        "type": RECEIPT,
        "seq": receipt.seq,
        "account": receipt.account,
        "spent": receipt.spent,
        **facts,
    }


def _receipt_from(found: Mapping[str, Any]) -> Receipt:
    facts = {name: bytes.fromhex(found[name]) for name in _BYTES}
    seq, spent, account = found["seq"], found["spent"], found["account"]
    if type(seq) is not int or type(spent) is not int or type(account) is not str:
        raise ValueError("a receipt has a field of the wrong type")
    return Receipt(seq=seq, account=account, spent=spent, **facts)
