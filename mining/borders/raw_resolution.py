"""The step of a clock, or of rounding, found in raw durations: in no list, and at any offset.

Durations of a coarse clock are multiples of its step. Then the phases of the durations, as parts of a step, agree:
the characteristic function has modulus one at the clock's frequency. It is searched by a fast Fourier transform, and
sharpened over all durations. Durations that somebody wrote with two or three digits have a step for each decade.

A duration stands for all that its step covers. So it is spread over that, and everything after works as on exact
durations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

_LEAST = 200  # durations from which a step is searched
_MULTIPLES = 4  # neighbouring ones of a step that must hold two calls each: two or three may be classes
_CLOSE = 10 / 9  # ratio of neighbouring multiples, of which two suffice
_FEW = 12
_KEEPS = 0.98  # share of the durations that keep to a step
_COHERENT = 0.8  # modulus of the characteristic function from which a step is looked at
_HARMONIC = 0.85  # of the highest peak: the lowest frequency that reaches it is that of the step
_FINE = 4096.0  # parts of a low duration: finer steps do not matter
_NARROW = 256.0  # ... nor steps finer than this part of where nearly all durations lie
_LONGEST = 1 << 18  # cells of the transform
_PHASES = 2048  # durations by which a frequency is sharpened
_TOLERANCE = 0.02  # of a step, and ...
_UNIT_NS = 1.001  # ... whole ns of both times of a clock: how far a duration may lie from a multiple
_DIGITS = 3  # numbers with more digits have finer steps than buckets
_WRITTEN = 1e-9
_SHARES = (0.02, 0.98)  # the bulk, in which a step is searched


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How coarse raw durations are; all fields 0: as fine as matters."""

    step_ns: float = 0.0
    """All durations are multiples of it ..."""
    offset_ns: float = 0.0
    """... plus this, in [0, step)."""
    digits: int = 0
    """Or all are written with so many decimal digits."""
    zero_ratio: float = 3.0
    """Over how large a ratio of durations those are spread that stand for 0."""

    def cells(self, durations_ns: Values) -> tuple[Values, Values]:
        """Return from where to where the exact durations may lie that each duration stands for, ns."""
        if self.is_fine:
            return durations_ns, durations_ns
        middle, step = self.nearest(durations_ns), self._steps(durations_ns)
        if self.digits:  # below a power of ten the step is a tenth
            first = middle < step * 10.0 ** (self.digits - 1) * (1 + _WRITTEN)
            low, high = middle - 0.5 * np.where(first, 0.1, 1.0) * step, middle + 0.5 * step
            return np.maximum(low, high / self.zero_ratio), high
        high = np.maximum(middle, 0.0) + 0.5 * step
        # on the log axis half a step above 0 has no lower end
        return np.maximum(middle - 0.5 * step, high / self.zero_ratio), high

    def nearest(self, durations_ns: Values) -> Values:
        """Return the nearest duration of this resolution, ns."""
        step = self._steps(durations_ns)
        return np.asarray(np.round((durations_ns - self.offset_ns) / step) * step + self.offset_ns)

    def _steps(self, durations_ns: Values) -> Values:
        if not self.digits:
            return np.full_like(durations_ns, self.step_ns)
        return np.asarray(10.0 ** (np.floor(np.log10(np.maximum(durations_ns, 1e-3)) + _WRITTEN) - self.digits + 1))

    @property
    def is_fine(self) -> bool:
        """Return whether nothing is to be spread."""
        return not self.digits and self.step_ns <= 0


FINE = Resolution()


def resolution_of(durations_ns: Values, *, above_ns: float = 0.0) -> Resolution:
    """Return the step of a clock or of rounding that durations have.

    Parameters
    ----------
    durations_ns : ndarray of float64
        A sample of one function's durations.
    above_ns : float
        Finer steps do not matter.

    Returns
    -------
    Resolution
        The coarser one, where both a step and digits are evident.
    """
    positive = durations_ns[durations_ns > 0]
    if len(positive) < _LEAST:
        return FINE
    found = max(
        (_clock(positive, above_ns), _digits(positive), _few(positive)), key=lambda one: _concentration(one, positive)
    )
    return replace(found, zero_ratio=_zero_ratio(durations_ns, found.step_ns)) if found.step_ns else found


def _concentration(resolution: Resolution, positive: Values) -> float:
    """Return the log likelihood of durations that keep to a resolution, per duration, over that of whole ns."""
    if resolution.is_fine:
        return 0.0
    low, high = resolution.cells(positive)
    keeps = np.abs(positive - resolution.nearest(positive)) <= max(_TOLERANCE * resolution.step_ns, _UNIT_NS)
    return float(np.where(keeps, np.log(np.maximum(high - low, 1.0)), 0.0).mean())


def _zero_ratio(durations_ns: Values, step: float) -> float:
    """Return the ratio over which durations below half a step have the density of those in the step above."""
    number = np.round(durations_ns / step)
    zeros, ones = int((number == 0).sum()), int((number == 1).sum())
    return float(min(max(3.0 ** (zeros / max(ones, 1)), 3.0), 1e3))


def _digits(positive: Values) -> Resolution:
    for digits in range(1, _DIGITS + 1):
        found = Resolution(digits=digits)
        nearest = found.nearest(positive)
        if float((np.abs(positive - nearest) <= _WRITTEN * positive).mean()) >= _KEEPS:
            return found if _neighbours(found, nearest) else FINE
    return FINE


