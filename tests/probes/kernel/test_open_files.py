"""A low limit of open files is named at once."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from specmine.model.errors import HostError
from specmine.probes.kernel import open_files
from tests.support.patience import patient


def test_a_low_limit_ends_a_mining_at_once() -> None:
    """Before, the compiling child waited for ever at the limit, and nothing was said."""
    command = f"ulimit -n 40; exec {sys.executable} -m specmine.cli mine --duration 3 -- sleep 60"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=patient(60), check=False)
    said = "specmine: too many open files: 40 are permitted, at least 256 are needed; raise the limit (ulimit -n)\n"
    assert (done.returncode, done.stdout, done.stderr) == (4, "", said)


@pytest.mark.parametrize(("limit", "fits"), [(255, False), (256, True), (1024, True), (-1, True)])
def test_what_suffices_is_not_refused(limit: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual 1,024 of a service do, and so does no limit at all."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    if fits:
        open_files.check_open_files()
    else:
        with pytest.raises(HostError, match="too many open files"):
            open_files.check_open_files()
