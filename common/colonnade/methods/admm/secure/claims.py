"""What secure sums over a cohort promise, in words: for plans, approvals and reports alike.

The mathematics is in `masking.cohort` and `privacy.distributed`.
"""

from colonnade.methods.admm.spec import AdmmSpec
from colonnade.privacy.accounting import format_units
from colonnade.privacy.distributed import GaussianShare


def alone_units(spec: AdmmSpec) -> int:
    """Return what a client has spent if everybody but its own host colludes, in units."""
    total = 0
    for release, count in ((spec.displacement, spec.max_participations), (spec.own_intercept, 1)):
        if release is not None and isinstance(release.mechanism, GaussianShare):
            total += count * release.mechanism.cost_alone
    return total


def cohort_promise(spec: AdmmSpec, delta: float) -> str:
    """Return what is promised to a client where only the sum over all hosts is opened."""
    if (rules := spec.cohort_rules) is None:
        return ""
    return (
        "Holds if named peers follow the protocol: answers are summed under masks, and of "
        f"{rules.maskers} hosts at most {rules.colluding} tell the coordinator what they know. "
        f"Nothing opens below {rules.threshold} hosts, and every sum has the noise of at least "
        f"{rules.honest} honest ones. If all others collude, only the noise of a client's own "
        f"host is left: {format_units(alone_units(spec), delta)} then."
    )
