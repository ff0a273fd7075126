"""The benchmark of alignments measures what it says."""

import pytest

from colonnade.bench.tables.align import measure_alignment


@pytest.mark.slow
def test_figures_name_the_predicted_bytes_and_a_ratio_to_the_floor() -> None:
    figures = measure_alignment(n_parties=2, n_ids=300)
    assert figures.up_bytes_per_id == figures.predicted_bytes_per_id
    # Beside 300 people a list has 64 canaries and, in each of two patterns, 0 to 2 * 45 dummies:
    # the law ends there. A listed id is two points and a tag; keys, signatures and attestations of
    # a party are under 8 kB.
    least, most = ((32 * 2 + 16) * (300 + 64 + 2 * dummies) / 300 for dummies in (0, 90))
    assert least < figures.up_bytes_per_id < most + 8192 / 300
    assert figures.ids_per_s_vs_x25519_floor > 0.0
    assert 0.0 < figures.cpu_vs_x25519_floor < 1.0
    assert figures.cpu_us_per_id > 0.0
