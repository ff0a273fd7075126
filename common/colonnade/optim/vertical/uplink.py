"""How many bytes a vertical job sends: exact, from public numbers, before any data is read.

Bodies have sizes that depend on the specification alone. What a job sends in all depends on which
features are chosen, through the number of shares; the most it can send does not.
"""

from collections.abc import Iterable

from colonnade.optim.vertical.spec import (
    LABEL,
    MEANS,
    SELECT,
    SELECT_BYTES,
    SHARE,
    FrankWolfeSpec,
)


def body_bytes(spec: FrankWolfeSpec, party: str, kind: str) -> int:
    """Return the size of one body of ``kind`` from ``party``."""
    if kind == SELECT:
        return SELECT_BYTES
    if kind == MEANS:
        return spec.means(spec.block(party))[1].n_bytes
    sketch = spec.sketch("")  # sizes do not depend on the job's name
    if kind == SHARE:
        return spec.share(sketch)[1].n_bytes
    if kind == LABEL:
        return spec.label_share(sketch)[1].n_bytes
    raise ValueError("the job has no release of that kind")


def payload_bytes(spec: FrankWolfeSpec, party: str, kinds: Iterable[str]) -> int:
    """Return the size of the bodies of ``kinds``, each as often as it is named."""
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    return sum(count * body_bytes(spec, party, kind) for kind, count in counts.items())


def most_payload(spec: FrankWolfeSpec, party: str) -> dict[str, int]:
    """Return the most bytes of each kind that ``party`` can ever send."""
    return {
        kind: count * body_bytes(spec, party, kind)
        for kind, count in spec.most_releases(party).items()
        if count
    }
