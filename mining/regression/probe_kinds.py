"""Whether calls timed by different kinds of probes may be compared: timed alone, or timed with their call path.

Both measure the same durations, less the probes' own cost. What is not known of that cost must not look like a change.
"""

from __future__ import annotations

LARGEST_SHARE = 0.05
"""Of a duration, of the probes' own cost: an error of a tenth of it is then below the tolerance of a comparison."""


def are_comparable(median_ns: float, bias_ns: float) -> bool:
    """Return whether calls of this duration are comparable whichever kind of probe timed them.

    Parameters
    ----------
    median_ns : float
        Of their durations, without the probes' own cost.
    bias_ns : float
        That cost.
    """
    return bias_ns <= LARGEST_SHARE * median_ns
