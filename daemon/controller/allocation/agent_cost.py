"""What our own processes may cost beside the programs watched, and how hard that presses now.

The promise is a share of one CPU over any ten minutes after the first. What loading and calibrating took is not
counted: it is over, and learning less would not undo it. The first ten minutes have an allowance besides, to read the
program's files and to learn the first functions. Half of their share is there at once, since what is learned first is
worth most; the rest comes as time passes. What is left is a pressure in [0, 1] that the controller answers by sampling,
planning and learning less. On slow or shared CPUs the least that remains can still cost more than was promised: after
the first ten minutes what is owed then stretches how far apart turns, plans and what is learned are, checks last.

Answers to requests from outside count up to a third of the promise. What they take beyond that has bounds of its own,
and comes on top: else whoever may ask could keep the daemon from learning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from specmine.daemon.config.settings import SECOND, Settings

ALLOWANCE_NS = 8 * SECOND
"""CPU time of the beginning: reading the program's files, and some 0.1 s for each function that is learned."""
AVERAGED_NS = 600 * SECOND
"""Over this time the share is kept."""
LONGEST_STRETCH = 4.0
"""So much further apart is at most what goes on at full pressure."""
MOST_OWED = 1 / 6
"""At most this share of what ten minutes bring is owed: what a busy while cost beyond that is forgiven. With half of it
owed, windows stayed rare for a quarter of an hour after such a while."""
ANSWERS_PART = 1 / 3
"""Answers count up to this part of the promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCost:
    """CPU time that our own processes may still use."""

    left_ns: float = 0.0
    spent_ns: int = 0
    start_ns: int = 0
    """What loading and calibrating took of it."""
    loading_ns: int = 0
    """What programs took of that which were loaded later."""
    answered_ns: int = 0
    """What answers to requests from outside took of it."""
    answers_left_ns: float = 0.0
    """So much may answers still take that counts."""
    began_ns: int = 0
    now_ns: int = 0
    pressure: float = 0.0
    """0: nothing need be saved; 1: all is spent."""
    stretch: float = 1.0
    """So much further apart is what goes on at full pressure, from 1 to ``LONGEST_STRETCH``: with what is owed."""


def begun(now_ns: int, settings: Settings, spent_ns: int = 0, loading_ns: int = 0) -> AgentCost:
    """Return what there is at the start; ``spent_ns``: CPU time that loading and calibrating took."""
    return AgentCost(
        left_ns=ALLOWANCE_NS + _saved(settings),
        spent_ns=spent_ns,
        start_ns=spent_ns,
        loading_ns=loading_ns,
        answers_left_ns=ANSWERS_PART * _saved(settings),
        began_ns=now_ns,
        now_ns=now_ns,
    )


def used(
    before: AgentCost, spent_ns: int, now_ns: int, settings: Settings, *, loading_ns: int = 0, answered_ns: int = 0
) -> AgentCost:
    """Return what is left after some time, and after ``spent_ns`` of CPU time since the start.

    Of these, ``loading_ns`` took programs that were loaded later: they belong to the start, too. Answers took
    ``answered_ns``.
    """
    loaded_ns = max(0, loading_ns - before.loading_ns)
    before = replace(before, start_ns=before.start_ns + loaded_ns, loading_ns=loading_ns)
    if settings.agent <= 0:  # no promise was made
        return replace(before, left_ns=0.0, spent_ns=spent_ns, answered_ns=answered_ns, now_ns=now_ns)
    answers_ns = max(0, answered_ns - before.answered_ns)
    answers_left_ns = before.answers_left_ns + ANSWERS_PART * settings.agent * (now_ns - before.now_ns)
    answers_left_ns = min(answers_left_ns, ANSWERS_PART * _saved(settings))
    uncounted_ns = max(0.0, answers_ns - answers_left_ns)
    left = before.left_ns - max(0, spent_ns - before.spent_ns - loaded_ns) + uncounted_ns
    earned = settings.agent * (_counted(now_ns - before.began_ns) - _counted(before.now_ns - before.began_ns))
    saved, most_owed = _saved(settings), MOST_OWED * settings.agent * AVERAGED_NS
    steady = now_ns - before.began_ns >= AVERAGED_NS
    # the allowance lapses after the first ten minutes; what is owed for them, or for a busy hour, is not paid back
    left = max(min(left + earned, saved), -most_owed) if steady else max(left, min(left + earned, saved))
    owed = min(1.0, max(0.0, -left / most_owed)) if steady else 0.0
    return replace(
        before,
        left_ns=left,
        spent_ns=spent_ns,
        answered_ns=answered_ns,
        answers_left_ns=answers_left_ns - (answers_ns - uncounted_ns),
        now_ns=now_ns,
        pressure=round(min(1.0, max(0.0, 1 - left / saved)), 2),
        stretch=round(1 + (LONGEST_STRETCH - 1) * owed, 2),
    )


def _counted(age_ns: int) -> float:
    """Return the time that the share is earned in; half of the first ten minutes' was there at the start."""
    return max(0, age_ns) - 0.5 * min(max(0, age_ns), AVERAGED_NS)


def _saved(settings: Settings) -> float:
    """Return the most that is saved up: half of what the averaged time brings."""
    return 0.5 * settings.agent * AVERAGED_NS
