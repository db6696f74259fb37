"""The one factor for how long our processes wait for each other."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from specmine.probes.holder.time_scale import LARGEST, VARIABLE, time_scale

_SHOW = (
    "from specmine.probes.holder.holder import HEARTBEAT_S; from specmine.probes.kernel import holder_process as h;"
    "from specmine.probes.elf.client import PATIENCE_S; print(HEARTBEAT_S, h.SILENT_BEATS * h.BEAT_S, PATIENCE_S)"
)


@pytest.mark.parametrize(
    ("text", "factor"),
    [("", 1), ("20", 20), ("2.5", 2.5), ("0.1", 1), ("-3", 1), ("nan", 1), ("inf", 1), ("ten", 1), ("1e9", LARGEST)],
)
def test_no_text_shortens_a_limit_or_ends_us(text: str, factor: float) -> None:
    """A factor lengthens limits up to a bound; what is no factor changes nothing."""
    assert time_scale(text) == factor


def test_limits_grow_with_the_factor() -> None:
    """The limits of the holder and the reader are longer by the factor in the environment."""

    def limits(scale: str) -> list[float]:
        command = [sys.executable, "-c", _SHOW]
        out = subprocess.run(
            command, env={**os.environ, VARIABLE: scale}, check=True, capture_output=True, text=True
        ).stdout
        return [float(word) for word in out.split()]

    assert limits("4") == [4 * each for each in limits("")]
