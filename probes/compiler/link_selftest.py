"""Find the best kind of uprobe link here: the first that times calls of a function of our own."""
import ctypes
import errno
import os
import struct

from .bpf_syscall import (
    BPF_LINK_CREATE,
    BPF_MAP_LOOKUP_ELEM,
    BPF_MAP_UPDATE_ELEM,
    KPROBE,
    PERF,
    SESSION,
    SYSCALLS,
    UPROBE_MULTI,
    bpf,
    libc,
)

ATTACH_TYPES = {"session": SESSION, "multi": UPROBE_MULTI, "perf": 0}
SITE_PROGRAMS = ["call_site_return", "call_landing", "call_context"]


def timing_programs(mode, names, site_programs):
    """Return {name: what is to be loaded} for timed calls over a kind of link."""
    attach = ATTACH_TYPES[mode]
    wanted = {name: (name, KPROBE, attach) for name in names}
    # Return sites are ordinary probes; they need links that detach fast
    if attach:
        wanted.update({name: (name, KPROBE, UPROBE_MULTI) for name in site_programs})
    return wanted


def programs_over(mode, names, site_programs):
    """Return {name: what is to be loaded} for all calls over a kind of link."""
    attach = ATTACH_TYPES[mode]
    wanted = timing_programs(mode, names, site_programs + SITE_PROGRAMS)
    # counting has no return: over sessions it is a plain multi link
    count = "call_count" if attach else "call_count_perf"
    wanted["call_count"] = (count, KPROBE, UPROBE_MULTI if attach else 0)
    return wanted


def load_calls(request, loads, fds):
    """Load the programs for calls over the best links that work here; (mode, {name: fd}, notes)."""
    notes = []  # type: list[str]
    open_bucket(fds["slots"])
    for mode, names in request["modes"]:
        wanted = programs_over(mode, names, request["site_programs"])
        try:
            loads.loaded(*wanted[names[0]])  # a kernel without such links says so at once
            loads.begin(wanted.values())
            programs = {name: loads.loaded(*each) for name, each in wanted.items()}
            if fires(mode, programs, fds["counters"]):
                return mode, programs, notes
            notes.append("%s links do not fire on this kernel" % mode)
        except (OSError, RuntimeError) as error:
            if isinstance(error, OSError) and error.errno == errno.EPERM:
                raise
            notes.append("%s links: %s" % (mode, error))
    raise RuntimeError("no kind of uprobe link works: " + "; ".join(notes))


def load_more_calls(request, loads):
    """Load programs for calls over links that are known to work; {name: fd}."""
    wanted = {}  # type: dict[str, tuple[str, int, int]]
    for mode, names in request["modes"]:
        wanted.update(timing_programs(mode, names, request["site_programs"]))
    loads.begin(wanted.values())
    return {name: loads.loaded(*each) for name, each in wanted.items()}


def fires(mode, programs, counters):
    """Attach to a function of our own, call it, return whether the calls were timed, and detach."""
    path, offset = own_function("getppid")
    cookie, fds = 255, []
    try:
        if mode == "session":
            fds = [link_multi(programs["call_time_session"], SESSION, path, offset, cookie)]
        elif mode == "multi":
            fds = [
                link_multi(programs["call_time_entry"], UPROBE_MULTI, path, offset, cookie),
                link_multi(programs["call_time_return"], UPROBE_MULTI, path, offset, cookie, 1),
            ]
        else:
            fds = list(link_perf(programs["call_time_entry"], path, offset, cookie, False))
            fds += link_perf(programs["call_time_return"], path, offset, cookie, True)
        before = read_counters(counters, cookie)
        for _ in range(3):
            libc.getppid()
        return read_counters(counters, cookie)[2] - before[2] == 3
    finally:
        for fd in fds:
            os.close(fd)


def own_function(name):
    """Return (path, file offset) of a libc function in this very process."""
    address = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0
    with open("/proc/self/maps") as maps:
        for line in maps:
            words = line.split(None, 5)
            low, high = (int(x, 16) for x in words[0].split("-"))
            if low <= address < high:
                return words[5].strip(), address - low + int(words[2], 16)
    raise RuntimeError("libc's %s is in no mapping" % name)


def link_multi(program, attach, path, offset, cookie, flags=0):
    """Create a multi link at one offset, for this process only."""
    name = ctypes.create_string_buffer(path.encode())
    offsets = (ctypes.c_uint64 * 1)(offset)
    cookies = (ctypes.c_uint64 * 1)(cookie)
    return bpf(
        BPF_LINK_CREATE,
        struct.pack(
            "<IIIIQQQQIII",
            program,
            0,
            attach,
            0,
            ctypes.addressof(name),
            ctypes.addressof(offsets),
            0,
            ctypes.addressof(cookies),
            1,
            flags,
            os.getpid(),
        )
        + b"\0" * 4,
    )


def link_perf(program, path, offset, cookie, is_return):
    """Open a uprobe as a perf event and link the program to it."""
    with open("/sys/bus/event_source/devices/uprobe/type") as file:
        kind = int(file.read())
    name = ctypes.create_string_buffer(path.encode())
    attr = bytearray(128)
    struct.pack_into("<IIQ", attr, 0, kind, 128, 1 if is_return else 0)
    struct.pack_into("<QQ", attr, 56, ctypes.addressof(name), offset)
    buffer = ctypes.create_string_buffer(bytes(attr), len(attr))
    fd = libc.syscall(SYSCALLS["perf_event_open"], buffer, os.getpid(), -1, -1, 8)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    link = bpf(BPF_LINK_CREATE, struct.pack("<IIIIQ", program, fd, PERF, 0, cookie))
    return fd, link


def read_counters(fd, slot):
    """Return the counters of a slot, and zeros behind them."""
    key, value = ctypes.c_uint32(slot), (ctypes.c_uint64 * 512)()  # more than layout.h will ever hold: the kernel
    # writes the whole of a map's value, and what does not fit goes over something else
    bpf(BPF_MAP_LOOKUP_ELEM, struct.pack("<IIQQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0))
    return list(value)


def open_bucket(fd):
    """Let the self-test's slot through."""
    key, value = ctypes.c_uint32(255), (ctypes.c_uint64 * 64)(1 << 62)  # more than layout.h has: the kernel reads it all
    bpf(BPF_MAP_UPDATE_ELEM, struct.pack("<IIQQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0))
