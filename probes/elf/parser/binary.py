"""Facts about a binary, from its headers, notes, dynamic section and symbols.

Most important of them: may exceptions or panics pass its frames? A return probe in such a process kills it.
"""

from __future__ import annotations

import hashlib

from specmine.probes.elf.demangle import printable
from specmine.probes.elf.facts import BinaryFacts

from .image import PT_INTERP, Image

DT_NEEDED, DT_SONAME, DT_STRTAB, DT_STRSZ = 1, 14, 5, 10
_UNWINDERS = ("_Unwind_", "__gxx_personality", "__cxa_throw", "rust_eh_personality", "__objc_personality")
_FRAME_FINDERS = ("dl_iterate_phdr", "_dl_find_object")
_STACK_CHANGERS = (
    "makecontext",
    "swapcontext",
    "setcontext",
    "sigaltstack",
    "pthread_exit",
    "pthread_cancel",
    "thrd_exit",
    "backtrace",
)
"""Calls after which the kernel's list of replaced return addresses no longer fits the stack, or is walked into."""
_LOADERS = ("dlopen", "dlmopen", "dlsym", "dlvsym")
"""Calls that bring code which nobody has looked at yet, or find those that do: it may throw through open frames."""
_SELF_CHECKS = (
    b"BORINGSSL_bcm_text_",
    b"BORINGSSL_integrity_test",
    b"FIPS_incore_fingerprint",
    b"FINGERPRINT_premain",
    b"wolfCrypt_FIPS_first",
)
"""Parts of names in modules that compare their code in memory with a checksum, and end the program if it differs."""
_UNWINDING_LIBRARIES = ("libstdc++.so", "libgcc_s.so", "libc++.so", "libc++abi.so", "libunwind.so")


def read_facts(image: Image) -> BinaryFacts:
    """Return what is known of a binary without looking at its code.

    Raises
    ------
    InputError
        If its code cannot be found.
    """
    needed, soname = _libraries(image)
    names = _telling_symbols(image)
    interpreter = _interpreter(image)
    static = not interpreter and not needed and (image.type == 2 or (not soname and image.entry != 0))
    go = image.section(".go.buildinfo") is not None or image.section(".gopclntab") is not None
    return BinaryFacts(
        build_id=_build_id(image),
        kind=_kind(image, interpreter, soname, static),
        segments=image.segments,
        soname=soname,
        needed=needed,
        is_go=go,
        unwinder=_unwinders(image, needed, names, static=static),
        self_check=_self_check(image),
        debuglink=printable(debuglink(image)[0]),
        frames_digest=_frames_digest(image),
    )


def build_id_of(image: Image) -> str:
    """Return the build-id note in hex, '' if there is none."""
    for owner, kind, content in image.notes():
        if owner == b"GNU" and kind == 3 and content:
            return content.hex()
    return ""


def _build_id(image: Image) -> str:
    note = build_id_of(image)
    if note:
        return note
    offset, size = _text(image)
    digest = hashlib.sha256()
    parts = [(offset, size)] if size else [(each.offset, each.file_size) for each in image.code]
    for start, length in parts:
        for at in range(start, start + length, 1 << 20):
            digest.update(image.read(at, min(1 << 20, start + length - at)))
    return f"sha256:{digest.hexdigest()[:16]}"


def debuglink(image: Image) -> tuple[str, int]:
    """Return the name and the CRC-32 of the separate debug file that .gnu_debuglink names; ('', 0) without one."""
    section = image.section(".gnu_debuglink")
    content = image.content(section) if section is not None else b""
    name, end, _ = content.partition(b"\0")
    place = len(name) + 1 + -(len(name) + 1) % 4
    if not end or not name or len(content) < place + 4:
        return "", 0
    return name.decode("utf-8", "backslashreplace"), int.from_bytes(content[place : place + 4], "little")


def _frames_digest(image: Image) -> str:
    """Return a digest of the call frame information and of where the code lies."""
    if image.section(".eh_frame") is None:
        return ""
    digest = hashlib.sha256(repr(image.segments).encode())
    for name in (".eh_frame", ".debug_frame"):
        section = image.section(name)
        if section is not None:
            digest.update(f"{name} {section.address} {section.size} ".encode())
            digest.update(image.content(section))
    return digest.hexdigest()


