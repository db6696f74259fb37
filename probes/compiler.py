#!/usr/bin/python3
"""Compile the BPF programs with bcc, load them, and hand map and program fds back over a socket.

A script of its own, run as a short-lived child by the interpreter that has bcc, so that LLVM never lives in the
daemon: Python 3.6 syntax, standard library and bcc only. bcc only compiles; maps, programs and links are made by
plain bpf() calls, since bcc knows neither task storage nor sessions and cannot detach without tracefs.

usage: compiler.py FD        FD: a connected SEQPACKET socket that carries one JSON request, see main()
"""
import array
import base64
import ctypes
import errno
import hashlib
import json
import os
import socket
import struct
import sys
import time

BPF_MAP_CREATE, BPF_PROG_LOAD, BPF_LINK_CREATE, BPF_BTF_LOAD = 0, 5, 28, 18
BPF_MAP_LOOKUP_ELEM = 1
KPROBE, PERF_EVENT, RAW_TRACEPOINT = 2, 7, 17
UPROBE_MULTI, PERF, SESSION = 48, 41, 57
TASK_STORAGE, NO_PREALLOC = 29, 1
MAPS_BY_HELPER = {"threads": TASK_STORAGE}
LICENSE = b"GPL"
BPF_SYSCALL = 321

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    """Make one bpf() call; OSError with the kernel's errno."""
    buffer = ctypes.create_string_buffer(attr, len(attr))
    result = libc.syscall(BPF_SYSCALL, command, buffer, len(attr))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


# ---- compiling -------------------------------------------------------------------------------------------------


KERNEL_STRUCTS = {  # what is read of the kernel's own structs, where its BTF says they lie
    "task_struct": ("pid", "tgid", "__state", "state", "sched_info", "se", "bpf_ctx", "utask"),
    "sched_info": ("pcount", "run_delay"),
    "sched_entity": ("sum_exec_runtime", "exec_start", "cfs_rq"),
    "cfs_rq": ("rq",),
    "rq": ("clock", "clock_task"),
    "bpf_uprobe_multi_run_ctx": ("session_ctx", "uprobe"),
    "bpf_session_run_ctx": ("is_return",),
    "bpf_uprobe": ("cookie",),
    "uprobe_task": ("return_instances",),
    "return_instance": ("stack", "orig_ret_vaddr", "next"),
    "bpf_rdonly_cast": (),
}
KFUNC = 0x70000000  # added to the number of a function of the kernel, which bcc takes for a helper's


def kernel_types():
    """Return {name: (number of the type, {member: byte offset})} of what this kernel has of these; {} without BTF."""
    try:
        with open("/sys/kernel/btf/vmlinux", "rb") as file:
            data = file.read()
    except OSError:
        return {}
    header = struct.unpack_from("<HBBIIIII", data)
    start, types_off, types_len, str_off = header[3], header[4], header[5], header[6]
    strings = start + str_off
    names = {data.find(b"\0" + name.encode() + b"\0", strings) + 1 - strings: name for name in KERNEL_STRUCTS}
    position, end, number = start + types_off, start + types_off + types_len, 0
    sizes = {1: 4, 3: 12, 14: 4, 17: 4}
    unpack = struct.Struct("<III").unpack_from
    found = {}  # type: dict[str, tuple[int, dict[str, int]]]
    while position < end and len(found) < len(KERNEL_STRUCTS):
        number += 1
        name, info, _ = unpack(data, position)
        kind, vlen = info >> 24 & 31, info & 0xFFFF
        position += 12
        if name in names and (kind == 4 and vlen or kind == 12):
            fields = {}
            members = data[position : position + 12 * vlen] if kind == 4 else b""
            for at, _, bits in struct.iter_unpack("<III", members):
                field = data[strings + at : data.index(b"\0", strings + at)].decode()
                if field in KERNEL_STRUCTS[names[name]]:
                    fields[field] = (bits & 0xFFFFFF) >> 3
            found.setdefault(names[name], (number, fields))
        if kind in (4, 5, 15, 19):
            position += 12 * vlen
        elif kind in (6, 13):
            position += 8 * vlen
        else:
            position += sizes.get(kind, 0)
    return found


def scheduler_accounts():
    """Tell whether the scheduler of this kernel counts how often a thread was given a CPU: ours was, at least once."""
    try:
        with open("/proc/self/schedstat") as file:
            return int(file.read().split()[2]) > 0
    except (OSError, ValueError, IndexError):
        return False


