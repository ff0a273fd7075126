"""With whom a party takes part in secure sums: part of an ``[[allow]]``. Absence means no.

Privacy: the charge of a masked sum holds if the peers follow the protocol (`masking.cohort`). So an
organization names each peer, pins the key of its ledger itself, having compared fingerprints with
that organization, and says how many of them may collude with the coordinator.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from colonnade.core.config import about
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.sealed.claims import PEERS
from colonnade.party.sealed.policy import key_from_text

TEMPLATE = f"""\
# Secure sums over the hosts of a job (`kinds` must name "admm"): only the sum over all hosts is
# opened, with noise to which each adds its part. That holds only if these peers follow the
# protocol. Compare fingerprints with each of them first: `colonnade party peers`.
# cohort = "{PEERS}"
# cohort_peers = {{ clinic = "ed25519:0123..." }}
# At least so many of the hosts a job must assume to collude with the coordinator.
# cohort_colluding = 1
"""


@dataclass(frozen=True, slots=True)
class CohortGrant:
    """Whom a party trusts to follow the protocol of secure sums."""

    pins: Mapping[str, bytes]  # public ledger keys by party
    colluding: int = 0  # of the hosts, at least; a job must assume no fewer

    def objection(self, method: AdmmJobSpec, party: str) -> str | None:
        """Return why a job does not fit, or None."""
        for part, key in zip(method.parts, method.keys, strict=True):
            if part.party != party and self.pins.get(part.party) != key:
                return (
                    f"sums with {part.party} under masks are not granted: the key that the job "
                    "names is not pinned"
                )
        if method.spec.colluding < self.colluding:
            return (
                f"the job assumes that {method.spec.colluding} hosts may collude, and the policy "
                f"asks for {self.colluding}"
            )
        return None


def objection_to_cohort(grant: CohortGrant | None, method: object, party: str) -> str | None:
    """Return why the policy refuses a job's secure sums, or None."""
    if not isinstance(method, AdmmJobSpec) or not method.spec.maskers:
        return None
    if grant is None:
        return f'sums under masks are not granted (cohort = "{PEERS}")'
    return grant.objection(method, party)


def cohort_grant_of(
    cohort: str, peers: Mapping[str, str], colluding: int | None, *, kinds: tuple[str, ...]
) -> CohortGrant | None:
    """Return what an ``[[allow]]`` grants; `ValueError` names the key that is wrong."""
    if not cohort:
        if peers or colluding is not None:
            raise ValueError(f'cohort: is missing; cohort_peers need cohort = "{PEERS}"')
        return None
    if cohort != PEERS:
        raise ValueError(f'cohort: must be "{PEERS}", which is all that is promised')
    if AdmmJobSpec.kind not in kinds:
        raise ValueError(f'kinds: must name "{AdmmJobSpec.kind}" where cohort is granted')
    if colluding is not None and not 0 <= colluding <= 2**10:
        raise ValueError("cohort_colluding: must lie between 0 and 1024")
    with about("cohort_peers"):
        pins = {name: key_from_text(text) for name, text in peers.items()}
    return CohortGrant(pins, colluding or 0)
