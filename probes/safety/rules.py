"""What may be probed and how: every refusal with its code, its reason and what would help.

Return probes and sessions replace return addresses on the stack: an exception or panic that passes such a frame
aborts the program, and the kernel takes what lies below the stack pointer for ended, so that a program which switches
stacks (fibers, signal handlers on a stack of their own) is killed. So in a process that can unwind, switch or leave
its stack, or checks it, returns are timed by ordinary probes at return sites.
Go's runtime moves stacks and runs one goroutine on many threads: there only entries are counted.
A probe of any kind changes code: never under a debugger, which would write back what it found there, and never in
code that checks itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from specmine.model.function import Reason
from specmine.model.observation import Kind
from specmine.probes.process.proc_files import PROC
from specmine.probes.process.status import Condition
from specmine.probes.symbols.module import VDSO, Layout, Module

REMEDIES: Mapping[str, str] = {
    "busy-return-site": "watch a caller of it, or a function that it calls",
    "changed-text": "stop what patches the running program",
    "debugger": "detach the debugger; watching goes on by itself then",
    "fragment": "watch the function that it belongs to",
    "go-runtime": "only its calls are counted",
    "gone": "its binary was replaced: what was learned belongs to the old one",
    "huge-page-text": "run the program without huge pages under its code, or watch functions of other files",
    "ifunc": "watch the implementation that it chose",
    "instruction": "watch a caller of it, or build it with another prologue (-fpatchable-function-entry)",
    "kernel-refuses": "specmine doctor says what this kernel can do",
    "loop-head": "watch its callers, or a function that it calls",
    "many-pages": "wait until others are learned",
    "unfollowed": "watch a function that calls it",
    "no-return-site": "watch a caller of it, or a function that it calls",
    "nop5": "build it without -mfentry or XRay, or watch a caller",
    "noreturn": "watch a function that it calls",
    "not-a-function": "name a function of the binary as it is now",
    "plt": "watch the function behind it",
    "self-checking": "watch the functions that call into it",
    "seccomp": "only its calls are counted; kernels from 6.6 can time it by return sites",
    "shadow-stack": "only its calls are counted; kernels from 6.6 can time it by return sites",
    "slots": "wait until others are learned",
    "unclear-recursion": "watch its callers, or a function that it calls",
    "too-many-callers": "watch its callers, or a function that it calls",
    "undecodable": "watch a caller of it",
    "unreadable": "see that the file can be read, and is an ELF file for this machine",
    "unsafe-instruction": "watch a caller of it",
    "unwinder": "only its calls are counted; kernels from 6.6 can time it by return sites",
    "vdso": "watch the functions that call it",
    "writable-text": "watch functions of other files",
}
"""What would help, by code, where the refusal itself does not say."""
ALL_KINDS = frozenset({"debugger", "huge-page-text", "writable-text", "self-checking", "changed-text"})
"""Codes with which not even calls may be counted."""
_UNWINDERS = ("libstdc++.so", "libgcc_s.so", "libc++.so", "libc++abi.so", "libunwind.so")
_KERNELS_OWN = ("[uprobes]", "[vdso]", "[vsyscall]")
"""Executable memory that the kernel maps into processes."""
_FIPS_PROVIDERS = ("fips.so", "libgcrypt.so")


def with_remedy(reason: Reason) -> Reason:
    """Return the reason with what would help, if it does not say so already."""
    return reason if reason.remedy else replace(reason, remedy=REMEDIES.get(reason.code, ""))


def kind_refused(reason: Reason) -> Kind:
    """Return the cheapest kind of observation that a refused return, or process, leaves no room for."""
    return Kind.COUNT if reason.code in ALL_KINDS else Kind.TIME


@cache
def fips_mode(root: Path = PROC) -> bool:
    """Tell whether the host runs in FIPS mode, where cryptographic modules check themselves."""
    try:
        return (root / "sys/crypto/fips_enabled").read_text().strip() == "1"
    except OSError:
        return False


def refuses_module(
    module: Module, *, fips: bool | None = None, exists: Callable[[Path], bool] = Path.exists
) -> Reason | None:
    """Return why no probe may go into a file, None if it may.

    Parameters
    ----------
    module : Module
    fips : bool, optional
        By default what the host says.
    exists : callable
        Tells whether there is a file of this path.
    """
    fips = fips_mode() if fips is None else fips
    how = module.facts.self_check if module.facts is not None else ""
    if how:
        text = f"{module.name} compares its code in memory with a checksum ({how}): a probe would end the program"
    elif module.name == "fips.so" or (fips and (module.name.startswith(_FIPS_PROVIDERS) or _has_hmac(module, exists))):
        text = f"{module.name} is a FIPS module that checks itself: it must stay as it was certified"
    else:
        return None
    return with_remedy(Reason(code="self-checking", text=text))


def _has_hmac(module: Module, exists: Callable[[Path], bool]) -> bool:
    """Tell whether the checksum that a FIPS module is compared with lies beside its file."""
    names = (f".{module.name}.hmac", f"{module.name}.hmac", f"fipscheck/{module.name}.hmac")
    return any(exists(Path(module.path).parent / each) for each in names)


def refuses_process(condition: Condition, module: Module) -> Reason | None:
    """Return why no probe may go into a file where this process maps it, None if it may."""
    if condition.tracer:
        who = f"{condition.tracer_name} ({condition.tracer})" if condition.tracer_name else str(condition.tracer)
        return _because("debugger", f"the process is traced by {who}, which may change its code, too")
    if module.file in condition.huge:
        return _because("huge-page-text", f"{module.name} is mapped by huge pages: a probe would split them")
    if module.file in condition.writable:
        return _because("writable-text", f"the process may write to the code of {module.name}, under a probe too")
    return None


def refuses_returns(modules: Iterable[Module]) -> Reason | None:
    """Return why no return can be timed in a process that maps these modules, or None if some way is safe."""
    for module in modules:
        if module.facts is not None and module.facts.is_go:
            return _because(
                "go-runtime", f"{module.name} is a Go program: its runtime moves stacks, and calls change threads"
            )
    return None


def forbids_replacing(modules: Iterable[Module], conditions: Iterable[Condition] = ()) -> Reason | None:
    """Return why return addresses on the stack must stay as they are, or None if they may be replaced.

    Shadow stacks and seccomp filters forbid it on any kernel, though newer ones know both: return sites cost no more.
    """
    for module in modules:
        facts = module.facts
        if facts is None and module.file != VDSO:
            return _because("unwinder", f"the process maps {module.name}, of which nothing is known")
        if module.name.startswith(_UNWINDERS) or (facts is not None and facts.unwinder):
            return _because(
                "unwinder",
                f"the process maps {module.name}, which can unwind or switch stacks, or load code that does: "
                "a return probe in the way would end it",
            )
    for condition in conditions:
        if condition.shadow_stack:
            return _because("shadow-stack", "the CPU compares return addresses with a shadow stack of the process")
        if condition.seccomp:
            return _because(
                "seccomp", "a seccomp filter may kill the process for the system call of return probes (6.11 to 6.13)"
            )
    return None


def forbids_yet(layout: Layout) -> Reason | None:
    """Return why return addresses must stay in a process of this layout whatever its files do, or None.

    Code without a file was made at run time: nobody knows what it does to the stack. And a process that has not mapped
    all the libraries that it needs has only just begun: one of them may unwind.
    """
    for mapping, module in zip(layout.mappings, layout.modules, strict=True):
        if module is None and not mapping.path.startswith(_KERNELS_OWN):
            return _because("unwinder", "the process executes code made at run time")
    mapped = {name for m in layout.modules if m is not None for name in (m.name, m.facts.soname if m.facts else "")}
    for module in layout.modules:
        if module is None or module.facts is None:
            continue
        for name in module.facts.needed:
            if name.rpartition("/")[2] not in mapped:
                return _because("unwinder", f"the process has not mapped {name} yet, which {module.name} needs")
    return None


def _because(code: str, text: str) -> Reason:
    return with_remedy(Reason(code=code, text=text))