def waiting_flags(types):
    """Return the definitions for waiting.h; none where the kernel does not account waiting by thread."""
    try:
        task, info, entity, clocks = (types[name][1] for name in ("task_struct", "sched_info", "sched_entity", "rq"))
        places = {
            "TASK_ARRIVALS": task["sched_info"] + info["pcount"],
            "TASK_RUN_DELAY": task["sched_info"] + info["run_delay"],
            "TASK_SUM_EXEC": task["se"] + entity["sum_exec_runtime"],
            "TASK_EXEC_START": task["se"] + entity["exec_start"],
            "TASK_CFS_RQ": task["se"] + entity["cfs_rq"],
            "CFS_RQ_RQ": types["cfs_rq"][1]["rq"],
            "RQ_CLOCK": clocks["clock"],
            "RQ_CLOCK_TASK": clocks["clock_task"],
        }
    except KeyError:
        return []
    return ["-DWAITING"] + ["-D%s=%d" % item for item in sorted(places.items())]


def field_flags(types):
    """Return the definitions for hit.h; none where this kernel's types are not known."""
    try:
        number = {name: types[name][0] for name in KERNEL_STRUCTS}
        task, context, session = (
            types[name][1] for name in ("task_struct", "bpf_uprobe_multi_run_ctx", "bpf_session_run_ctx")
        )
        back = types["return_instance"][1]
        values = {
            "TASK_BPF_CTX": task["bpf_ctx"],
            "TASK_UTASK": task["utask"],
            "TYPE_RUN_CTX": number["bpf_uprobe_multi_run_ctx"],
            "RUN_CTX_UPROBE": context["uprobe"],
            "RUN_CTX_IS_RETURN": context["session_ctx"] + session["is_return"],
            "UPROBE_COOKIE": types["bpf_uprobe"][1]["cookie"],
            "UTASK_RETURNS": types["uprobe_task"][1]["return_instances"],
            "TYPE_RETURN": number["return_instance"],
            "RETURN_STACK": back["stack"],
            "RETURN_ADDRESS": back["orig_ret_vaddr"],
            "RETURN_NEXT": back["next"],
            "KFUNC_RDONLY_CAST": KFUNC + number["bpf_rdonly_cast"],
        }
    except KeyError:
        return []
    return ["-DKERNEL_FIELDS"] + ["-D%s=%d" % each for each in sorted(values.items())]


def compile_object(sources, include, flags):
    """Return {"maps": [...], "programs": {name: base64 code}}; map references in the code are map numbers."""
    os.environ["BCC_KERNEL_SOURCE"] = include
    from bcc import BPF, lib

    text = []
    for path in sources:
        with open(path) as file:
            text.append('#line 1 "%s"\n%s' % (os.path.basename(path), file.read()))
    program = BPF(text="\n".join(text), cflags=flags)
    module = program.module
    maps = []  # type: list[dict[str, object]]
    number_of = {}
    for i in range(lib.bpf_num_tables(module)):
        number_of[lib.bpf_table_fd_id(module, i)] = len(maps)
        maps.append(
            {
                "name": (ctypes.cast(lib.bpf_table_name(module, i), ctypes.c_char_p).value or b"").decode(),
                "type": lib.bpf_table_type_id(module, i),
                "key": lib.bpf_table_key_size_id(module, i),
                "value": lib.bpf_table_leaf_size_id(module, i),
                "max": lib.bpf_table_max_entries_id(module, i),
                "flags": lib.bpf_table_flags_id(module, i),
            }
        )
    programs = {}
    for i in range(lib.bpf_num_functions(module)):
        name = lib.bpf_function_name(module, i)
        start, size = lib.bpf_function_start(module, name), lib.bpf_function_size(module, name)
        code = bytearray(ctypes.string_at(start, size))
        for at in range(0, len(code), 8):
            value = struct.unpack_from("<i", code, at + 4)[0]
            if code[at] == 0x18 and code[at + 1] >> 4 == 1:  # a map's fd
                struct.pack_into("<i", code, at + 4, number_of[value])
            elif code[at] == 0x85 and value > KFUNC:
                code[at + 1] |= 2 << 4
                struct.pack_into("<i", code, at + 4, value - KFUNC)
        programs[name.decode()] = base64.b64encode(bytes(code)).decode()
    return {"maps": maps, "programs": programs}


