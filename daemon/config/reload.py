"""What a reload of the configuration may change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from .fields import key_name
from .tree import Config

Part = TypeVar("Part")

RESTART_KEYS = (
    "programs",
    "sampling",
    "store.path",
    "metrics.listen",
    "socket",
    "host_lock",
    "kill_switch",
    "kernel",
    "fleet.connect",
    "fleet.spool_folder",
    "windows.max_open",
    "log.format",
)
"""Keys, or beginnings of keys, that a reload cannot change."""


def changed_keys(old: Config, new: Config) -> tuple[str, ...]:
    """Return the full names of the keys whose values differ, in the order of the tree."""
    return tuple(_changed(old, new, ""))


def needs_restart(name: str) -> bool:
    """Whether a change of this key takes effect only after a restart."""
    return any(name == known or name.startswith(f"{known}.") for known in RESTART_KEYS)


def until_restart(old: Config, new: Config) -> Config:
    """Return the new configuration with the old values of the keys that take effect only after a restart.

    Raises
    ------
    ValueError
        If they do not fit together.
    """
    return _until_restart(old, new, "")


def _until_restart(old: Part, new: Part, prefix: str) -> Part:
    unchanged: dict[str, object] = {}
    for item in fields(old):  # type: ignore[arg-type]
        before, after = getattr(old, item.name), getattr(new, item.name)
        name = f"{prefix}{key_name(item.name)}"
        if needs_restart(name):
            unchanged[item.name] = before
        elif is_dataclass(before):
            unchanged[item.name] = _until_restart(before, after, f"{name}.")
    return replace(new, **unchanged)  # type: ignore[type-var]


def _changed(old: object, new: object, prefix: str) -> Iterator[str]:
    for item in fields(old) if is_dataclass(old) else ():
        before, after = getattr(old, item.name), getattr(new, item.name)
        name = f"{prefix}{key_name(item.name)}"
        if is_dataclass(before):
            yield from _changed(before, after, f"{name}.")
        elif before != after:
            yield name
