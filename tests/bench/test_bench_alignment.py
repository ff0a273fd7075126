"""The benchmark of alignments measures what it says."""

import pytest

from colonnade.bench.tables.align import measure_alignment


@pytest.mark.slow
def test_figures_name_the_predicted_bytes_and_a_ratio_to_the_floor() -> None:
    figures = measure_alignment(n_parties=2, n_ids=300)
    assert figures.up_bytes_per_id == figures.predicted_bytes_per_id
    # 45 dummies in each of two patterns, and 64 canaries, beside 300 people.
    listed = 300 + 2 * 45 + 64
    assert figures.up_bytes_per_id == pytest.approx((32 * 2 + 16) * listed / 300, rel=0.15)
    assert figures.ids_per_s_vs_x25519_floor > 0.0
    assert 0.0 < figures.cpu_vs_x25519_floor < 1.0
    assert figures.cpu_us_per_id > 0.0
