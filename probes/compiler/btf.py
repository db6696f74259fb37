"""Offsets in this kernel's own structs, from its BTF, as definitions for the compiler."""
import struct

KERNEL_TYPES = {  # structs of the kernel and the members that the programs read; functions, which have none
    "task_struct": ("pid", "tgid", "start_time", "__state", "state", "sched_info", "se", "bpf_ctx", "utask", "files",
                    "group_leader", "thread_pid", "nvcsw"),
    "sched_info": ("pcount", "run_delay", "last_queued"),
    "sched_entity": ("sum_exec_runtime", "exec_start", "cfs_rq"),
    "cfs_rq": ("rq",),
    "rq": ("clock", "clock_task", "curr"),
    "bpf_uprobe_multi_run_ctx": ("session_ctx", "uprobe"),
    "bpf_session_run_ctx": ("is_return",),
    "bpf_uprobe": ("cookie",),
    "uprobe_task": ("return_instances",),
    "return_instance": ("stack", "orig_ret_vaddr", "next"),
    "files_struct": ("fdt",),
    "fdtable": ("max_fds", "fd"),
    "file": ("f_inode",),
    "inode": ("i_mode", "i_flags"),
    "pid": ("level", "numbers"),
    "upid": ("nr", "ns"),
    "pid_namespace": ("ns",),
    "ns_common": ("inum",),
    "bpf_rdonly_cast": (),
    "bpf_iter_task": (),
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
    names = {data.find(b"\0" + name.encode() + b"\0", strings) + 1 - strings: name for name in KERNEL_TYPES}
    position, end, number = start + types_off, start + types_off + types_len, 0
    sizes = {1: 4, 3: 12, 14: 4, 17: 4}
    unpack = struct.Struct("<III").unpack_from
    found = {}  # type: dict[str, tuple[int, dict[str, int]]]
    nameless = {}  # type: dict[int, bytes]
    within = []  # type: list[tuple[str, int, int]]

    def take(owner, members, base):
        """Record the offsets of a struct's members, and those that are structs or unions without a name."""
        for at, kind, bits in struct.iter_unpack("<III", members):
            field = data[strings + at : data.index(b"\0", strings + at)].decode()
            if field in KERNEL_TYPES[owner]:
                found[owner][1].setdefault(field, base + ((bits & 0xFFFFFF) >> 3))
            elif not field:
                within.append((owner, kind, base + ((bits & 0xFFFFFF) >> 3)))

    while position < end and (len(found) < len(KERNEL_TYPES) or any(kind not in nameless for _, kind, _ in within)):
        number += 1
        name, info, _ = unpack(data, position)
        kind, vlen = info >> 24 & 31, info & 0xFFFF
        position += 12
        wanted = KERNEL_TYPES[names[name]] if name in names else None
        if (kind == 4 and vlen and wanted or kind == 12 and wanted == ()) and names[name] not in found:
            found[names[name]] = number, {}
            take(names[name], data[position : position + 12 * vlen] if kind == 4 else b"", 0)
        elif not name and kind in (4, 5):
            nameless[number] = data[position : position + 12 * vlen]
        if kind in (4, 5, 15, 19):
            position += 12 * vlen
        elif kind in (6, 13):
            position += 8 * vlen
        else:
            position += sizes.get(kind, 0)
    for owner, kind, base in within:  # grows while it is gone through
        take(owner, nameless.get(kind, b""), base)
    return found


def scheduler_accounts():
    """Return whether this kernel's scheduler counts how often a thread was given a CPU: ours was, at least once."""
    try:
        with open("/proc/self/schedstat") as file:
            return int(file.read().split()[2]) > 0
    except (OSError, ValueError, IndexError):
        return False


def waiting_flags(types):
    """Return the definitions for off_cpu.h; none where the kernel does not account waiting by thread."""
    try:
        task, info, entity, clocks = (types[name][1] for name in ("task_struct", "sched_info", "sched_entity", "rq"))
        places = {
            "TASK_ARRIVALS": task["sched_info"] + info["pcount"],
            "TASK_RUN_DELAY": task["sched_info"] + info["run_delay"],
            "TASK_QUEUED": task["sched_info"] + info["last_queued"],
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


def descriptor_flags(types):
    """Return the definitions for waits.h; none where the structs of open files are not known."""
    try:
        values = {
            "TASK_FILES": types["task_struct"][1]["files"],
            "FILES_TABLE": types["files_struct"][1]["fdt"],
            "TABLE_SIZE": types["fdtable"][1]["max_fds"],
            "TABLE_FILES": types["fdtable"][1]["fd"],
            "FILE_INODE": types["file"][1]["f_inode"],
            "INODE_MODE": types["inode"][1]["i_mode"],
            "INODE_FLAGS": types["inode"][1]["i_flags"],
        }
    except KeyError:
        return []
    return ["-DDESCRIPTORS"] + ["-D%s=%d" % item for item in sorted(values.items())]


def look_flags(types):
    """Return the definitions for blocked.bpf.c; none where the kernel has no iterator over its tasks."""
    sleeps = types.get("task_struct", (0, {}))[1].get("nvcsw")
    return ["-DLOOKING", "-DTASK_SLEEPS=%d" % sleeps] if sleeps and "bpf_iter_task" in types else []


def namespace_flags(types, inode):
    """Return the definitions for process_ids.h; none in the host's pid namespace, whose inode is given as 0."""
    if not inode:
        return []
    try:
        task, number = types["task_struct"][1], types["upid"][1]
        values = {
            "PID_NAMESPACE": inode,
            "TASK_LEADER": task["group_leader"],
            "TASK_THREAD_PID": task["thread_pid"],
            "PID_LEVEL": types["pid"][1]["level"],
            "PID_NUMBERS": types["pid"][1]["numbers"],
            "UPID_NUMBER": number["nr"],
            "UPID_NAMESPACE": number["ns"],
            "UPID_SIZE": number["ns"] + 8,
            "NAMESPACE_INODE": types["pid_namespace"][1]["ns"] + types["ns_common"][1]["inum"],
        }
    except KeyError as error:
        raise RuntimeError("in a pid namespace of its own specmine needs the kernel's type %s (BTF)" % error) from error
    return ["-D%s=%d" % item for item in sorted(values.items())]


def field_flags(types):
    """Return the definitions for hit.h; none where this kernel's types are not known."""
    try:
        number = {name: found[0] for name, found in types.items()}
        task, context, session = (
            types[name][1] for name in ("task_struct", "bpf_uprobe_multi_run_ctx", "bpf_session_run_ctx")
        )
        back = types["return_instance"][1]
        values = {
            "TASK_BPF_CTX": task["bpf_ctx"],
            "TASK_UTASK": task["utask"],
            "TASK_BORN": task["start_time"],
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
    return ["-DKERNEL_FIELDS"] + ["-D%s=%d" % each for each in sorted(values.items())] + queue_flags(types)


def queue_flags(types):
    """Return the definitions for finding the task that a CPU runs; none where the scheduler has no groups of tasks."""
    try:
        values = {
            "TASK_CFS_QUEUE": types["task_struct"][1]["se"] + types["sched_entity"][1]["cfs_rq"],
            "CFS_QUEUE_QUEUE": types["cfs_rq"][1]["rq"],
            "QUEUE_CURR": types["rq"][1]["curr"],
            "TYPE_QUEUE": types["rq"][0],
            "TYPE_TASK": types["task_struct"][0],
        }
    except KeyError:
        return []
    return ["-DKERNEL_QUEUES"] + ["-D%s=%d" % each for each in sorted(values.items())]
