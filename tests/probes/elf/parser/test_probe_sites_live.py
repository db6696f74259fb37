"""A moved probe stands for the entry: every call once, after the entry, with the entry's stack pointer.

The oracle is a plain probe on the function's first byte, both recorded by perf events while stock programs run.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from specmine.model.buckets import BUCKETS
from specmine.model.observation import Kind
from specmine.probes.elf.facts import Grade, Site
from specmine.probes.elf.parser.branches import find_branches
from specmine.probes.elf.parser.probe_sites import find_sites
from specmine.probes.elf.parser.symbols import function_table
from specmine.probes.elf.parser.unwind_rows import read_frames
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import load
from specmine.probes.kernel.maps import map_array
from specmine.probes.kernel.structs import COUNTERS, MAX_SLOTS, SLOT
from tests.support.binary_samples import LIBRARIES, assembled, compiled, image_of
from tests.support.patience import patient
from tests.support.uprobe_records import Hit, recorded

pytestmark = pytest.mark.kernel

MOST, LEAST_CALLS, AT_ONCE = 8, 5, 200
SHELL_WORK = (
    "f() { local a=$1; a=${a//x/y}; [[ $a == *y* ]] && echo ${a%%y*}; }; "
    "for i in 1 2 3 4 5 6 7 8; do f axbxc$i; printf '%d %s\\n' $i \"$(( i * 7 % 3 ))\"; done; "
    "declare -A t; t[k]=v; echo ${t[k]} ${#t[@]}; cd /; pwd; test -d /tmp; read y < /etc/hostname; echo $y"
)


def moved_sites(path: Path) -> list[Site]:
    """Return the sites of a file's functions that do not lie on the first byte."""
    image = image_of(path)
    frames, branches = read_frames(image), find_branches(image)
    table = function_table(image, frames, branches, path.name)
    starts = [int(each) for each in table.starts]
    found = find_sites(image, table, frames.rows, branches, starts, kernel_emulates_nops=True)
    return [each for each in found if each.grade is Grade.EMULATED and each.offset != each.function]


def waiting(command: list[str]) -> subprocess.Popen[str]:
    """Start a command that waits for a line before it begins."""
    words = ["sh", "-c", 'read x; exec "$@"', "sh", *command]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )


def called_ones(path: Path, sites: list[Site], command: list[str], cache: Path) -> list[Site]:
    """Return some of the sites that a run of the command passes, counted by our own programs."""
    loaded = load(interpreter="/usr/bin/python3", memory_bytes=16 << 20, buckets=BUCKETS, cache=cache, sampling=False)
    links = Links(loaded)
    try:
        counters = map_array(loaded.maps["counters"], MAX_SLOTS, COUNTERS)
        map_array(loaded.maps["slots"], MAX_SLOTS, SLOT, writable=True)["limit"] = 1 << 62
        found: list[Site] = []
        for begin in range(0, len(sites), AT_ONCE):
            some = sites[begin : begin + AT_ONCE]
            before = counters["hits"][: len(some)].copy()
            with waiting(command) as child, path.open("rb") as file:
                links.attach(
                    file.fileno(), [each.offset for each in some], list(range(len(some))), Kind.COUNT, child.pid
                )
                assert [each.what for each in links.news(patient(60))] == ["made"]
                child.communicate("\n", timeout=patient(60))
            hits = counters["hits"][: len(some)] - before
            found += [each for each, count in zip(some, hits.tolist(), strict=True) if LEAST_CALLS <= count < 4000]
            if len(found) >= MOST:
                break
        return found[:: max(1, len(found) // MOST)][:MOST]
    finally:
        links.shut()
        loaded.close()


def compare(path: Path, sites: list[Site], command: list[str]) -> int:
    """Run the command with both probes of each site on; return the number of calls compared."""
    with waiting(command) as child:
        both = recorded([(path, at) for each in sites for at in (each.function, each.offset)], child.pid)
        try:
            child.communicate("\n", timeout=patient(120))
            hits = [each.hits() for each in both]
        finally:
            for each in both:
                each.close()
    calls = 0
    for number, site in enumerate(sites):
        entries, moved = hits[2 * number], hits[2 * number + 1]
        assert len(entries) == len(moved), hex(site.function)
        calls += len(entries)
        for entry, probe in pairs(entries, moved):
            assert entry.sp == probe.sp, hex(site.function)
    return calls


def pairs(entries: list[Hit], moved: list[Hit]) -> Iterator[tuple[Hit, Hit]]:
    """Yield each entry with the probe's hit that follows it on its thread; fail if they do not take turns."""
    order = sorted([(*hit, 0) for hit in entries] + [(*hit, 1) for hit in moved])
    open_calls: dict[int, Hit] = {}
    for time_ns, tid, sp, which in order:
        hit = Hit(time_ns, tid, sp)
        if which == 0:
            assert tid not in open_calls, "two entries without the probe between them"
            open_calls[tid] = hit
        else:
            assert tid in open_calls, "the probe was hit without an entry"
            yield open_calls.pop(tid), hit
    assert not open_calls


def stock() -> list[tuple[Path, list[str]]]:
    """Return files and commands that use them."""
    shell = ["bash", "-c", SHELL_WORK]
    found = [(Path("/usr/bin/bash"), shell), (LIBRARIES / "libc.so.6", shell)]
    apache = shutil.which("apache2") or "/usr/sbin/apache2"
    found.append((Path(apache), [apache, "-t", "-f", "CONFIG"]))
    return [(path.resolve(), command) for path, command in found if path.exists()]


@pytest.mark.parametrize(
    ("path", "command"), stock(), ids=lambda each: Path(each).name if isinstance(each, Path) else ""
)
def test_moved_probes_in_stock_programs_stand_for_the_entry(
    path: Path, command: list[str], cache: Path, tmp_path: Path
) -> None:
    """Debian's own binaries: as many hits as entries, one after each, with the same stack pointer."""
    modules = sorted(Path("/usr/lib/apache2/modules").glob("mod_mpm_event.so"))
    config = f"ServerName x\nServerRoot {tmp_path}\nErrorLog {tmp_path}/log\nPidFile {tmp_path}/pid\n"
    config += "".join(f"LoadModule mpm_event_module {each}\n" for each in modules)
    config += "".join(f"<Directory /srv/{n}>\nAllowOverride None\nOptions None\n</Directory>\n" for n in range(20))
    (tmp_path / "conf").write_text(config)
    command = [str(tmp_path / "conf") if word == "CONFIG" else word for word in command]
    sites = called_ones(path, moved_sites(path), command, cache)
    assert len(sites) >= 3, "the command calls too few functions with moved probes"
    assert compare(path, sites, command) >= 5 * len(sites)


# each begins with an instruction that is single-stepped; the probe moves on
STARTS = {
    "marked": "endbr64; push rbx; xor eax, eax; pop rbx; ret",
    "moves": "mov eax, edi; test eax, eax; js 1f; inc eax; 1: ret",
    "clears": "xor eax, eax; cmp edi, 3; jg 1f; dec eax; 1: ret",
    "subtracts": "mov eax, edi; sub eax, 1; jne 1f; mov eax, 7; 1: ret",
    "loads": "lea eax, [rdi + 1]; push rbx; mov ebx, eax; pop rbx; ret",
    "nops": ".byte 0x0f,0x1f,0x44,0,0; push rbx; pop rbx; ret",
}


def test_each_kind_of_start_is_passed_once_a_call(tmp_path: Path) -> None:
    """Functions that begin with endbr64, mov, xor, lea and a 5-byte nop, called over branches taken and not."""
    text = [".intel_syntax noprefix", ".text"]
    for name, body in STARTS.items():
        text += [".p2align 4", f".globl {name}", f".type {name},@function", f"{name}:"]
        text += [*(each.strip() for each in body.replace("1: ", "1:;").split(";")), f".size {name}, . - {name}"]
    library = assembled(tmp_path, "starts.so", "\n".join(text) + "\n", "-Wl,-Bsymbolic")
    declared = "".join(f"int {name}(int); " for name in STARTS)
    calls = "".join(f"sum += {name}(i); " for name in STARTS)
    main = f"{declared} int main(void) {{ int sum = 0; for (int i = -50; i < 50; i++) {{ {calls} }} return sum == 1; }}"
    program = compiled(tmp_path, "starts", main, "-O1", str(library), f"-Wl,-rpath,{tmp_path}")
    sites = moved_sites(library)
    assert len(sites) == len(STARTS)
    assert compare(library, sites, [str(program)]) == 100 * len(STARTS)
