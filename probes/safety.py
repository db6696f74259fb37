"""Which functions may have their returns timed: the first safety rule.

Return probes and sessions replace return addresses on the stack. An exception or panic that passes such a frame
aborts the program, and Go's runtime moves stacks; so in a process that can do either only entries are probed.
"""

from __future__ import annotations

from collections.abc import Iterable

from specmine.mining.observation import Reason

from .modules import Module

_UNWINDERS = ("libstdc++.so", "libgcc_s.so", "libc++.so", "libc++abi.so", "libunwind.so")


def refuses_returns(modules: Iterable[Module]) -> Reason | None:
    """Return why returns must not be timed in a process that maps these modules, or None if they may."""
    for module in modules:
        facts = module.facts
        if facts is not None and facts.is_go:
            return Reason(
                code="go-runtime",
                text=f"{module.name} is a Go program: its runtime moves stacks, a return probe would crash it",
                remedy="only its calls are counted",
            )
        if module.name.startswith(_UNWINDERS) or (facts is not None and facts.unwinder):
            return Reason(
                code="unwinder",
                text=f"the process maps {module.name}, which can unwind the stack: "
                "an exception that passes a return probe would abort it",
                remedy="only its calls are counted",
            )
    return None
