"""How the returns of functions may be timed.

Return probes and sessions replace return addresses on the stack: an exception or panic that passes such a frame
aborts the program, and the kernel takes what lies below the stack pointer for ended, so that a program which switches
stacks (fibers, signal handlers on a stack of their own) is killed. So in a process that can unwind, switch or leave
its stack returns are timed by ordinary probes at return sites.
Go's runtime moves stacks and runs one goroutine on many threads: there only entries are counted.
"""

from __future__ import annotations

from collections.abc import Iterable

from specmine.mining.observation import Reason

from .modules import Module

_UNWINDERS = ("libstdc++.so", "libgcc_s.so", "libc++.so", "libc++abi.so", "libunwind.so")


def refuses_returns(modules: Iterable[Module]) -> Reason | None:
    """Return why no return can be timed in a process that maps these modules, or None if some way is safe."""
    for module in modules:
        if module.facts is not None and module.facts.is_go:
            return Reason(
                code="go-runtime",
                text=f"{module.name} is a Go program: its runtime moves stacks, and calls change threads",
                remedy="only its calls are counted",
            )
    return None


def forbids_replacing(modules: Iterable[Module]) -> Reason | None:
    """Return why return addresses on the stack must stay as they are, or None if they may be replaced."""
    for module in modules:
        facts = module.facts
        if module.name.startswith(_UNWINDERS) or (facts is not None and facts.unwinder):
            return Reason(
                code="unwinder",
                text=f"the process maps {module.name}, which can unwind or switch stacks: "
                "a return probe in the way would end it",
                remedy="only its calls are counted",
            )
    return None
