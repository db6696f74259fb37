"""The structs that the BPF programs and user space share; a test compares them with bpf/layout.h."""

from __future__ import annotations

import numpy as np

MAX_SLOTS = 256
FREE_SLOTS = MAX_SLOTS - 4
"""The last four are for nonlocal exits and calibration."""
MAX_FRAMES = 64
MAX_RANGES = 128
WAIT_MARKS, SWITCHES_A_TIMED = 1024, 64
UNSENT = ("events", "paths", "alarms")
"""What a ring buffer had no room for, by number."""

COOKIE_SHARED = 1 << 8
COOKIE_PATH = 1 << 9
COOKIE_STEPPED = 1 << 10
GENERATION_SHIFT = 16
"""The upper half of a cookie is the use of the slot that it belongs to."""

SLOT = np.dtype(
    [
        ("limit", "<u8"),
        ("generation", "<u8"),
        ("entry_ns", "<u4"),
        ("return_ns", "<u4"),
        ("timed_of_4g", "<u4"),
        ("era", "<u4"),
        ("step_ns", "<u4"),
        ("spare", "<u4"),
        ("max_open", "<u8"),
        ("period", "<u8"),
    ]
)
PERIODS = 4
_COUNTERS = (
    "hits",
    "calls",
    "timed",
    "inner",
    "lost",
    "dropped",
    "unlearnt",
    "bystander_hits",
    "nested",
    "nested_ns",
    "unsplit",
    "handler_ns",
    "handlers_timed",
    "handler_log",
    "censored",
)
COUNTERS = np.dtype(
    [
        *((name, "<u8") for name in _COUNTERS),
        ("open", "<u8", PERIODS),
        ("late", "<u8", PERIODS),
        ("stepped", "<u8"),
        ("untold", "<u8"),
    ]
)
PROCESS = np.dtype([("program", "<u4"), ("layout", "<u4"), ("followed", "<u4"), ("spare", "<u4")])
RANGE_ROWS, RANGE_FRAMES, RANGE_JIT, RANGE_PROBE = 1, 2, 4, 8
RANGE = np.dtype([("start", "<u8"), ("end", "<u8"), ("file_offset", "<u8"), ("index", "<u4"), ("flags", "<u4")])
LAYOUT = np.dtype([("count", "<u4"), ("spare", "<u4"), ("ranges", RANGE, MAX_RANGES)])
PATH = np.dtype(
    [
        ("id", "<u8"),
        ("parent", "<u8"),
        ("tgid", "<u4"),
        ("layout", "<u4"),
        ("count", "<u2"),
        ("outcome", "<u2"),
        ("spare", "<u4"),
        ("address", "<u8", MAX_FRAMES),
    ]
)
PATH_BUCKET = np.dtype([("path", "<u8"), ("cookie", "<u4"), ("bucket", "<u4")])
OFF_CPU = np.dtype([("path", "<u8"), ("cookie", "<u4"), ("bucket", "<u2"), ("running", "<u2")])
OFF_CPU_VALUE = np.dtype([("calls", "<u8"), ("waiting", "<u8"), ("blocked", "<u8")])
MAX_CALLEES = 6
OTHER_CALLEES = 0xFFFF_00FF
"""Stands for all callees of one call beyond those that are told apart."""
AWAY_UNIT_NS = 256
BLOCKED_SHIFT = 3
BLOCKED_CALL, BLOCKED_IN = 0x8000, 0x100
"""Bits of a bucket, and of a callee, in keys: the call was blocked for much of its time, and was so within it."""
INSIDE_KEY = np.dtype(
    [("path", "<u8"), ("cookie", "<u4"), ("bucket", "<u2"), ("era", "<u2"), ("callees", "<u4", MAX_CALLEES)]
)
INSIDE_SUMS = np.dtype([("ns", "<u8"), ("waiting", "<u8"), ("blocked", "<u8"), ("calls", "<u8")])
INSIDE_VALUE = np.dtype([("calls", "<u8"), ("waiting", "<u8"), ("blocked", "<u8"), ("of", INSIDE_SUMS, MAX_CALLEES)])
SAMPLE = np.dtype([("path", "<u8"), ("program", "<u4"), ("waiting", "<u4")])
SAMPLE_VALUE = np.dtype([("count", "<u8"), ("ns", "<u8")])
WAIT = np.dtype(
    [
        ("start", "<u8"),
        ("path", "<u8"),
        ("program", "<u4"),
        ("weight", "<u4"),
        ("begun", "<u8"),
        ("cookie", "<u4"),
        ("call_weight", "<u4"),
        ("call", "<u2"),
        ("object", "<u2"),
        ("waker_call", "<u2"),
        ("waker", "<u2"),
        ("waker_path", "<u8"),
    ]
)
WAKER_WATCHED, WAKER_FOREIGN = 1, 2
CALL_WAIT = np.dtype(
    [
        ("path", "<u8"),
        ("cookie", "<u4"),
        ("call", "<u2"),
        ("object", "<u2"),
        ("bucket", "<u2"),
        ("waker_call", "<u2"),
        ("waker", "<u2"),
        ("spare", "<u2"),
        ("waker_path", "<u8"),
    ]
)
NO_CALL = 0xFFFF
SETTINGS = np.dtype(
    [
        ("wait_every", "<u4"),
        ("period_ns", "<u4"),
        ("followed", "<u4"),
        ("follow_every", "<u4"),
        ("left", "<i8"),
        ("look_every", "<u4"),
        ("spare", "<u4"),
    ]
)
BLOCKED_THREAD = np.dtype([("path", "<u8"), ("sleeps", "<u8"), ("tid", "<u4"), ("spare", "<u4")])
SWITCHES = np.dtype([("timed", "<u8"), ("ns", "<u8"), ("own", "<u8")])
EPOCHS = np.dtype([("by_user", "<u8"), ("by_kernel", "<u8")])
NEST = np.dtype([("inner", "<u8", MAX_SLOTS // 64)])
CALL_SAMPLES = 256
CALL_SAMPLE_PAGE = np.dtype([("began", "<u8"), ("first", "<u8", CALL_SAMPLES), ("kept", "<u8", CALL_SAMPLES)])
RETURN_SITE = np.dtype([("address", "<u8"), ("layout", "<u4"), ("slot", "<u4")])
RETURN_PROBED, RETURN_REFUSED, RETURN_SHARED = 1, 2, 3
EVENT = np.dtype([("type", "<u4"), ("tgid", "<u4"), ("value", "<u8"), ("address", "<u8")])

EVENT_FORK, EVENT_EXEC, EVENT_EXIT, EVENT_BYSTANDER, EVENT_RETURN, EVENT_STOP = 1, 2, 3, 5, 6, 7

WALKS = {
    1: "complete",
    2: "joined",
    3: "no-range",
    4: "no-row",
    5: "unsupported",
    6: "fault",
    7: "deep",
    8: "jit",
    9: "hidden",
    10: "no-layout",
    11: "busy",
    12: "probe",
}
"""How a stack walk ended, by the number that the programs use; 1 and 2 are complete paths."""
