"""Student's t is that of scipy."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from specmine.mining.statistics.student_t import t_quantile, two_sided_p


@given(st.floats(0.5, 1e5), st.floats(1e-6, 1 - 1e-6))
@example(67929.0, 0.5000597264726203)
def test_students_t_is_scipys(df: float, probability: float) -> None:
    """Quantile and tail probability to six digits."""
    value = float(stats.t.ppf(probability, df))
    assert t_quantile(probability, df) == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert two_sided_p(value, df) == pytest.approx(2 * float(stats.t.sf(abs(value), df)), rel=1e-7, abs=1e-12)
