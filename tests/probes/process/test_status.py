"""What /proc and a file say is judged: situations that this machine cannot make are read from recorded files."""

from __future__ import annotations

import os
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

import pytest

from specmine.daemon.controller import reasons
from specmine.probes.elf.facts import BinaryFacts
from specmine.probes.elf.parser.binary import read_facts
from specmine.probes.elf.parser.stack_switch import stack_switch
from specmine.probes.elf.parser.unwind_rows import read_frames
from specmine.probes.process.mappings import Mapping
from specmine.probes.process.status import Condition, Conditions, any_huge_code, huge_code, parse_status, writable_code
from specmine.probes.safety import rules
from specmine.probes.symbols.module import Layout, Module
from specmine.probes.timing.text_pages import TextPages
from tests.support.binary_samples import LIBRARIES, assembled, compiled, image_of

# Linux 6.9, Intel with shadow stacks on, a daemon under a systemd filter, gdb attached
STATUS = b"""Name:	mariadbd
TracerPid:	4711
Seccomp:	2
Seccomp_filters:	14
x86_Thread_features:	shstk wrss
x86_Thread_features_locked:	shstk wrss
"""
# Linux 6.1 with CONFIG_READ_ONLY_THP_FOR_FS, an executable that khugepaged has collapsed
SMAPS = b"""55d0c8e00000-55d0c9a00000 r-xp 00200000 08:01 1311 /usr/sbin/shop
Size:              12288 kB
Rss:               12288 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:     10240 kB
VmFlags: rd ex mr mw me
55d0ca000000-55d0ca800000 r-xp 00000000 00:0f 77 /dev/hugepages/text
FilePmdMapped:         0 kB
VmFlags: rd ex mr mw me de ht
7f2a10000000-7f2a10200000 r-xp 00000000 08:01 12 /usr/lib/libc.so.6
AnonHugePages:         0 kB
FilePmdMapped:         0 kB
VmFlags: rd ex mr mw me
7f2a20000000-7f2a20200000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac
"""
MAPS = b"""55d0c8e00000-55d0c9a00000 rwxp 00200000 08:01 1311 /usr/sbin/shop
7f2a10000000-7f2a10200000 r-xp 00000000 08:01 12 /usr/lib/libc.so.6
7f2a20000000-7f2a20200000 rwxp 00000000 00:00 0
"""
SHOP, LIBC, HUGETLB = (os.makedev(8, 1), 1311), (os.makedev(8, 1), 12), (os.makedev(0, 15), 77)


def described(name: str = "shop", **known: Any) -> Module:
    """Return a mapped file of which all is known that counts, and which does no harm."""
    facts = BinaryFacts(build_id="ab", kind="pie", segments=(), **known)
    return Module(SHOP, f"/usr/sbin/{name}", -1, facts=facts, settled=True)


def module(path: str = "/usr/sbin/shop", file: tuple[int, int] = SHOP) -> Module:
    """Return a mapped file of which nothing is known."""
    return Module(file, path, -1, settled=True)


def test_a_status_tells_tracer_filter_and_shadow_stack() -> None:
    """All three are read; on a kernel that has no such fields they count as off."""
    assert parse_status(STATUS) == Condition(tracer=4711, seccomp=2, shadow_stack=True)
    assert parse_status(b"Name:\tshop\n") == Condition()
    assert not parse_status(b"x86_Thread_features:\t\nx86_Thread_features_locked:\tshstk\n").shadow_stack


def test_code_on_huge_pages_is_found() -> None:
    """By the kernel's own merging and by hugetlbfs; anonymous memory is no file's code."""
    assert huge_code(SMAPS) == {SHOP, HUGETLB}
    assert any_huge_code(b"FilePmdMapped:     10240 kB\n")
    assert not any_huge_code(b"AnonHugePages: 2048 kB\nShmemPmdMapped: 0 kB\nFilePmdMapped: 0 kB\nHugetlb: 0 kB\n")
    assert any_huge_code(b"MemTotal: 1 kB\n")  # a kernel that does not say


def test_code_that_may_be_written_is_found() -> None:
    """Memory without a file is none of ours."""
    assert writable_code(MAPS) == {SHOP}