def _text(image: Image) -> tuple[int, int]:
    section = image.section(".text")
    if section is not None:
        return section.offset, section.size
    largest = max(image.code, key=lambda each: each.file_size, default=None)
    return (largest.offset, largest.file_size) if largest is not None else (0, 0)


def _kind(image: Image, interpreter: str, soname: str, static: bool) -> str:
    if image.type == 2:
        return "executable"
    if interpreter and not soname:
        return "pie"
    return "pie" if static else "library"


def _interpreter(image: Image) -> str:
    for header in image.program[image.program["type"] == PT_INTERP]:
        content = image.read(int(header["offset"]), min(int(header["file_size"]), 4096))
        return _text_of(content.split(b"\0", 1)[0])
    return ""


def _libraries(image: Image) -> tuple[tuple[str, ...], str]:
    entries = image.dynamic()
    strings = image.file_offset(entries.get(DT_STRTAB, [0])[0])
    if strings is None:
        return (), ""
    end = min(strings + entries.get(DT_STRSZ, [0])[0], len(image.data))
    needed = [_text_of(image.string(strings + each, end)) for each in entries.get(DT_NEEDED, [])]
    soname = [_text_of(image.string(strings + each, end)) for each in entries.get(DT_SONAME, [])]
    return tuple(each for each in needed if each), soname[0] if soname else ""


def _text_of(name: bytes) -> str:
    return printable(name.decode("utf-8", "backslashreplace"))


def _telling_symbols(image: Image) -> frozenset[str]:
    """Return the names, of .dynsym and .symtab, that tell of unwinding."""
    found: set[str] = set()
    for table in (image.symbols(".dynsym"), image.symbols(".symtab")):
        if table is None:
            continue
        # one search for each name over the string table is much faster than reading every symbol
        strings = image.read(table.strings, table.strings_end - table.strings)
        for telling in _UNWINDERS:
            # linkers let names share their tails, but none of these is the tail of another
            at = strings.find(b"\0" + telling.encode()) + 1
            if at:
                found.add(_text_of(strings[at : strings.find(b"\0", at)].split(b"@")[0][:128]))
        for telling in (*_FRAME_FINDERS, *_STACK_CHANGERS, *_LOADERS):
            at = strings.find(b"\0" + telling.encode() + b"\0") + 1
            named = table.records[table.records["name"] == at]
            if at and bool((named["section"] == 0).any()):  # imported, not offered
                found.add(telling)
    return frozenset(found)


def _self_check(image: Image) -> str:
    """Return a name that tells of code checked in memory, '' if there is none."""
    for table in (image.symbols(".dynsym"), image.symbols(".symtab")):
        strings = image.read(table.strings, table.strings_end - table.strings) if table is not None else b""
        for part in _SELF_CHECKS:
            at = strings.find(part)
            if at >= 0:
                # libraries put their own name in front, so the part may stand anywhere in a symbol
                begin, end = strings.rfind(b"\0", 0, at) + 1, strings.find(b"\0", at)
                return _text_of(strings[begin:end][:128])
    return ""


def _unwinders(image: Image, needed: tuple[str, ...], names: frozenset[str], *, static: bool) -> tuple[str, ...]:
    found = [f"needs {each}" for each in needed if each.startswith(_UNWINDING_LIBRARIES)]
    found += sorted(f"names {each}" for each in names if each.startswith(_UNWINDERS))
    found += sorted(f"calls {each}" for each in names.intersection(_STACK_CHANGERS))
    # an unwinder that was linked in shows only by what it needs
    carries_one = static or not names.isdisjoint(_FRAME_FINDERS)
    if not found and carries_one and image.section(".gcc_except_table") is not None:
        found.append("has exception tables")
    if not found and static:
        found.append("is static, so that what it calls does not show")
    found += sorted(f"may load code by {each}" for each in names.intersection(_LOADERS))
    return tuple(found)
