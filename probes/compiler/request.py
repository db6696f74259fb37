"""One request: compile, load, and send the fds back."""
import array
import errno
import json
import os
import socket
import sys
import time

from .bytecode import cached_object
from .bpf_syscall import KPROBE, PERF_EVENT, RAW_TRACEPOINT, SYSCALLS, UPROBE_MULTI, load_program, make_map
from .btf import descriptor_flags, field_flags, kernel_types, scheduler_accounts, waiting_flags
from .link_selftest import load_calls
from .program_loads import ProgramLoads


def may_read_fields(types, compiled, numbers):
    """Return whether the verifier accepts these programs, if they read fields of the kernel's structs."""
    if not field_flags(types):
        return True
    try:
        os.close(load_program("call_count", compiled["programs"]["call_count"], numbers, KPROBE, UPROBE_MULTI))
    except RuntimeError:
        return False
    return True


def others(request, has_types):
    """Return the programs besides those for calls, with their kinds."""
    kinds = {"on_exec": RAW_TRACEPOINT, "on_exit": RAW_TRACEPOINT}
    if request["sampling"]:
        kinds["on_cpu"] = PERF_EVENT
    if has_types:  # these read the kernel's fields
        kinds.update({"on_fork": RAW_TRACEPOINT, "on_stop": RAW_TRACEPOINT})
        kinds.update({"on_switch": RAW_TRACEPOINT} if request["sampling"] else {})
    return kinds


def build(request):
    """Return (answer, fds in the order of the names in the answer)."""
    started = time.time()
    SYSCALLS.update(request["syscalls"])
    types = kernel_types()
    offsets = types["task_struct"][1] if "task_struct" in types else {}
    state = offsets.get("__state", offsets.get("state"))
    waiting = waiting_flags(types) if request.get("waiting") and scheduler_accounts() else []
    flags = ["-Wno-everything"] + request["flags"] + waiting
    flags += ["-DTASK_PID=%d" % offsets.get("pid", 0), "-DTASK_TGID=%d" % offsets.get("tgid", 0)]
    flags += ["-DTASK_STATE=%d" % (state or 0)] + descriptor_flags(types)
    compiled = cached_object(request, flags + field_flags(types))
    made = [make_map(spec, request["sizes"]) for spec in compiled["maps"]]
    numbers = [fd for fd, _ in made]
    if not may_read_fields(types, compiled, numbers):
        compiled = cached_object(request, flags)
    fds = {info["name"]: fd for fd, info in made}
    loads, more = ProgramLoads(compiled, numbers), others(request, state is not None)
    loads.begin([(name, kind, 0) for name, kind in more.items()])
    mode, programs, notes = load_calls(request, loads, fds)
    if state is None:
        notes.append("no BTF: waits are not sampled, forked processes are found by looking into /proc")
    for name, kind in more.items():
        try:
            programs[name] = loads.loaded(name, kind, 0)
        except (OSError, RuntimeError) as error:
            notes.append(str(error))
    answer = {
        "ok": True,
        "mode": mode,
        "notes": notes,
        "waiting": bool(waiting),
        "seconds": round(time.time() - started, 3),
        "maps": [info for _, info in made],
        "programs": list(programs),
    }
    return answer, numbers + [programs[name] for name in programs]


def main():
    """Serve one request: sources, include, flags, sizes, modes, selftest, syscalls, cache."""
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
