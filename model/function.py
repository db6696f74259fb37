"""Functions of a binary, and the reason for the state that one is in."""

from __future__ import annotations

from dataclasses import dataclass

from .call_path import Frame
from .text import title


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A native function of one binary."""

    build_id: str
    """Build-id in hex, or ``sha256:`` and 16 hex of .text."""
    offset: int
    """File offset of its first byte."""
    name: str
    """Display name: demangled, no clone suffix; ``module+0xoff`` if it has none."""
    module: str
    """Base name of the mapped file."""
    aliases: tuple[str, ...] = ()
    mangled: str = ""
    """The symbol as it stands in the file, '' if none."""
    in_program: bool = False
    """True if it belongs to the program's own executable, False for a library."""
    stepped: bool = False
    """True if its probe site is single-stepped by the kernel (some 14 times more expensive)."""
    unsampled: bool = False
    """True if its calls cannot be timed by a random choice: probes at return sites time them, or it is recursive."""
    code: str = ""
    """Digest of its machine code, which relinking does not change; '' if not known."""

    @property
    def key(self) -> str:
        """Identity of the function: ``BUILDID+0xOFFSET``."""
        return f"{self.build_id}+0x{self.offset:x}"

    @property
    def title(self) -> str:
        """How it is shown: ``name (module)``."""
        return title(self.name, self.module)

    @property
    def frame(self) -> Frame:
        """The function as a frame of a call path."""
        return Frame(self.name, self.module)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a function is in its state: a stable code, a sentence, and what would help."""

    code: str
    text: str
    remedy: str = ""