def test_a_name_changes_no_other_field() -> None:
    """A file or a process that is named like a line of its own is still only a name."""
    assert parse_status(b"Name:\tx\rSeccomp:\t0\nTracerPid:\t9\nSeccomp:\t2\n") == Condition(tracer=9, seccomp=2)
    for name in (b" 7f0000000000-7f0000001000 rwxp 00000000 08:01 99", b"\x0cFilePmdMapped: 9 kB", b"\x0cVmFlags: ht"):
        forged = SMAPS.replace(b"/usr/lib/libc.so.6", b"/tmp/a" + name)
        assert huge_code(forged) == huge_code(SMAPS)
        assert writable_code(MAPS.replace(b"/usr/lib/libc.so.6", b"/tmp/a" + name)) == writable_code(MAPS)


def test_processes_are_looked_at_again(tmp_path: Path) -> None:
    """A debugger that comes is seen at the next look, some processes at a time; the dear files are read once."""
    for name, text in {"7/status": b"", "7/maps": MAPS, "7/smaps": SMAPS, "4711/comm": b"gdb\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text)
    (tmp_path / "meminfo").write_text("FilePmdMapped: 10240 kB\n")
    conditions = Conditions(tmp_path)
    conditions.look([7], 0)
    assert conditions.of(7) == Condition(huge=frozenset({SHOP, HUGETLB}), writable=frozenset({SHOP}))
    (tmp_path / "7/status").write_bytes(STATUS)
    (tmp_path / "7/smaps").write_text("")
    conditions.look([7], 10**8)
    assert not conditions.of(7).tracer  # too soon
    conditions.look([7], 10**9)
    assert (conditions.of(7).tracer, conditions.of(7).tracer_name) == (4711, "gdb")
    assert conditions.of(7).huge == {SHOP, HUGETLB}
    assert not conditions.of(8).troubled  # there is no such process


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        (Condition(tracer=4711, tracer_name="gdb"), "debugger"),
        (Condition(huge=frozenset({SHOP})), "huge-page-text"),
        (Condition(writable=frozenset({SHOP})), "writable-text"),
        (Condition(seccomp=2, shadow_stack=True, huge=frozenset({LIBC})), None),
    ],
)
def test_what_bars_a_process(condition: Condition, code: str | None) -> None:
    """Each has its code, a sentence and a remedy; what concerns other files, or returns alone, bars nothing."""
    reason = rules.refuses_process(condition, module())
    assert (reason.code if reason else None) == code
    if reason is not None:
        assert reason.text and reason.remedy
        assert rules.kind_refused(reason) == "count"


def test_returns_stay_where_the_stack_is_guarded() -> None:
    """Shadow stacks and filters forbid replaced return addresses, with a code each."""
    known = described()
    for condition, code in ((Condition(shadow_stack=True), "shadow-stack"), (Condition(seccomp=1), "seccomp")):
        reason = rules.forbids_replacing([known], [Condition(), condition])
        assert reason is not None and reason.code == code and reason.remedy
    assert rules.forbids_replacing([known], [Condition()]) is None


def test_returns_stay_where_a_file_is_not_understood() -> None:
    """Nobody knows what a file does to the stack that could not be read."""
    reason = rules.forbids_replacing([described(), module("/usr/lib/odd")])
    assert reason is not None and "odd" in reason.text


@pytest.mark.parametrize(
    ("modules", "path", "word"),
    [
        ([("shop", "", ("libc.so.6",)), ("libc.so.6", "", ())], "", ""),
        ([("shop", "", ("/opt/libc.so.6",)), ("libc-2.28.so", "libc.so.6", ())], "[uprobes]", ""),
        ([("shop", "", ("libc.so.6",))], "", "libc.so.6"),
        ([("shop", "", ())], "", ""),
        ([("shop", "", ())], "[heap]", "run time"),
        ([("shop", "", ())], "[vdso]", ""),
    ],
)
def test_returns_stay_while_libraries_are_missing(
    modules: list[tuple[str, str, tuple[str, ...]]], path: str, word: str
) -> None:
    """A process that has not mapped what it needs has only just begun; code without a file is nobody's."""
    mapped = tuple(described(name, soname=soname, needed=needed) for name, soname, needed in modules)
    mappings = tuple(
        Mapping(start=number, end=number + 1, offset=0, file=SHOP, path=each.path) for number, each in enumerate(mapped)
    )
    if path:
        mappings += (Mapping(start=99, end=100, offset=0, file=(0, 0), path=path),)
    reason = rules.forbids_yet(Layout(mappings, (*mapped, *([None] if path else []))))
    assert (reason is not None) == bool(word)
    assert reason is None or word in reason.text