def cached_object(request, flags):
    """Compile, or take the result of an earlier run on this kernel with these sources."""
    digest = hashlib.sha256()
    for path in [__file__] + request["sources"]:
        with open(path, "rb") as file:
            digest.update(file.read())
    digest.update(" ".join(flags).encode() + os.uname().release.encode())
    cache = request.get("cache")
    path = os.path.join(cache, digest.hexdigest()[:32] + ".json") if cache else None
    if path:
        try:
            with open(path) as file:
                return json.load(file), True
        except (OSError, ValueError):
            pass
    compiled = compile_object(request["sources"], request["include"], flags)
    if path:
        try:
            temporary = "%s.%d" % (path, os.getpid())
            with open(temporary, "w") as file:
                json.dump(compiled, file)
            os.replace(temporary, path)
        except OSError:
            pass
    return compiled, False


# ---- loading ---------------------------------------------------------------------------------------------------


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
    attr = struct.pack(
        "<IIIIIII16sIIII", kind, key, value, entries, flags, 0, 0, spec["name"].encode()[:15], 0, btf, 1 if btf else 0, 2 if btf else 0
    )
    fd = bpf(BPF_MAP_CREATE, attr)
    return fd, {"name": spec["name"], "key": key, "value": value, "entries": entries}


def load_program(name, code, maps, kind, attach):
    """Load one program; RuntimeError with the end of the verifier's words."""
    code = bytearray(base64.b64decode(code))
    for at in range(0, len(code), 8):
        if code[at] == 0x18 and code[at + 1] >> 4 == 1:
            number = struct.unpack_from("<i", code, at + 4)[0]
            struct.pack_into("<i", code, at + 4, maps[number])
    image = ctypes.create_string_buffer(bytes(code), len(code))
    license_text = ctypes.create_string_buffer(LICENSE)

    def attr(level, log):
        return struct.pack(
            "<IIQQIIQII16sII",
            kind,
            len(code) // 8,
            ctypes.addressof(image),
            ctypes.addressof(license_text),
            level,
            len(log) if level else 0,
            ctypes.addressof(log) if level else 0,
            0,
            0,
            name.encode()[:15],
            0,
            attach,
        )

    log = ctypes.create_string_buffer(1 << 24 if os.environ.get("SPECMINE_VERIFIER_LOG") else 1 << 20)
    try:
        return bpf(BPF_PROG_LOAD, attr(0, log))
    except OSError as error:
        if error.errno == errno.EPERM:
            raise
        try:
            return bpf(BPF_PROG_LOAD, attr(1, log))
        except OSError:
            words = log.value.decode(errors="replace").strip().splitlines()
            raise RuntimeError("%s: %s: %s" % (name, error.strerror, " | ".join(words[-6:])))


# ---- which links work here -------------------------------------------------------------------------------------


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
    fd = libc.syscall(298, buffer, os.getpid(), -1, -1, 8)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    link = bpf(BPF_LINK_CREATE, struct.pack("<IIIIQ", program, fd, PERF, 0, cookie))
    return fd, link


MODES = {  # kind of link -> (attach type, timing programs)
    "session": (SESSION, ["call_time_session", "call_path_session"]),
    "multi": (UPROBE_MULTI, ["call_time_entry", "call_time_return", "call_path_entry", "call_path_return"]),
    "perf": (0, ["call_time_entry", "call_time_return", "call_path_entry", "call_path_return"]),
}


SITE_PROGRAMS = ["call_time_site", "call_path_site", "call_site_return", "call_landing", "call_context"]


def fires(mode, programs, counters):
    """Attach to a function of our own, call it, and see whether the calls were timed; then take it off."""
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


