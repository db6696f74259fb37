"""One request: compile, load, and send the fds back."""
import array
import errno
import json
import os
import socket
import sys
import time

from .bytecode import cached_object
from .bpf_syscall import (
    ITERATOR,
    KPROBE,
    PERF_EVENT,
    RAW_TRACEPOINT,
    SYSCALLS,
    TRACING,
    UPROBE_MULTI,
    load_program,
    make_map,
)
from .btf import (
    descriptor_flags,
    field_flags,
    kernel_types,
    look_flags,
    namespace_flags,
    scheduler_accounts,
    waiting_flags,
)
from .link_selftest import load_calls, load_more_calls
from .program_loads import ProgramLoads

WITHOUT = {"on_look": "waits are followed instead of looked at: "}
"""What a program's failure to load means."""
MOST_FDS = 250
"""Of one message."""


def may_read_fields(compiled, numbers):
    """Return whether the verifier accepts these programs, which read fields of the kernel's structs."""
    try:
        os.close(load_program("call_count", compiled["programs"]["call_count"], numbers, KPROBE, UPROBE_MULTI))
    except RuntimeError:
        return False
    return True


def others(request, has_types, iterated):
    """Return the programs besides those for calls: how each is loaded."""
    kinds = {}
    if request["following"]:
        kinds.update({"on_exec": RAW_TRACEPOINT, "on_exit": RAW_TRACEPOINT})
    if request["sampling"]:
        kinds["on_cpu"] = PERF_EVENT
    if has_types:  # these read the kernel's fields
        kinds.update({"on_fork": RAW_TRACEPOINT, "on_stop": RAW_TRACEPOINT} if request["following"] else {})
        kinds.update({"on_switch": RAW_TRACEPOINT} if request["sampling"] else {})
    ways = {name: (kind, 0) for name, kind in kinds.items()}  # type: dict[str, tuple[int, ...]]
    if iterated and request["sampling"]:
        ways["on_look"] = (TRACING, ITERATOR, iterated)
    return ways


def build(request, held):
    """Return (answer, fds in the order of the names in the answer).

    ``held`` are the fds of maps that were made before, in the order of request["maps"]; [] to make them.
    """
    started = time.time()
    SYSCALLS.update(request["syscalls"])
    types = kernel_types()
    offsets = types["task_struct"][1] if "task_struct" in types else {}
    state = offsets.get("__state", offsets.get("state"))
    waiting = waiting_flags(types) if request.get("waiting") and scheduler_accounts() else []
    flags = ["-Wno-everything"] + request["flags"] + waiting
    flags += ["-DTASK_PID=%d" % offsets.get("pid", 0), "-DTASK_TGID=%d" % offsets.get("tgid", 0)]
    flags += ["-DTASK_STATE=%d" % (state or 0)] + descriptor_flags(types)
    looking = look_flags(types)
    flags += namespace_flags(types, request["pid_namespace"]) + looking
    fields = field_flags(types) if request.get("fields", True) else []
    compiled = cached_object(request, flags + fields)
    if held:
        fds, made = dict(zip(request["maps"], held)), []
        numbers = [fds[spec["name"]] for spec in compiled["maps"]]
    else:
        made = [make_map(spec, request["sizes"]) for spec in compiled["maps"]]
        numbers = [fd for fd, _ in made]
        fds = {info["name"]: fd for fd, info in made}
        if fields and not may_read_fields(compiled, numbers):
            fields = []
            compiled = cached_object(request, flags)
    iterated = types["bpf_iter_task"][0] if looking else 0
    loads, more = ProgramLoads(compiled, numbers), others(request, state is not None, iterated)
    loads.begin([(name, *how) for name, how in more.items()])
    if held:
        mode, programs, notes = "", load_more_calls(request, loads), []
    else:
        mode, programs, notes = load_calls(request, loads, fds)
    if state is None and not held:
        notes.append("no BTF: waits are not sampled, forked processes are found by looking into /proc")
    for name, how in more.items():
        try:
            programs[name] = loads.loaded(name, *how)
        except (OSError, RuntimeError) as error:
            notes.append(WITHOUT.get(name, "") + str(error))
    answer = {
        "ok": True,
        "mode": mode,
        "notes": notes,
        "waiting": bool(waiting),
        "fields": bool(fields),
        "seconds": round(time.time() - started, 3),
        "cpu_seconds": round(time.process_time(), 3),
        "maps": [info for _, info in made],
        "programs": list(programs),
    }
    return answer, [fd for fd, _ in made] + [programs[name] for name in programs]


def received(channel):
    """Return the request and the fds that came with it."""
    data, extra, _, _ = channel.recvmsg(1 << 16, socket.CMSG_SPACE(4 * MOST_FDS))
    held = array.array("i")
    for level, kind, payload in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            held.frombytes(payload[: len(payload) - len(payload) % 4])
    return json.loads(data.decode()), list(held)


def main():
    """Serve one request: sources, include, flags, sizes, modes, syscalls, cache, and which programs are wanted.

    A request with maps that were made before loads more programs over them.
    """
    channel = socket.socket(fileno=int(sys.argv[1]))
    os.nice(int(sys.argv[2]))
    request, held = received(channel)
    try:
        answer, fds = build(request, held)
    except ImportError as error:
        answer, fds = {"ok": False, "kind": "bcc", "error": str(error)}, []
    except OSError as error:
        kind = "permission" if error.errno in (errno.EPERM, errno.EACCES) else "kernel"
        answer, fds = {"ok": False, "kind": kind, "error": str(error)}, []
    except Exception as error:  # bcc raises bare Exception for a failed compilation
        answer, fds = {"ok": False, "kind": "kernel", "error": str(error)}, []
    packed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    channel.sendmsg([json.dumps(answer).encode()], packed)
