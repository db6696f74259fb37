"""Descriptors 0 to 2 as every program may expect them, whatever started it."""

from __future__ import annotations

import os
import sys


def hold_standard_descriptors() -> None:
    """Open /dev/null where standard input, output or error is closed.

    Otherwise the next file or socket opened would get that number, and output of a library would go into it. A closed
    standard output stays None for Python, so that lost data is an error. Standard input is empty, and messages on
    standard error are dropped, where ``print`` would send them to standard output.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  as long as the process lives
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
