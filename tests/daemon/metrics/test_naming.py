"""Labels of functions: stable over builds, unique in each."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.daemon.controller.history import Totals
from specmine.daemon.metrics.naming import Label, Labels
from specmine.daemon.metrics.snapshot import FunctionSnapshot
from specmine.model.histogram import EMPTY


def function(key: str, build: str, name: str = "f", *, code: str = "", program: str = "app") -> FunctionSnapshot:
    """Return a function of which only the names count."""
    return FunctionSnapshot(
        key=key, name=name, module="app", build_id=build, programs=(program,), code=code, state="single", utility=0.0,
        calls=0, watched_ns=0, cost_ns=0.0, lost_ns=0.0, totals=Totals(), histogram=EMPTY, bias_ns=0.0,
    )  # fmt: skip


def names(labels: Labels, functions: Sequence[FunctionSnapshot]) -> dict[str, Label]:
    """Return the label of each key."""
    return {each.key: label for label, members in labels.grouped(functions).items() for each in members}


def test_the_next_build_takes_over_the_names() -> None:
    """Two static functions of one name are told apart by their code, whichever of them is seen first."""
    labels = Labels()
    old = [function("a+0x1", "a", code="long"), function("a+0x2", "a", code="short")]
    assert names(labels, old) == {"a+0x1": ("app", "f", "app"), "a+0x2": ("app", "f~2", "app")}
    new = [function("b+0x1", "b", code="short"), function("b+0x2", "b", code="long")]
    assert names(labels, [*old, *new]) == {
        "a+0x1": ("app", "f", "app"),
        "a+0x2": ("app", "f~2", "app"),
        "b+0x1": ("app", "f~2", "app"),
        "b+0x2": ("app", "f", "app"),
    }


def test_without_known_code_the_first_name_is_free_in_every_build() -> None:
    """A third build whose code changed throughout still has no f~3."""
    labels = Labels()
    for build in ("a", "b", "c"):
        found = names(labels, [function(f"{build}+0x1", build, code=build)])
        assert found == {f"{build}+0x1": ("app", "f", "app")}


def test_a_name_follows_the_programs() -> None:
    """A function that turns out to belong to another program too leaves its label to others."""
    labels = Labels()
    names(labels, [function("a+0x1", "a")])
    assert names(labels, [function("a+0x1", "a", program="app,shop")]) == {"a+0x1": ("app,shop", "f", "app")}
    assert names(labels, [function("a+0x9", "a")]) == {"a+0x9": ("app", "f", "app")}


def test_names_outlive_the_functions_that_are_forgotten() -> None:
    """Build after build goes for good: the next one's functions have the same labels, told apart by their code."""
    labels = Labels()
    for build in map(str, range(100)):
        codes = ("long", "short") if int(build) % 2 else ("short", "long")
        found = names(labels, [function(f"{build}+0x{n}", build, code=code) for n, code in enumerate(codes)])
        assert [found[f"{build}+0x{codes.index(code)}"][1] for code in ("short", "long")] == ["f", "f~2"]
        labels.keep(found.keys())
    assert len(labels._by_key) == 2
    assert sum(map(len, labels._holders.values())) <= 4
