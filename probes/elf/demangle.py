"""Names as people read them: C++ and Rust demangled, no compilers' suffixes, nothing that harms a terminal.

The C++ runtime's own demangler is called directly: the ``cxxfilt`` package does the same, but runs
``ldconfig`` or ``gcc`` at import to find it, which a child without privileges must not.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import io
import re
from collections.abc import Callable
from functools import cache

from specmine.model.text import escape

LONGEST = 4096
"""Longer names are cut, and told apart by a hash."""

# .part.0 .constprop.3 .isra.0 .lto_priv.12 .cold .localalias .llvm.1234 .__uniq.1234, also several of them
_CLONE = re.compile(r"(?:\.(?:part|constprop|isra|lto_priv|cold|localalias|llvm|__uniq|warm)(?:\.\d+)*)+$")
_COLD = re.compile(r"\.cold(?:\.\d+)*$")
_LEGACY_HASH = re.compile(r"17h[0-9a-f]{16}E$")
_LEGACY_ESCAPE = re.compile(r"\$(?:(SP|BP|RF|LT|GT|LP|RP|C)|u([0-9a-f]{1,6}))\$|\.\.")
_LEGACY_CHARS = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}


def is_cold(symbol: str) -> bool:
    """Return True if a symbol names the cold part of a function."""
    return _COLD.search(symbol) is not None


def is_clone(symbol: str) -> bool:
    """Return True if a symbol names a part or copy of a function that the compiler made."""
    return _CLONE.search(symbol.partition("@")[0]) is not None


def display_name(symbol: str) -> str:
    """Return a symbol as it is shown: no version, no clone suffix, demangled, printable.

    What cannot be demangled stays as it is. C++ names keep their parameter types, Rust names lose their hash.
    """
    at = symbol.find("@")
    base = symbol[:at] if at > 0 else symbol
    base = _CLONE.sub("", base) or base
    return printable(_demangled(base))


def printable(text: str) -> str:
    """Escape every character that does not print, and cut what is too long."""
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else escape(letter) for letter in text)
    if len(text) > LONGEST:
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        text = f"{text[:LONGEST]}~{digest[:8]}"
    return text


def without_parameters(name: str) -> str:
    """Return a demangled name up to the parentheses of its parameters; unchanged if it has none."""
    end = name.rfind(")")
    if end < 0 or (end != len(name) - 1 and not name.startswith(_AFTER_PARAMETERS, end + 1)):
        return name
    depth = 0
    for at in range(end, -1, -1):
        if name[at] == ")":
            depth += 1
        elif name[at] == "(":
            depth -= 1
            if depth == 0:
                return name[:at] or name
    return name


def without_return_type(name: str) -> str:
    """Return a name without parameters and without the return type that C++ templates show before it."""
    depth, start = 0, 0
    if "operator" in name:
        return name
    for at, each in enumerate(name):
        if each in "<({":
            depth += 1
        elif each in ">)}":
            depth -= 1
        elif each == " " and depth == 0:
            start = at + 1
    return name[start:] or name


_AFTER_PARAMETERS = (" const", " volatile", " &", " &&", "::", " [")


def _demangled(symbol: str) -> str:
    if len(symbol) > LONGEST:
        return symbol
    if symbol.startswith("_ZN") and _LEGACY_HASH.search(symbol):
        return _rust_legacy(symbol) or symbol
    if symbol.startswith("_Z"):
        return _cxx(symbol) or symbol
    if symbol.startswith("_R") and symbol.isascii():
        return _rust(symbol) or symbol
    return symbol


def _rust_legacy(symbol: str) -> str:
    """Return the path of a Rust name of the old scheme, '' if it is not one.

    Rust's compiler source, ``legacy.rs``: length-prefixed parts, the last one a hash, escapes in ``$..$``.
    """
    parts, at = [], 3
    while at < len(symbol) and symbol[at] != "E":
        digits = at
        while digits < len(symbol) and "0" <= symbol[digits] <= "9":
            digits += 1
        if digits == at or digits - at > 5:
            return ""
        end = digits + int(symbol[at:digits])
        if end >= len(symbol):
            return ""
        parts.append(symbol[digits:end])
        at = end
    return "::".join(_legacy_part(each) for each in parts[:-1])


def _legacy_part(part: str) -> str:
    def plain(found: re.Match[str]) -> str:
        if found[1]:
            return _LEGACY_CHARS[found[1]]
        if found[2]:
            code = int(found[2], 16)
            return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else found[0]
        return "::"

    return _LEGACY_ESCAPE.sub(plain, part[1:] if part.startswith("_$") else part)


def _rust(symbol: str) -> str:
    from rust_demangler import demangle  # noqa: PLC0415 (most binaries need it not)

    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints what it could not read
            return str(demangle(symbol))
    except Exception:  # it raises whatever a malformed name leads to, RecursionError too
        return ""


def _cxx(symbol: str) -> str:
    runtime = _cxx_runtime()
    if runtime is None:
        return ""
    demangle, free = runtime
    found = demangle(symbol.encode("utf-8", "backslashreplace"), None, None, None)
    if not found:
        return ""
    try:
        return (ctypes.cast(found, ctypes.c_char_p).value or b"").decode("utf-8", "backslashreplace")
    finally:
        free(found)


@cache
def _cxx_runtime() -> tuple[Callable[..., int | None], Callable[[int], None]] | None:
    """Return the C++ runtime's demangler and the routine to free its answers, None on a host without one."""
    for name in ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"):
        try:
            demangle = ctypes.CDLL(name).__cxa_demangle
        except (OSError, AttributeError):
            continue
        demangle.restype = ctypes.c_void_p
        demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        free = ctypes.CDLL(None).free
        free.argtypes, free.restype = [ctypes.c_void_p], None
        return demangle, free
    return None
