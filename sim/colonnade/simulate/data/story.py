"""Made-up organizations: a hospital, a laboratory, an insurer, with columns in familiar units."""

from collections.abc import Sequence

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import Bounds
from colonnade.methods.problem import Loss
from colonnade.simulate.data.synthetic import BOUND, Synthetic
from colonnade.simulate.sites import Site, SiteColumn

# Name, centre and spread of each quantity; bounds are declared at BOUND spreads from the centre.
_QUANTITIES: dict[str, tuple[tuple[str, float, float], ...]] = {
    "hospital": (
        ("age", 55, 16),
        ("systolic_bp", 130, 18),
        ("diastolic_bp", 80, 11),
        ("heart_rate", 74, 12),
        ("bmi", 27, 5),
        ("body_temperature", 36.8, 0.5),
        ("length_of_stay", 5, 2),
        ("prior_admissions", 2, 0.8),
        ("oxygen_saturation", 96, 1.6),
        ("respiratory_rate", 16, 3),
        ("pain_score", 4, 1.6),
        ("comorbidities", 3, 1.2),
        ("medications", 6, 2.4),
        ("waist", 95, 13),
        ("walking_speed", 1.1, 0.25),
        ("grip_strength", 32, 9),
    ),
    "laboratory": (
        ("glucose", 5.8, 1.3),
        ("creatinine", 80, 20),
        ("haemoglobin", 140, 16),
        ("cholesterol", 5.0, 1.0),
        ("triglycerides", 1.6, 0.6),
        ("sodium", 140, 3),
        ("potassium", 4.2, 0.4),
        ("crp", 6, 2.4),
        ("white_cells", 7, 1.9),
        ("platelets", 250, 60),
        ("alt", 28, 11),
        ("albumin", 42, 4),
        ("ferritin", 120, 48),
        ("tsh", 2.0, 0.8),
        ("hba1c", 41, 8),
        ("urea", 5.5, 1.7),
    ),
    "insurer": (
        ("claims_last_year", 5, 2),
        ("premium", 210, 60),
        ("deductible", 500, 190),
        ("visits_gp", 4, 1.6),
        ("visits_specialist", 3, 1.2),
        ("physiotherapy", 6, 2.4),
        ("dental_costs", 300, 120),
        ("drug_costs", 640, 250),
        ("aids_costs", 150, 60),
        ("sick_days", 8, 3.2),
        ("years_insured", 12, 4.8),
        ("household", 2.6, 1.0),
        ("transport_costs", 90, 36),
        ("rehabilitation", 4, 1.6),
        ("home_care", 5, 2),
        ("screenings", 2, 0.8),
    ),
    "pharmacy": (
        ("prescriptions", 9, 3.6),
        ("antibiotics", 2, 0.8),
        ("adherence", 75, 10),
        ("opioids", 1, 0.4),
    ),
    "registry": (("deprivation", 50, 19), ("distance_to_care", 12, 4.8), ("green_space", 30, 12)),
    "clinic": (("sleep_hours", 7, 1.1), ("steps", 6000, 2400), ("stress", 5, 2)),
}
_LABELS = {Loss.SQUARED: ("annual_cost", 5200.0, 2000.0), Loss.LOGISTIC: ("readmitted", 0.5, 0.2)}


def party_names(count: int) -> tuple[str, ...]:
    """Return the names of ``count`` organizations."""
    known = tuple(_QUANTITIES)
    return tuple(known[k] if k < len(known) else f"site-{k + 1}" for k in range(count))


def even_split(features: int, parties: int) -> list[int]:
    """Return how many of ``features`` columns each of ``parties`` gets."""
    return [features // parties + (place < features % parties) for place in range(parties)]


def feature_names(party: str, count: int) -> tuple[str, ...]:
    """Return the names of an organization's first ``count`` columns."""
    known = [name for name, _, _ in _QUANTITIES.get(party, ())]
    return tuple(known[i] if i < len(known) else f"measure_{i + 1}" for i in range(count))


def sites_of(made: Synthetic, parties: Sequence[str], *, owner: int | None) -> list[Site]:
    """Put a made-up table into the organizations' own units; ``owner`` alone has the label."""
    name, centre, spread = _LABELS[made.loss]
    if made.loss is Loss.LOGISTIC:
        label = SiteColumn(name, Bounds(0.0, 1.0), made.label)
    else:
        label = _column(name, centre, spread, made.label)
    sites = []
    for k, (party, split) in enumerate(zip(parties, made.splits, strict=True)):
        quantities = {known[0]: known for known in _QUANTITIES.get(party, ())}
        features = [
            _column(*quantities.get(title, (title, 0.0, 1.0)), made.columns[feature])
            for title, feature in zip(feature_names(party, len(split)), split, strict=True)
        ]
        sites.append(Site(party, features, label if owner in (None, k) else None))
    return sites


def _column(name: str, centre: float, spread: float, values: FloatArray) -> SiteColumn:
    low, high = centre - BOUND * spread, centre + BOUND * spread
    return SiteColumn(name, Bounds(low, high), centre + spread * values)