def test_fips_modules_are_left_alone() -> None:
    """The provider always, others where the host runs in FIPS mode and a checksum lies beside them."""
    crypto = module("/usr/lib64/libcrypto.so.3")
    beside = Path("/usr/lib64/.libcrypto.so.3.hmac")
    for given, fips, there, refused in [
        (module("/usr/lib64/ossl-modules/fips.so"), False, None, True),
        (module("/usr/lib64/libgcrypt.so.20"), True, None, True),
        (module("/usr/lib64/libgcrypt.so.20"), False, None, False),
        (crypto, True, beside, True),
        (crypto, False, beside, False),
        (crypto, True, None, False),
    ]:
        reason = rules.refuses_module(given, fips=fips, exists=partial(eq, there))
        assert (reason is not None and reason.code == "self-checking") is refused, given.path
    assert not rules.fips_mode(Path("/nowhere"))


def test_a_file_that_checks_its_code_is_known_by_a_symbol(tmp_path: Path) -> None:
    """Also with a library's own prefix before the name, and only then."""
    source = "int aws_lc_0_25_BORINGSSL_bcm_text_hash[8] = {1}; int f(void) { return 1; }"
    checking = read_facts(image_of(compiled(tmp_path, "checking.so", source, "-shared", "-fPIC")))
    assert checking.self_check == "aws_lc_0_25_BORINGSSL_bcm_text_hash"
    assert read_facts(image_of(LIBRARIES / "libc.so.6")).self_check == ""
    checked = module()
    checked.facts = checking
    reason = rules.refuses_module(checked, fips=False)
    assert reason is not None and checking.self_check in reason.text


SWITCHING = {
    "boost": "mov rax, rsp; mov rsp, rdi; push rax; ret",
    "ruby": "push rbx; mov [rdi], rsp; mov rsp, [rsi]; pop rbx; ret",
    "swaps": "xchg rsp, rdi; ret",
    "borrows": "mov rbx, rsp; mov rsp, rdi; call rsi; mov rsp, rbx; ret",
}
STAYING = {
    "leaves": "push rbp; mov rbp, rsp; sub rsp, 32; mov rsp, rbp; pop rbp; ret",
    "variable": "push r12; mov r12, rsp; sub rsp, rdi; mov rsp, r12; pop r12; ret",
    "by_lea": "push r13; lea r13, [rsp + 8]; sub rsp, rdi; lea rsp, [r13 - 8]; pop r13; ret",
    "saved": "mov [rbp - 8], rsp; mov rsp, [rbp - 8]; ret",
    "in_operand": "movabs rax, 0x00fc894800fc8948; ret",
}


@pytest.mark.parametrize("name", [*SWITCHING, *STAYING])
def test_code_that_switches_stacks_is_found(tmp_path: Path, name: str) -> None:
    """What loads the stack pointer from elsewhere is found without a name; what puts back its own is not."""
    body = {**SWITCHING, **STAYING}[name].split("; ")
    text = [".intel_syntax noprefix", ".text", ".globl f", ".type f,@function", "f:", ".cfi_startproc", *body]
    path = assembled(tmp_path, f"{name}.so", "\n".join([*text, ".cfi_endproc", ".size f, . - f"]))
    image = image_of(path)
    assert (stack_switch(image, read_frames(image), "") is not None) is (name in SWITCHING)


def test_stock_programs_are_not_suspected() -> None:
    """Arrays of variable size and realigned stacks in Debian's own binaries are no switches of stacks."""
    for path in (Path("/bin/bash"), Path("/usr/bin/python3"), LIBRARIES / "libz.so.1"):
        if path.exists():
            image = image_of(path)
            assert stack_switch(image, read_frames(image), "") is None, path


def test_pages_of_code_are_bounded() -> None:
    """Pages shared by functions count once, and are free when the last of them goes."""
    pages = TextPages(most=3)
    assert pages.add("f", [(SHOP, 0x1000), (SHOP, 0x1FFF), (SHOP, 0x2000)])
    assert pages.add("g", [(SHOP, 0x1010), (LIBC, 0x1000)])
    assert len(pages) == 3
    assert not pages.add("h", [(SHOP, 0x1000), (SHOP, 0x9000)])
    assert len(pages) == 3
    pages.remove("f")
    assert len(pages) == 2
    assert pages.add("h", [(SHOP, 0x9000)])
    assert not pages.add("h", [(SHOP, 0xA000)])


def test_every_refusal_says_what_would_help() -> None:
    """What may pass, and all that bar a process, have a remedy."""
    assert rules.REMEDIES.keys() >= reasons.PASSING
    assert rules.REMEDIES.keys() >= rules.ALL_KINDS - {"changed-text"}
    assert all(rules.REMEDIES.values())
