"""The labels of functions: the same in every build, and unique."""

from __future__ import annotations

from collections.abc import Sequence

from .family import label_text
from .snapshot import FunctionSnapshot

OTHER = "other"
Label = tuple[str, str, str]
"""The values of the labels program, function and module."""


class Labels:
    """Which function has which labels; it keeps them while it belongs to the same programs.

    Functions of different builds have the same labels if name, module and program are the same. Of two in one build
    the later one gets a mark. In the next build the mark goes to the one with the same machine code, if there is one.
    """

    def __init__(self) -> None:
        """Have named none."""
        self._by_key: dict[str, Label] = {}
        self._holders: dict[Label, dict[str, FunctionSnapshot]] = {}
        """Build to the function that has the label in it, oldest first."""

    def grouped(self, functions: Sequence[FunctionSnapshot]) -> dict[Label, list[FunctionSnapshot]]:
        """Return the functions by label, the build that runs now first, then the one seen last."""
        for each in sorted(functions, key=lambda one: (len(one.key), one.key)):
            self._name(each)
        groups: dict[Label, list[FunctionSnapshot]] = {}
        for each in functions:
            groups.setdefault(self._by_key[each.key], []).append(each)
        for members in groups.values():
            members.sort(key=lambda one: (not one.running, -one.seen_ns))
        return groups

    def _name(self, function: FunctionSnapshot) -> None:
        label = self._by_key.get(function.key)
        program = label_text(function.program)
        if label is not None and label[0] == program:
            return
        if label is not None:
            del self._holders[label][function.build_id]
        label = self._free(function, program, label_text(function.name), label_text(function.module))
        self._by_key[function.key] = label
        self._holders.setdefault(label, {})[function.build_id] = function

    def _free(self, function: FunctionSnapshot, program: str, name: str, module: str) -> Label:
        free = []
        number = 1
        while True:
            label = program, name if number == 1 else f"{name}~{number}", module
            holders = self._holders.get(label)
            if label[1] == OTHER or (holders and function.build_id in holders):
                pass
            elif not holders:
                free.append(label)
                break
            elif function.code and list(holders.values())[-1].code == function.code:
                return label
            else:
                free.append(label)
            number += 1
        return free[0]
