"""What a moments job's specification must satisfy: both sides check it before anything else."""

from typing import TYPE_CHECKING

from colonnade.linear.ball import MAX_COLUMNS, MAX_OUTPUTS, MAX_ROWS
from colonnade.methods.problem import Labels

if TYPE_CHECKING:
    from colonnade.methods.moments.spec import MomentsSpec
    from colonnade.methods.sealed.spec import SealedSpec


def check_spec(spec: "MomentsSpec") -> None:
    """Raise `ValueError` unless the job can be run as it is written."""
    check_columns(spec)
    if spec.mean_units < 1 or spec.gram_units < 1:
        raise ValueError("means and Gram matrices need a price")
    if not 1 <= spec.directions <= spec.probes:
        raise ValueError("a party shares at least one direction and probes at least as many")
    scales = (spec.share_clip, spec.probe_clip, spec.cross_clip)
    check_numbers(spec.radius, spec.reach, *scales, penalty=spec.penalty, label=spec.label_weight)
    _check_labels(spec)
    _check_sharing(spec)
    if spec.keep < 0 or (spec.wide() and spec.screen_units < 1):
        raise ValueError("screening needs a number of features to keep and a price")
    spec.sketch("")  # an impossible one is refused here
    for part in spec.parts:
        spec.max_units(part.party)  # and so is a price too small for its noise


def check_columns(spec: "MomentsSpec | SealedSpec") -> None:
    """Refuse parties, columns, rows or an overlap that no job can have."""
    names = [part.party for part in spec.parts]
    if not names or len(set(names)) != len(names):
        raise ValueError("a job needs parties with different names")
    if not 1 <= spec.n_rows <= MAX_ROWS:
        raise ValueError(f"a job has 1 to {MAX_ROWS} rows")
    if any(not 1 <= len(part.features) < MAX_COLUMNS for part in spec.parts):
        raise ValueError(f"every party needs features, fewer than {MAX_COLUMNS}")
    if any(len(set(part.features)) != len(part.features) for part in spec.parts):
        raise ValueError("the features of a party must have different names")
    pairs = len(names) * (len(names) - 1) // 2
    if spec.overlap and (not spec.presence or len(spec.overlap) != pairs):
        raise ValueError("an overlap is of each two parties, in a job that knows who is present")
    if any(not 0 <= people <= spec.n_rows for people in spec.overlap):
        raise ValueError("two parties have at most all people in common")


def check_numbers(*scales: float, penalty: float, label: float) -> None:
    """Refuse a radius, a reach, a clip, a penalty or a label's weight that is out of range."""
    if not all(0.01 <= scale <= 100.0 for scale in scales):
        raise ValueError("a radius, a reach or a clip must lie between 0.01 and 100")
    if not (0.0 <= penalty <= 100.0 and 0.01 <= label <= 100.0):
        raise ValueError("the penalty lies in 0 .. 100, the label's weight in 0.01 .. 100")


def _check_labels(spec: "MomentsSpec") -> None:
    owners = sum(part.holds_label for part in spec.parts)
    if spec.labels is Labels.SHARED and owners != len(spec.parts):
        raise ValueError("with shared labels every party holds the label")
    if spec.labels is Labels.SKETCHED:
        if owners != 1 or spec.label_units < 1:
            raise ValueError("with sketched labels one party holds it, and its share a price")
        if len(spec.parts) > 1 and spec.marginal_units < 1:
            raise ValueError("with sketched labels the others' inner products need a price")


def _check_sharing(spec: "MomentsSpec") -> None:
    if spec.share_units < 0 or spec.cross_units < 0:
        raise ValueError("a price cannot be negative")
    if bool(spec.share_units) != bool(spec.cross_units):
        raise ValueError("directions and inner products with them both need a price")
    if spec.share_units and len(spec.parts) == 1:
        raise ValueError("a party alone has nobody to share with")
    if spec.share_units and max(map(spec.n_others, spec.parts)) > MAX_OUTPUTS:
        raise ValueError(f"all other parties of one may share {MAX_OUTPUTS} directions together")
