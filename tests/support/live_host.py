"""What tests of experiments on the machine at hand share."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import pytest

from specmine.experiments.host.cgroups import hierarchy
from specmine.experiments.runner import lock
from tests.support.patience import patient

TREE = hierarchy()
needs_groups = pytest.mark.skipif(
    os.geteuid() != 0 or TREE is None or not os.access(TREE.root, os.W_OK), reason="needs root and control groups"
)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of experiments, so that no run going on beside the tests is disturbed."""
    until = time.monotonic() + patient(240)
    while True:
        try:
            with lock.exclusive(lock.default_path()):
                yield
                return
        except lock.LockTaken:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def last_cpu() -> int:
    """Return the last CPU that we may use."""
    return max(os.sched_getaffinity(0))
