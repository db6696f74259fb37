"""How many false alarms do other detectors give on the same simulated series, and which changes do they find?

    python -m venv /tmp/detectors && /tmp/detectors/bin/pip install apache-otava asv ruptures
    .venv/bin/python -m bench.regression.alternatives /tmp/detectors/bin/python

Needs an environment of its own for the detectors, no root.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
from scipy import stats

from specmine.mining.regression.sequential_test import begin, with_lifetime

SERIES, RESTARTS, POINTS = 200, 20, 5
"""A series is 20 restarts of 5 points each; the change, if any, comes after 10 of them."""
SHIFT = 0.05

_THERE = r"""
import json, sys, contextlib, io
import numpy as np
def otava():
    try:
        from otava.analysis import compute_change_points
    except ImportError:
        from hunter.analysis import compute_change_points
    def found(series):
        result = compute_change_points(series, window_len=50, max_pvalue=0.001, min_magnitude=0.0)
        points = result[0] if isinstance(result, tuple) else result
        return [p.index for p in points]
    return found
def asv():
    from asv.step_detect import detect_steps
    return lambda series: [int(s[0]) for s in detect_steps(series)[1:]]
def ruptures():
    import ruptures
    def found(series):
        y = np.array(series)
        sigma = np.median(np.abs(np.diff(y))) / 0.6745 / np.sqrt(2)
        algo = ruptures.KernelCPD(kernel="linear").fit(y)
        return algo.predict(pen=4 * sigma**2 * np.log(len(y)))[:-1]
    return found
data = json.load(sys.stdin)
answer = {}
for name, make in (("otava", otava), ("asv", asv), ("ruptures", ruptures)):
    try:
        detect = make()
        with contextlib.redirect_stdout(io.StringIO()):
            answer[name] = {kind: [detect(s) for s in series] for kind, series in data.items()}
    except Exception as error:
        answer[name] = repr(error)
json.dump(answer, sys.stdout, default=int)
"""


def simulated(shift: float, restart: float, rng: np.random.Generator) -> list[list[float]]:
    """Return series in which restarts differ by ``restart`` and points inside one by 1 %."""
    found = []
    for _ in range(SERIES):
        level = np.repeat(np.exp(rng.normal(0, restart, RESTARTS)), POINTS)
        level[RESTARTS // 2 * POINTS :] *= 1 + shift
        found.append((level * np.exp(rng.normal(0, 0.01, RESTARTS * POINTS))).tolist())
    return found


def specmine_finds(series: list[float]) -> bool:
    """Look after each restart of the second half, at 1 %: is a change ever reported?"""
    levels = np.median(np.array(series).reshape(RESTARTS, POINTS), axis=1)
    state = begin(levels[: RESTARTS // 2].tolist())
    for value in levels[RESTARTS // 2 :]:
        state = with_lifetime(state, float(value))
        if state.log_e >= np.log(100.0):
            return True
    return False


def t_test_finds(series: list[float]) -> bool:
    """Compare all points of both halves at 1 %, as if they were independent."""
    half = len(series) // 2
    return bool(stats.ttest_ind(series[:half], series[half:], equal_var=False).pvalue < 0.01)


def main() -> None:
    """Print per detector and kind of series the share with any alarm."""
    rng = np.random.default_rng(1)
    kinds = {
        "no restart effect, no change": simulated(0.0, 0.0, rng),
        "restarts 2 %, no change": simulated(0.0, 0.02, rng),
        "restarts 2 %, +5 %": simulated(SHIFT, 0.02, rng),
        "restarts 2 %, +10 %": simulated(0.10, 0.02, rng),
        "restarts 0.5 %, +5 %": simulated(SHIFT, 0.005, rng),
    }
    rows = {
        "specmine, 1 %, each restart": {k: np.mean([specmine_finds(s) for s in v]) for k, v in kinds.items()},
        "t-test, 1 %, all points": {k: np.mean([t_test_finds(s) for s in v]) for k, v in kinds.items()},
    }
    if len(sys.argv) > 1:
        done = subprocess.run(
            [sys.argv[1], "-c", _THERE], input=json.dumps(kinds), capture_output=True, text=True, check=False
        )
        answers = json.loads(done.stdout) if done.returncode == 0 else {"detectors": done.stderr[-300:]}
        for name, answer in answers.items():
            if isinstance(answer, str):
                print(f"{name} could not run: {answer}")
            else:
                rows[name] = {k: np.mean([len(found) > 0 for found in v]) for k, v in answer.items()}
    print(f"{'share of series with an alarm':32}" + "".join(f"{name:>30}" for name in kinds))
    for name, row in rows.items():
        print(f"{name:32}" + "".join(f"{100 * row[kind]:28.1f} %" for kind in kinds))


if __name__ == "__main__":
    main()