def _neighbours(resolution: Resolution, durations_ns: Values) -> bool:
    """Return whether enough multiples hold calls beside one another, as those of a clock do and classes do not.

    Two or three will do if they hold nearly all calls without a gap and differ by a ninth at most: exact durations so
    close to one another are no classes.
    """
    values, calls = np.unique(resolution.nearest(durations_ns), return_counts=True)
    values, calls = values[calls >= 2], calls[calls >= 2]
    low, high = resolution.cells(values)
    touching = low[1:] <= high[:-1] * (1 + _WRITTEN)
    if int(touching.sum()) >= _MULTIPLES - 1:
        return True
    return len(values) > 1 and bool(touching.all()) and float(values[1]) <= _CLOSE * float(values[0])


def _few(positive: Values) -> Resolution:
    """Return the step of a clock that shows a few neighbouring multiples only."""
    values, calls = np.unique(positive, return_counts=True)
    values = values[calls >= 2]
    if not 2 <= len(values) <= _FEW:
        return FINE
    return _checked(float(np.diff(values).min()), positive, 0.0)


def _clock(positive: Values, above_ns: float) -> Resolution:
    low, high = (float(value) for value in np.quantile(positive, _SHARES))
    cell = max(min(low / _FINE, (high - low) / _NARROW), 0.25 * above_ns, 1e-3)
    length = min(1 << max(4, math.ceil(math.log2(2 * (high - low) / cell + 2))), _LONGEST)
    inside = positive[(positive >= low) & (positive < low + 0.5 * length * cell)]
    if high - low < _MULTIPLES * cell or len(inside) < _LEAST:
        return FINE
    counts = np.bincount(((inside - low) / cell).astype(np.int64), minlength=length)
    waves = np.arange(length // 2 + 1)
    # a cell blurs a phase by its width
    modulus = np.minimum(np.abs(np.fft.rfft(counts)) / (len(inside) * np.sinc(waves / length)), 1.0)
    first = math.ceil((_MULTIPLES - 1) * length * cell / max(float(inside.max() - low), cell))
    tried = np.flatnonzero(modulus[first:] >= _COHERENT)
    if not len(tried):
        return FINE
    best = modulus[first:][tried]
    # the coarsest step is the lowest frequency; between two waves a peak loses a tenth
    peak = int(tried[best >= _HARMONIC * float(best.max())][0]) + first
    while peak + 1 < len(modulus) and modulus[peak + 1] > modulus[peak]:
        peak += 1
    return _checked(_sharpened(peak / (length * cell), cell * length, inside, positive), positive, above_ns)


def _sharpened(frequency: float, span: float, inside: Values, positive: Values) -> float:
    """Return the step whose phases agree best, over durations that reach farther and farther."""
    reach = float(inside.max())
    step = 1.0 / span
    while True:
        some = _thinned(positive[positive <= reach])
        for _ in range(6):
            tried = frequency + step * np.linspace(-1, 1, 9)
            phases = np.exp(2j * np.pi * np.outer(tried, some))
            # the offset does not matter; all phases agree where the mean is longest
            frequency = float(tried[int(np.argmax(np.abs(phases.mean(axis=1))))])
            step *= 0.3
        if reach >= float(positive.max()):
            return 1.0 / frequency
        reach *= 4.0
        step = 0.25 / reach


def _thinned(values: Values) -> Values:
    return values if len(values) <= _PHASES else values[:: len(values) // _PHASES]


def _checked(step: float, positive: Values, above_ns: float) -> Resolution:
    """Return the step if nearly all durations keep to it, and enough multiples hold calls."""
    if step <= above_ns:
        return FINE
    offset = _offset(positive, step)
    for _ in range(3):  # least squares over all durations: the number of steps in each is known now
        number = np.round((positive - offset) / step)
        near = np.abs(positive - offset - number * step) <= max(_TOLERANCE * step, _UNIT_NS)
        if float((number[near] ** 2).sum()) > 0:
            step = float((number[near] * (positive[near] - offset)).sum() / (number[near] ** 2).sum())
        offset = _offset(positive, step)
    whole = float(round(step))
    if (
        whole
        and float(np.abs(positive - offset - np.round((positive - offset) / whole) * whole).max()) < _WRITTEN * whole
    ):
        step = whole
    number = np.round((positive - offset) / step)
    away = np.abs(positive - offset - number * step)
    if float((away <= max(_TOLERANCE * step, _UNIT_NS)).mean()) < _KEEPS or step < 4 * _UNIT_NS:
        return FINE
    found = Resolution(step_ns=step, offset_ns=offset)
    return found if _neighbours(found, positive) else FINE


def _offset(positive: Values, step: float) -> float:
    """Return the phase that the durations agree in, ns; 0 if it is within the rounding of whole ns."""
    offset = float(np.angle(np.exp(2j * np.pi * positive / step).mean())) / (2 * np.pi) * step % step
    return 0.0 if min(offset, step - offset) <= _UNIT_NS else offset


def spread(durations_ns: Values, resolution: Resolution, places: Values) -> Values:
    """Return each duration at a place within what it stands for.

    Parameters
    ----------
    durations_ns : ndarray of float64
    resolution : Resolution
    places : ndarray of float64
        In [0, 1), even over the calls of each duration.

    Notes
    -----
    The places are even on the log axis: averages of a density of log durations over neighbouring steps have no valley
    that the density has not.
    """
    if resolution.is_fine:
        return durations_ns
    low, high = resolution.cells(durations_ns)
    return np.asarray(low * (high / low) ** places)
