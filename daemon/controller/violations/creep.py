"""Changes so slow that the detector's baseline follows them: blocks of minutes against the yardstick. Pure."""

from __future__ import annotations

import math
from dataclasses import replace

from specmine.daemon.config.settings import SECOND
from specmine.mining.levels.verdict import MARGIN, Factor, usual_factors
from specmine.model.observation import Observation
from specmine.model.violation import Direction, What

from .change import Change, log_factor
from .function_violations import Block
from .yardstick import Yardstick

BLOCK_NS = 600 * SECOND
"""Of a change that creeps three blocks of so long must be outside the range."""
BLOCKS = 3
FEWEST_IN_BLOCK = 5
_MEDIAN = Change(
    what=What.LEVEL, direction=Direction.OTHER, factor=Factor(value=1.0, low=1.0, high=1.0), quantile="p50"
)


def with_window(block: Block, yardstick: Yardstick, observation: Observation) -> tuple[Block, int | None]:
    """Return the block after one more window, and since when the median has been outside the range; None: it was not.

    Parameters
    ----------
    block : Block
    yardstick : Yardstick
        Settled: before that its range grows with each window.
    observation : Observation
    """
    factor = log_factor(_MEDIAN, yardstick, observation)
    if factor is None:
        return Block(), None
    if not block.began_ns:
        block = replace(block, began_ns=observation.start_ns)
    block = replace(block, windows=block.windows + 1, total=block.total + factor)
    if observation.end_ns - block.began_ns < BLOCK_NS:
        return block, None
    block = _next_block(block, yardstick, observation.end_ns)
    return (Block(), block.first_ns) if abs(block.outside) >= BLOCKS else (block, None)


def _next_block(block: Block, yardstick: Yardstick, now_ns: int) -> Block:
    """Return the next block after one that has ended."""
    p50 = yardstick.level.p50
    usual = usual_factors(p50) if p50 is not None else None
    low, high = usual or (0.0, math.inf)
    mean = math.exp(block.total / block.windows) if block.windows else 1.0
    side = 0
    if block.windows >= FEWEST_IN_BLOCK and usual is not None:
        side = (mean > max(high, 1 + MARGIN)) - (mean < min(low, 1 / (1 + MARGIN)))
    fresh = Block(began_ns=now_ns, first_ns=now_ns)
    if not side:
        return fresh
    running = block.outside if block.outside * side > 0 else 0
    first_ns = block.first_ns if running else block.began_ns
    return replace(fresh, outside=running + side, first_ns=first_ns)
