"""With whom a party takes part in sealed jobs: part of an ``[[allow]]``. Absence means no.

Privacy: the charge of a product under encryption holds if the peers follow the protocol
(`methods.sealed.charges`). So an organization names each peer, pins the key of its ledger itself,
having compared fingerprints with that organization, and says how many columns are at stake.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from colonnade.core.config import Count, about
from colonnade.methods.sealed.claims import PEERS
from colonnade.methods.sealed.ring import available
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.v1 import job_pb2

_ALGORITHM = "ed25519:"
_KEY_BYTES = 32
_MAX_HOSTILE = 1000.0
HOSTILE_DELTA = 1e-6

TEMPLATE = f"""\
# Sealed jobs (experimental; `kinds` must name "sealed"): products under encryption, whose price
# holds only if these peers follow the protocol. Compare fingerprints with each of them first:
# `colonnade party peers`, then `colonnade party pin`.
# sealed = "{PEERS}"
# sealed_peers = {{ laboratory = "ed25519:0123..." }}
# The most columns, with the label, that one job may take into such products.
# sealed_columns = 12
# A shield: noise on every row before it is sealed or multiplied, so that even peers that do not
# follow the protocol learn no more than this, at delta 1e-6, from a job's products; its means and
# Gram matrix come on top. The ledger's account "hostile" pays, whose cap is set by
# `colonnade ledger cap --account hostile`. Costs accuracy.
# hostile_epsilon = 28
"""


@dataclass(frozen=True, slots=True)
class SealedGrant:
    """Whom a party trusts to follow the protocol, and with how much."""

    pins: Mapping[str, bytes]  # public ledger keys by party
    columns: int
    shield_units: int = 0  # of the hostile account, for a job's shield; 0 for no shield

    def objection(self, spec: SealedSpec, party: str) -> str | None:
        """Return why a job does not fit, or None."""
        part = spec.part(party)
        for peer in spec.peers(part):
            if peer not in self.pins:
                return (
                    f"products with {peer} under encryption are not granted: its key is not pinned"
                )
        if (count := spec.n_sealed(part)) > self.columns:
            return f"{count} columns under encryption are more than the {self.columns} granted"
        shield = spec.shield(part)
        if self.shield_units and not (shield and shield.cost <= self.shield_units):
            return "rows are to be shielded for hostile_epsilon, and the job does not"
        return None

    def to_proto(self) -> job_pb2.SealedGrant:
        """Return what a coordinator is told of the grant."""
        peers = [
            job_pb2.SealedGrant.Peer(party=name, ledger_key=key) for name, key in self.pins.items()
        ]
        return job_pb2.SealedGrant(
            peers=peers, columns=self.columns, shield_units=self.shield_units
        )


def objection_to(grant: SealedGrant | None, spec: object, party: str) -> str | None:
    """Return why the policy refuses a job's exchange under encryption, or None."""
    if not isinstance(spec, SealedSpec):
        return None
    if not available():
        return "this program cannot seal; it lacks the extra colonnade[sealed]"
    if grant is None:
        return f'products under encryption are not granted (sealed = "{PEERS}")'
    return grant.objection(spec, party)


def grant_of(
    sealed: str,
    peers: Mapping[str, str],
    columns: Count | None,
    *,
    hostile_epsilon: float | None,
    kinds: tuple[str, ...],
) -> SealedGrant | None:
    """Return what an ``[[allow]]`` grants; `ValueError` names the key that is wrong."""
    if not sealed:
        if peers or columns is not None or hostile_epsilon is not None:
            raise ValueError(f'sealed: is missing; sealed_peers need sealed = "{PEERS}"')
        return None
    if sealed != PEERS:
        raise ValueError(f'sealed: must be "{PEERS}", which is all that is promised')
    if SealedSpec.kind not in kinds:
        raise ValueError(f'kinds: must name "{SealedSpec.kind}" where sealed is granted')
    if columns is None:
        raise ValueError("sealed_columns: is missing")
    shield = 0
    if hostile_epsilon is not None:
        if not 0.1 <= hostile_epsilon <= _MAX_HOSTILE:
            raise ValueError(f"hostile_epsilon: must lie between 0.1 and {_MAX_HOSTILE:g}")
        shield = units_down(rho_of(hostile_epsilon, HOSTILE_DELTA))
    with about("sealed_peers"):
        pins = {name: key_from_text(text) for name, text in peers.items()}
        check_distinct(pins)
    return SealedGrant(pins, columns, shield)


def check_distinct(pins: Mapping[str, bytes]) -> None:
    """Raise `ValueError` if two peers have one key: either could then sign for the other."""
    names: dict[bytes, str] = {}
    for name, key in pins.items():
        if (other := names.setdefault(key, name)) != name:
            raise ValueError(f"{other!r} and {name!r} have the same key; each ledger has its own")


def key_to_text(key: bytes) -> str:
    """Return a ledger's public key as policies have it."""
    return _ALGORITHM + key.hex()


def key_from_text(text: str) -> bytes:
    """Return the public key that a policy names; `ValueError` if it is none."""
    try:
        key = bytes.fromhex(text.removeprefix(_ALGORITHM))
    except ValueError:
        key = b""
    if not text.startswith(_ALGORITHM) or len(key) != _KEY_BYTES:
        raise ValueError(f'a key is "{_ALGORITHM}" and {2 * _KEY_BYTES} hexadecimal digits')
    return key


def fingerprint(key: bytes) -> str:
    """Return 40 digits of a key's SHA-256 in groups of four, to be read out and compared."""
    digest = hashlib.sha256(b"colonnade ledger key\0" + key).hexdigest()[:40]
    return " ".join(digest[at : at + 4] for at in range(0, len(digest), 4))
