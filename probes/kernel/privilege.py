"""Which capabilities this process has, and whether BPF is permitted with them: known before anything is compiled."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from specmine.model.errors import HostError

from .open_files import check_open_files

CAPABILITIES = {
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_SYS_PTRACE": 19,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
    "CAP_CHECKPOINT_RESTORE": 40,
}
"""What watching any process takes, and the bit of each."""
FOR_BPF = ("CAP_BPF", "CAP_PERFMON")
_CAP_SYS_ADMIN = 21
_BY_SYS_ADMIN = ("CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE")
"""CAP_SYS_ADMIN was divided into these in Linux 5.8 and 5.9, and still stands for each."""
_STATUS = Path("/proc/self/status")


def effective_capabilities() -> int:
    """Return the effective capabilities of this process as bits. HostError if /proc does not tell."""
    try:
        match = re.search(r"^CapEff:\s*(\w+)$", _STATUS.read_text(), re.MULTILINE)
    except OSError as error:
        raise HostError(f"cannot read {_STATUS}: {error.strerror}", remedy="mount /proc") from error
    return int(match.group(1), 16) if match else 0


def lacking(effective: int, names: Iterable[str] = CAPABILITIES) -> list[str]:
    """Return which of these capabilities are not in a set of bits, nor stood for by CAP_SYS_ADMIN."""
    stands = _BY_SYS_ADMIN if effective >> _CAP_SYS_ADMIN & 1 else ()
    return [name for name in names if not effective >> CAPABILITIES[name] & 1 and name not in stands]


def check_bpf(interpreter: str) -> None:
    """Refuse what the kernel would refuse after seconds of compiling.

    It is left to the kernel whether capabilities in a user namespace count. ``kernel.unprivileged_bpf_disabled`` is
    not asked: no setting of it permits programs at uprobes without capabilities.

    Parameters
    ----------
    interpreter : str
        The Python that compiles and loads. Where its file gives it rights of its own, ours do not decide.

    Raises
    ------
    HostError
        Capabilities are missing, and the message says which; or too few files may be open.
    """
    check_open_files()
    missing = lacking(effective_capabilities(), FOR_BPF)
    if missing and not _gives_rights(interpreter):
        raise HostError(
            f"the kernel does not permit BPF without {' and '.join(missing)}",
            remedy="run as root or with CAP_BPF and CAP_PERFMON",
        )


def _gives_rights(program: str) -> bool:
    """Tell whether who executes a file has other rights than before: it is set-uid, or has capabilities (setcap)."""
    path = shutil.which(program)
    if path is None:
        return False
    try:
        return bool(os.stat(path).st_mode & stat.S_ISUID) or bool(os.getxattr(path, "security.capability"))
    except OSError:  # it has no such attribute
        return False
