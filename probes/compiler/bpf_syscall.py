"""Maps and programs by plain bpf() calls."""
import base64
import ctypes
import errno
import os
import struct

SYSCALLS = {}  # type: dict[str, int]
"""Numbers of bpf and perf_event_open on this machine; the request brings them."""
BPF_MAP_CREATE, BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM = 0, 1, 2
BPF_PROG_LOAD, BPF_BTF_LOAD, BPF_LINK_CREATE = 5, 18, 28
KPROBE, PERF_EVENT, RAW_TRACEPOINT, TRACING = 2, 7, 17, 26
UPROBE_MULTI, PERF, SESSION, ITERATOR = 48, 41, 57, 28
SLEEPABLE = 1 << 4
TASK_STORAGE, NO_PREALLOC = 29, 1
MAPS_BY_HELPER = {"threads": TASK_STORAGE}
LICENSE = b"GPL"
ATTEMPTS = 5

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    """Make one bpf() call; OSError with the kernel's errno."""
    buffer = ctypes.create_string_buffer(attr, len(attr))
    result = libc.syscall(SYSCALLS["bpf"], command, buffer, len(attr))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def storage_btf(size):
    """Load the type information that a task-storage map must have: an int as key, a struct as value."""
    names = b"\0int\0thread\0"
    types = struct.pack("<IIII", 1, 1 << 24, 4, 1 << 24 | 32) + struct.pack("<III", 5, 4 << 24, size)
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(names))
    blob = ctypes.create_string_buffer(header + types + names, 24 + len(types) + len(names))
    return bpf(BPF_BTF_LOAD, struct.pack("<QQIIII", ctypes.addressof(blob), 0, len(blob), 0, 0, 0))


def make_map(spec, sizes):
    """Create one map; its size comes from the request where the source leaves it open."""
    kind, entries, flags = spec["type"], sizes.get(spec["name"], spec["max"]), spec["flags"]
    btf = 0
    if MAPS_BY_HELPER.get(spec["name"]) == TASK_STORAGE:
        kind, entries, flags, btf = TASK_STORAGE, 0, NO_PREALLOC, storage_btf(spec["value"])
    key, value = (0, 0) if kind == 27 else (spec["key"], spec["value"])  # a ring buffer has neither
    types = (btf, 1, 2) if btf else (0, 0, 0)  # fd, numbers of the key's and of the value's type
    name = spec["name"].encode()[:15]
    attr = struct.pack("<IIIIIII16sIIII", kind, key, value, entries, flags, 0, 0, name, 0, *types)
    fd = bpf(BPF_MAP_CREATE, attr)
    return fd, {"name": spec["name"], "key": key, "value": value, "entries": entries}


def load_patiently(attr):
    """Load a program; a signal that arrives while the verifier works ends it with EAGAIN: begin again, as libbpf does."""
    for _ in range(ATTEMPTS - 1):
        try:
            return bpf(BPF_PROG_LOAD, attr)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
    return bpf(BPF_PROG_LOAD, attr)


def load_program(name, code, maps, kind, attach, iterated=0):
    """Load one program; RuntimeError with the end of the verifier's words.

    ``iterated`` is the number of the type that stands for what an iterator passes.
    """
    code = bytearray(base64.b64decode(code))
    for at in range(0, len(code), 8):
        if code[at] == 0x18 and code[at + 1] >> 4 == 1:
            number = struct.unpack_from("<i", code, at + 4)[0]
            struct.pack_into("<i", code, at + 4, maps[number])
    image = ctypes.create_string_buffer(bytes(code), len(code))
    license_text = ctypes.create_string_buffer(LICENSE)

    def attr(level, log):
        return struct.pack(
            "<IIQQIIQII16sIIIIQIIQII",
            kind,
            len(code) // 8,
            ctypes.addressof(image),
            ctypes.addressof(license_text),
            level,
            len(log) if level else 0,
            ctypes.addressof(log) if level else 0,
            0,
            SLEEPABLE if iterated else 0,
            name.encode()[:15],
            0,
            attach,
            *(0, 0, 0, 0, 0, 0, 0, iterated),
        )

    log = ctypes.create_string_buffer(1 << 24 if os.environ.get("SPECMINE_VERIFIER_LOG") else 1 << 20)
    try:
        return load_patiently(attr(0, log))
    except OSError as error:
        if error.errno == errno.EPERM:
            raise
        try:
            return load_patiently(attr(1, log))
        except OSError:
            words = log.value.decode(errors="replace").strip().splitlines()
            raise RuntimeError("%s: %s: %s" % (name, error.strerror, " | ".join(words[-6:])))
