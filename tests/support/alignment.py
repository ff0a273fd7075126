"""Small alignments with repeatable secrets."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.methods.alignment.spec import Mode
from colonnade.privacy.membership import MembershipNoise
from colonnade.simulate.inprocess.alignment import AlignmentMember, AlignmentRun, simulated_spec
from support.entropy import ShakeNoise, shake

SMALL = MembershipNoise(1, 3)  # few dummies: tests of matching need no privacy


def signer(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def ids(numbers: Sequence[int]) -> list[bytes]:
    return [b"person %d" % number for number in numbers]


def members(lists: Sequence[Sequence[int]]) -> dict[str, AlignmentMember]:
    return {f"p{k}": AlignmentMember(signer(f"p{k}"), ids(each)) for k, each in enumerate(lists)}


def prepared(
    people: Mapping[str, AlignmentMember],
    *,
    seed: str = "run",
    mode: Mode = Mode.UNION,
    noise: MembershipNoise = SMALL,
    chunk: int = 40,
    **options: Any,
) -> AlignmentRun:
    """Return a run that has not begun; hooks of the run and fields of its specification by name."""
    names = ("tamper", "tamper_task", "attestor")
    hooks = {name: options.pop(name) for name in names if name in options}
    salt = hashlib.sha256(seed.encode()).digest()
    spec = simulated_spec(people, salt=salt, mode=mode, noise=noise, chunk=chunk, **options)
    return AlignmentRun(spec, people, ShakeNoise(seed), shake(seed), **hooks)
