"""Loading a program goes on after signals, and ends where they do not end."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from specmine.probes.compiler import bpf_syscall

kernel: Any = bpf_syscall


@pytest.mark.parametrize(
    ("number", "times", "calls"),
    [(errno.EAGAIN, 1, 2), (errno.EAGAIN, 4, 5), (errno.EAGAIN, 99, 5), (errno.EPERM, 1, 1)],
)
def test_a_signal_does_not_cost_the_program(
    number: int, times: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verifier gives up with EAGAIN when a signal arrives; any other error is an answer."""
    made: list[int] = []

    def bpf(command: int, attr: bytes) -> int:
        made.append(command)
        if len(made) <= times:
            raise OSError(number, os.strerror(number))
        return 7

    monkeypatch.setattr(bpf_syscall, "bpf", bpf)
    if calls > times:
        assert kernel.load_patiently(b"") == 7
    else:
        with pytest.raises(OSError, match=os.strerror(number)):
            kernel.load_patiently(b"")
    assert len(made) == calls
