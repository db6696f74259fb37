"""How often each finished function is observed: oftener where more of the time goes, as far as our own work allows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import Total, waits_for_work

from .function_request import window_cost
from .means import Means

WATCH_EVERY_NS = 10 * SECOND
"""Windows of finished functions come this often where what is kept for them, or left, allows it."""
MOST_AWAITED = 8
"""Violated functions that are observed each ``verify_every``; where there are more, each comes more rarely."""
MOST_OFTEN = 3.0
"""A function is observed so many times as often as the average one at most, and so many times more rarely at least."""


def check_periods(
    finished: Sequence[FunctionState], share: float, total: Total, means: Means, settings: Settings
) -> Mapping[str, float]:
    """Return the time between two checks of each function, ns, by key.

    The mean time until a change is found, weighted by the time that goes into each function, is shortest where the
    periods go by the inverse root of these weights. On the whole there are as many checks as if all had one period.
    One that waits for work is never violated: it is observed most rarely, for its levels. One that is violated is
    observed each ``verify_every`` though our own work must be saved: somebody waits to hear that it is as usual again.

    Parameters
    ----------
    finished : sequence of FunctionState
    share : float
        What is kept for checks, ns of cost per second.
    total : Total
        The time of all functions.
    means : Means
    settings : Settings
    """
    if not finished:
        return {}
    mean_ns = _mean_period_ns(finished, share, means, settings)
    # with CPU time of our own left none waits longer than the user asks for
    longest_ns = settings.verify_every_ns * means.check_stretch * (1 + means.pressure)
    often = _how_often(finished, total, means.loop_waits)
    periods = {one.key: min(mean_ns / often[one.key], longest_ns) for one in finished}
    violated = [one.key for one in finished if one.violations.open]
    awaited_ns = settings.verify_every_ns * max(1.0, len(violated) / MOST_AWAITED)
    periods |= {key: min(periods[key], awaited_ns) for key in violated}
    rarely_ns = max(settings.verify_every_ns, mean_ns * MOST_OFTEN)
    return {**periods, **{one.key: max(periods[one.key], rarely_ns) for one in finished if waits_for_work(one)}}


def _how_often(finished: Sequence[FunctionState], total: Total, idle: Mapping[str, float]) -> dict[str, float]:
    """Return how many times as often as on average each is observed; the mean is 1.

    Time in callees counts: what is called from several places may be slower for one of them only.
    """
    whole_ns = min(total.wall_ns, total.cpu_ns) or total.wall_ns
    works_ns = {one.key: one.profile.inclusive_ns * (1 - idle.get(one.key, 0.0)) for one in finished}
    roots = {key: math.sqrt(min(1.0, ns / whole_ns)) if whole_ns > 0 else 0.0 for key, ns in works_ns.items()}
    usual = statistics.fmean(roots.values())
    if usual <= 0:
        return dict.fromkeys(roots, 1.0)
    named = {one.key for one in finished if one.identity.hinted}
    bounded = {
        key: min(max(root / usual, 1.0 if key in named else 1 / MOST_OFTEN), MOST_OFTEN) for key, root in roots.items()
    }
    mean = statistics.fmean(bounded.values())
    return {key: value / mean for key, value in bounded.items()}


def _mean_period_ns(finished: Sequence[FunctionState], share: float, means: Means, settings: Settings) -> float:
    """Return how often all would be observed: as what is kept allows, less often if our own work must be saved.

    So it is while few functions are known and others wait: of what nobody knows no change is found at all.
    """
    least_ns: float = min(WATCH_EVERY_NS, settings.verify_every_ns)
    least_ns += max(means.pressure, means.backlog) * (settings.verify_every_ns - least_ns)
    round_ns = sum(window_cost(one, means, settings) for one in finished) * SECOND / max(share, 1.0)
    return max(least_ns, min(round_ns, settings.verify_every_ns)) * means.check_stretch