def read_counters(fd, slot):
    """Return the counters of a slot, and zeros behind them."""
    key, value = ctypes.c_uint32(slot), (ctypes.c_uint64 * 512)()  # more than layout.h will ever hold: the kernel
    # writes the whole of a map's value, and what does not fit goes over something else
    bpf(BPF_MAP_LOOKUP_ELEM, struct.pack("<IIQQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0))
    return list(value)


def open_bucket(fd):
    """Let the self-test's slot through."""
    key, value = ctypes.c_uint32(255), (ctypes.c_uint64 * 4)(1 << 62, 0)
    bpf(2, struct.pack("<IIQQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0))


def load_calls(request, compiled, numbers, fds):
    """Load the programs for calls over the best links that work here; (mode, {name: fd}, notes)."""
    notes = []  # type: list[str]
    open_bucket(fds["slots"])
    for mode in request["modes"]:
        attach, names = MODES[mode]
        try:
            programs = {
                name: load_program(name, compiled["programs"][name], numbers, KPROBE, attach) for name in names
            }
            # Return sites are ordinary probes; they need links that come off fast
            if attach:
                for name in SITE_PROGRAMS:
                    programs[name] = load_program(name, compiled["programs"][name], numbers, KPROBE, UPROBE_MULTI)
            # counting has no return: over sessions it is a plain multi link
            count = "call_count" if attach else "call_count_perf"
            programs["call_count"] = load_program(
                count, compiled["programs"][count], numbers, KPROBE, UPROBE_MULTI if attach else 0
            )
            if not request["selftest"] or fires(mode, programs, fds["counters"]):
                return mode, programs, notes
            notes.append("%s links do not fire on this kernel" % mode)
        except (OSError, RuntimeError) as error:
            if isinstance(error, OSError) and error.errno == errno.EPERM:
                raise
            notes.append("%s links: %s" % (mode, error))
    raise RuntimeError("no kind of uprobe link works: " + "; ".join(notes))


def may_read_fields(types, compiled, numbers):
    """Tell whether the verifier takes programs that read the kernel's fields, if these do."""
    if not field_flags(types):
        return True
    try:
        os.close(load_program("call_count", compiled["programs"]["call_count"], numbers, KPROBE, UPROBE_MULTI))
    except RuntimeError:
        return False
    return True


def build(request):
    """Do the whole job; returns (answer, fds in the order of the answer's names)."""
    started = time.time()
    types = kernel_types()
    offsets = types["task_struct"][1] if "task_struct" in types else {}
    state = offsets.get("__state", offsets.get("state"))
    waiting = waiting_flags(types) if request.get("waiting") and scheduler_accounts() else []
    flags = ["-Wno-everything"] + request["flags"] + waiting
    flags += ["-DTASK_PID=%d" % offsets.get("pid", 0), "-DTASK_TGID=%d" % offsets.get("tgid", 0)]
    flags += ["-DTASK_STATE=%d" % (state or 0)]
    compiled, from_cache = cached_object(request, flags + field_flags(types))
    made = [make_map(spec, request["sizes"]) for spec in compiled["maps"]]
    numbers = [fd for fd, _ in made]
    if not may_read_fields(types, compiled, numbers):
        compiled, from_cache = cached_object(request, flags)
    fds = {info["name"]: fd for fd, info in made}
    mode, programs, notes = load_calls(request, compiled, numbers, fds)
    kinds = {"on_cpu": PERF_EVENT} if request["sampling"] else {}
    if state is not None:
        kinds.update({"on_switch": RAW_TRACEPOINT} if request["sampling"] else {})
        kinds["on_fork"] = RAW_TRACEPOINT
    else:
        notes.append("no BTF: waits are not sampled, forked processes are found by looking into /proc")
    kinds.update({"on_exec": RAW_TRACEPOINT, "on_exit": RAW_TRACEPOINT})
    for name in kinds:
        try:
            programs[name] = load_program(name, compiled["programs"][name], numbers, kinds[name], 0)
        except (OSError, RuntimeError) as error:
            notes.append(str(error))
    answer = {
        "ok": True,
        "mode": mode,
        "notes": notes,
        "waiting": bool(waiting),
        "cached": from_cache,
        "seconds": round(time.time() - started, 3),
        "maps": [info for _, info in made],
        "programs": list(programs),
    }
    return answer, numbers + [programs[name] for name in programs]


def main():
    """Serve one request: sources, include, flags, sizes, modes, selftest, cache."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    request = json.loads(channel.recv(1 << 16).decode())
    try:
        answer, fds = build(request)
    except ImportError as error:
        answer, fds = {"ok": False, "kind": "bcc", "error": str(error)}, []
    except OSError as error:
        kind = "permission" if error.errno in (errno.EPERM, errno.EACCES) else "kernel"
        answer, fds = {"ok": False, "kind": kind, "error": str(error)}, []
    except Exception as error:  # bcc raises bare Exception for a failed compilation
        answer, fds = {"ok": False, "kind": "kernel", "error": str(error)}, []
    packed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    channel.sendmsg([json.dumps(answer).encode()], packed)


if __name__ == "__main__":
    main()
