"""Paths told by the kernel are kept while they are used, and their number stays bounded."""

from __future__ import annotations

import numpy as np

from specmine.probes.kernel.structs import PATH
from specmine.probes.symbols.stack_table import Paths


def record(id: int, *addresses: int, parent: int = 0) -> bytes:
    """Return a path as the kernel writes it."""
    value = np.zeros((), PATH)
    value["id"], value["parent"], value["tgid"], value["layout"] = id, parent, 7, 3
    value["count"], value["outcome"] = len(addresses), 1
    value["address"][: len(addresses)] = addresses
    return value.tobytes()


def test_a_path_is_what_the_kernel_wrote() -> None:
    """Parent, process, layout, outcome and addresses come back."""
    paths = Paths(10)
    paths.learn([record(1 << 63, 0x7FFF_FFFF_0000, 42, parent=5)])
    found = paths.get(1 << 63)
    assert found is not None
    assert (found.parent, found.tgid, found.layout, found.outcome) == (5, 7, 3, 1)
    assert found.addresses == (0x7FFF_FFFF_0000, 42)
    assert paths.get(2) is None


def test_what_is_used_outlives_what_is_not() -> None:
    """A path asked for in each turn stays, one never asked for is gone after two."""
    paths = Paths(2)
    paths.learn([record(1, 10), record(2, 20)])
    assert paths.full
    paths.turn()
    assert not paths.full
    assert paths.get(1) is not None
    paths.turn()
    assert paths.get(1) is not None
    assert paths.get(2) is None


def test_paths_of_a_layout_are_forgotten() -> None:
    """When its number is given to another layout; those of others stay."""
    paths = Paths(10)
    paths.learn([record(1, 10)])
    paths.turn()
    paths.learn([record(2, 20)])
    paths.forget({4})
    assert paths.get(1) is not None and paths.get(2) is not None
    paths.forget({3})
    assert paths.get(1) is None and paths.get(2) is None


def test_the_number_is_bounded() -> None:
    """However many paths a program has, two turns' worth are held."""
    paths = Paths(100)
    for first in range(0, 10_000, 50):
        paths.learn(record(id, id) for id in range(first, first + 50))
        if paths.full:
            paths.turn()
    assert len(paths) <= 200
