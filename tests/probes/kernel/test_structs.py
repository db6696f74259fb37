"""The C structs and their Python twins are the same, and the C histogram is the Python one."""

from __future__ import annotations

import ast
import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from specmine.model.buckets import BUCKET_EDGES, BUCKETS, bucket_of
from specmine.probes.kernel import structs
from tests.support.paths import ROOT

BPF = ROOT / "probes" / "bpf"
TYPES = "typedef unsigned long long u64; typedef unsigned int u32; typedef unsigned short u16;\n"
STRUCTS = {
    "slot": structs.SLOT,
    "counters": structs.COUNTERS,
    "process": structs.PROCESS,
    "nest": structs.NEST,
    "call_samples": structs.CALL_SAMPLE_PAGE,
    "inside_key": structs.INSIDE_KEY,
    "inside_sums": structs.INSIDE_SUMS,
    "inside_value": structs.INSIDE_VALUE,
    "epochs": structs.EPOCHS,
    "range": structs.RANGE,
    "layout": structs.LAYOUT,
    "path": structs.PATH,
    "path_bucket": structs.PATH_BUCKET,
    "sample": structs.SAMPLE,
    "sample_value": structs.SAMPLE_VALUE,
    "wait": structs.WAIT,
    "call_wait": structs.CALL_WAIT,
    "settings": structs.SETTINGS,
    "switches": structs.SWITCHES,
    "event": structs.EVENT,
}


def build(folder: Path, text: str) -> ctypes.CDLL:
    """Compile C for this host into a library."""
    source, library = folder / "probe.c", folder / "probe.so"
    source.write_text(text)
    subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", f"-I{BPF}", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize("name", STRUCTS)
def test_struct_has_the_layout_that_python_reads(name: str, tmp_path: Path) -> None:
    """Size and every field's offset agree."""
    dtype = STRUCTS[name]
    assert dtype.names is not None and dtype.fields is not None
    fields = ", ".join(f"__builtin_offsetof(struct {name}, {field})" for field in dtype.names)
    body = f"long offsets[] = {{ {fields}, sizeof(struct {name}) }};"
    library = build(tmp_path, f'{TYPES}#include "layout.h"\n{body}\n')
    found = list((ctypes.c_long * (len(dtype.names) + 1)).in_dll(library, "offsets"))
    assert found == [dtype.fields[field][1] for field in dtype.names] + [dtype.itemsize]


def test_numbers_are_the_same_on_both_sides() -> None:
    """Constants that both sides name have one value."""
    text = (BPF / "layout.h").read_text()
    defined = dict(re.findall(r"#define (\w+) +\(?(\w+)", text))
    same = ("MAX_SLOTS", "MAX_FRAMES", "MAX_RANGES", "CALL_SAMPLES", "WAIT_MARKS", "SWITCHES_A_TIMED", "PERIODS")
    for name in (*same, "RANGE_ROWS", "RANGE_FRAMES", "RANGE_JIT", "RANGE_PROBE"):
        assert int(defined[name]) == getattr(structs, name), name
    for name in (name for name in vars(structs) if name.startswith(("EVENT_", "RETURN_")) and name != "RETURN_SITE"):
        assert int(defined[name]) == getattr(structs, name), name
    unsent = {int(n): w.lower() for w, n in re.findall(r"#define UNSENT_(\w+) (\d+)", text)}
    assert tuple(unsent[number] for number in range(int(defined["UNSENT"]))) == structs.UNSENT
    walks = {int(n): w for w, n in re.findall(r"#define WALK_(\w+) (\d+)", text) if w != "OUTCOMES"}
    assert {n: w.lower().replace("_", "-") for n, w in walks.items()} == structs.WALKS


def test_the_compiling_child_is_python_3_6() -> None:
    """The child runs under the interpreter that has bcc, which may be old."""
    files = list((BPF.parent / "compiler").glob("*.py"))
    assert len(files) > 1
    for file in files:
        ast.parse(file.read_text(), str(file), feature_version=(3, 6))


def test_kernel_buckets_are_the_miners_buckets(tmp_path: Path) -> None:
    """bucket_of in C equals bucket_of in Python at every edge, beside it, and at random durations."""
    library = build(tmp_path, '#include "histogram.h"\nunsigned f(unsigned long long v) { return bucket_of(v); }')
    library.f.argtypes = [ctypes.c_ulonglong]
    edges = BUCKET_EDGES.astype(np.int64)
    random = np.random.default_rng(1)
    values = np.concatenate([edges - 1, edges, edges + 1, np.exp2(random.uniform(0, 41, 5000)).astype(np.int64)])
    values = values[values >= 0]
    assert [library.f(int(v)) for v in values] == list(bucket_of(values))
    assert library.f(1 << 60) == BUCKETS - 1
