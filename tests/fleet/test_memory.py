"""What is freed is kept."""

from __future__ import annotations

import subprocess
import sys

_ARRAYS = """
import resource, sys
import numpy as np
from specmine.fleet.memory import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def some():
    return [np.ones(200_000) for _ in range(20)]
some()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    some()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_large_arrays_cost_no_page_faults() -> None:
    """After the first ones; otherwise each costs its pages anew."""
    faults = {
        how: int(subprocess.run([sys.executable, "-c", _ARRAYS, how], check=True, capture_output=True).stdout)
        for how in ("keep", "give back")
    }
    assert faults["keep"] < faults["give back"] / 10
