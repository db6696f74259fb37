"""The labels of functions: the same in every build, and unique."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from .family import label_text
from .snapshot import FunctionSnapshot

OTHER = "other"
Label = tuple[str, str, str]
"""The values of the labels program, function and module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holder:
    """The function that has a label in one build."""

    key: str
    code: str


class Labels:
    """Which function has which labels; it keeps them while it belongs to the same programs.

    Functions of different builds have the same labels if name, module and program are the same. Of two in one build
    the later one gets a mark. In the next build the mark goes to the one with the same machine code, if there is one.
    """

    def __init__(self) -> None:
        """Have named none."""
        self._by_key: dict[str, Label] = {}
        self._holders: dict[Label, dict[str, _Holder]] = {}
        """Build to the function that has the label in it, oldest first."""

    def keep(self, keys: AbstractSet[str]) -> None:
        """Forget all functions but these, and the last one of each label: the next build's has its label again."""
        if self._by_key.keys() <= keys:
            return
        self._by_key = {key: label for key, label in self._by_key.items() if key in keys}
        for label, holders in self._holders.items():
            last = list(holders)[-1:]
            self._holders[label] = {b: each for b, each in holders.items() if each.key in keys or b in last}

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
        self._holders.setdefault(label, {})[function.build_id] = _Holder(key=function.key, code=function.code)

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
