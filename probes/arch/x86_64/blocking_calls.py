"""System calls in which threads wait or send signals, by number (arch/x86/entry/syscalls/syscall_64.tbl of Linux)."""

from __future__ import annotations

from specmine.probes.arch.interface import BlockingCall

_BY_DESCRIPTOR = {
    "read": 0,
    "write": 1,
    "pread64": 17,
    "pwrite64": 18,
    "readv": 19,
    "writev": 20,
    "sendfile": 40,
    "fcntl": 72,
    "flock": 73,
    "fsync": 74,
    "fdatasync": 75,
    "ftruncate": 77,
    "getdents64": 217,
    "splice": 275,
    "tee": 276,
    "sync_file_range": 277,
    "vmsplice": 278,
    "fallocate": 285,
    "preadv": 295,
    "pwritev": 296,
    "syncfs": 306,
    "copy_file_range": 326,
    "preadv2": 327,
    "pwritev2": 328,
    "ioctl": 16,
    "close": 3,
}
"""The kind of their first argument, a descriptor, says for what."""
_BY_KIND = {
    "futex": {"futex": 202, "futex_waitv": 449, "futex_wait": 455},
    "socket": {
        "connect": 42,
        "accept": 43,
        "sendto": 44,
        "recvfrom": 45,
        "sendmsg": 46,
        "recvmsg": 47,
        "accept4": 288,
        "recvmmsg": 299,
        "sendmmsg": 307,
    },
    "poll": {
        "poll": 7,
        "select": 23,
        "epoll_wait": 232,
        "pselect6": 270,
        "ppoll": 271,
        "epoll_pwait": 281,
        "epoll_pwait2": 441,
    },
    "sleep": {"nanosleep": 35, "clock_nanosleep": 230, "restart_syscall": 219},
    "file": {
        "open": 2,
        "stat": 4,
        "lstat": 6,
        "msync": 26,
        "truncate": 76,
        "rename": 82,
        "mkdir": 83,
        "rmdir": 84,
        "creat": 85,
        "unlink": 87,
        "sync": 162,
        "openat": 257,
        "newfstatat": 262,
        "unlinkat": 263,
        "renameat": 264,
        "renameat2": 316,
        "statx": 332,
        "io_getevents": 208,
    },
    "fault": {"mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "mremap": 25, "madvise": 28},
    "other": {
        "pause": 34,
        "wait4": 61,
        "semop": 65,
        "msgsnd": 69,
        "msgrcv": 70,
        "rt_sigtimedwait": 128,
        "rt_sigsuspend": 130,
        "semtimedop": 220,
        "waitid": 247,
        "vfork": 58,
        "io_uring_enter": 426,
    },
}

BLOCKING_CALLS = {number: BlockingCall(name, "") for name, number in _BY_DESCRIPTOR.items()} | {
    number: BlockingCall(name, kind) for kind, calls in _BY_KIND.items() for name, number in calls.items()
}

SIGNAL_CALLS = {
    62: "kill",
    129: "rt_sigqueueinfo",
    200: "tkill",
    234: "tgkill",
    297: "rt_tgsigqueueinfo",
    424: "pidfd_send_signal",
}
