"""What one run measured, as bytes: durations in their order, or cells of a histogram, function by function."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specmine.mining.regression.sample import Floats, Sample, sample_of_durations

from .ledger import LARGEST_RESULT

_LARGEST_TEXT = 64 << 20


class BadResult(ValueError):
    """Bytes that are no result."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionResult:
    """One function in one run, its warm-up left out."""

    function: str
    module: str
    warmup: int
    """Calls that were left out."""
    rate: float | None
    """Calls a second, if known."""
    durations_ns: Floats | None
    """In their order; None where only cells are known."""
    cells: Sample | None

    @property
    def sample(self) -> Sample:
        """The durations as a sample."""
        if self.cells is not None:
            return self.cells
        assert self.durations_ns is not None
        return sample_of_durations(self.durations_ns)


def encoded(found: Sequence[FunctionResult]) -> bytes:
    """Return results as bytes. Raises BadResult if they are too large."""
    text = json.dumps({"functions": [_entry(each) for each in found]}, separators=(",", ":"), allow_nan=False)
    packed = zlib.compress(text.encode(), 6)
    if len(packed) > LARGEST_RESULT:
        raise BadResult(f"its durations take {len(packed) >> 20} MiB, more than {LARGEST_RESULT >> 20}")
    return packed


def decoded(packed: bytes) -> tuple[FunctionResult, ...]:
    """Return the results in bytes, whoever wrote them. Raises BadResult."""
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, _LARGEST_TEXT)
        if unpacker.unconsumed_tail:
            raise BadResult("it is too large")
        return tuple(_function(each) for each in json.loads(text)["functions"])
    except (zlib.error, ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise BadResult(f"the result cannot be read: {error}") from error


def _entry(each: FunctionResult) -> dict[str, object]:
    entry: dict[str, object] = {
        "function": each.function, "module": each.module, "warmup": each.warmup, "rate": each.rate
    }  # fmt: skip
    if each.durations_ns is not None:
        entry["durations_ns"] = _numbers(each.durations_ns)
    if each.cells is not None:
        entry["cells"] = [_numbers(each.cells.lower), _numbers(each.cells.upper), each.cells.counts.tolist()]
    return entry


def _numbers(values: Floats) -> list[float]:
    whole = values.astype(np.int64)
    return whole.tolist() if bool((whole == values).all()) else [float(f"{each:.12g}") for each in values]


def _function(entry: dict[str, object]) -> FunctionResult:
    name, module, warmup, rate = entry["function"], entry["module"], entry["warmup"], entry["rate"]
    if not isinstance(name, str) or not isinstance(module, str) or max(len(name), len(module)) > 10_000:
        raise BadResult("a function has no name")
    if not isinstance(warmup, int) or warmup < 0:
        raise BadResult("its warm-up is no count")
    if rate is not None and not (isinstance(rate, (int, float)) and 0 <= rate < math.inf):
        raise BadResult("a rate is no number")
    durations = cells = None
    if "durations_ns" in entry:
        durations = _checked(entry["durations_ns"])
    else:
        lower, upper, counts = (_checked(each) for each in entry["cells"])  # type: ignore[attr-defined]
        if bool((counts > 1e12).any()):
            raise BadResult("a count is too large")
        if not len(lower) == len(upper) == len(counts) or bool((upper < lower).any() or (np.diff(lower) < 0).any()):
            raise BadResult("its cells do not ascend")
        cells = Sample(lower, upper, counts.astype(np.int64))
    return FunctionResult(
        function=name, module=module, warmup=warmup, rate=None if rate is None else float(rate), durations_ns=durations,
        cells=cells,
    )  # fmt: skip


def _checked(values: object) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or not bool(np.isfinite(found).all()) or bool((found < 0).any() or (found > 1e18).any()):
        raise BadResult("a duration is no number of nanoseconds")
    return found
