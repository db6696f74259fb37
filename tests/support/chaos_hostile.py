"""The hostile targets, and what is expected of each."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.patience import patient

_LIMIT_S = patient(120)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One hostile target and what is expected of it."""

    name: str
    functions: tuple[str, ...]
    """Those that are watched."""
    built_from: str = ""
    """Its source, if that is not called like the target."""
    variant: str = ""
    flags: tuple[str, ...] = ()
    compiler: str = ""
    """gcc or g++ if not given."""
    library: str = ""
    """Whose library it uses, if not one of its own."""
    group: int
    """Targets of one group run under one set of probes; those that the gate times by return sites stand apart."""
    by_site: bool = False
    """Replacing its return addresses would end it, so that the gate must not."""
    exact: bool = True
    """Every call is made under the probes."""
    fixed: bool = True
    """It makes the same calls each time; else as many as there is time for."""
    may_stay_open: tuple[str, ...] = ()
    """Functions of which calls are open when their thread ends."""
    waits: tuple[str, ...] = ()
    """Functions whose calls last longer than their own work: others run meanwhile."""
    rare: tuple[str, ...] = ()
    """Functions that are called too seldom, or in processes too short-lived, to ask that they are timed."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Functions that cannot be timed safely, with the reason that must be given for it; '': they never return."""
    meddle: Callable[[int], None] | None = None
    """What is done to the process from outside while it works."""
    needs: str = ""
    """A tool or header that is not on every machine."""

    @property
    def source(self) -> str:
        """The stem of its source."""
        return self.built_from or self.name

    @property
    def missing(self) -> bool:
        """True if this machine cannot build or run it."""
        return bool(self.needs) and not (shutil.which(self.needs) or Path("/usr/include", self.needs).exists())


def stop_and_continue(pid: int) -> None:
    """Stop the target again and again."""
    for _ in range(20):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.01)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.005)


def debug(pid: int) -> None:
    """Attach gdb, look at the stack from within a probed function, go away."""
    steps = [each for step in ("break inner", "continue", "backtrace", "delete", "detach") for each in ("-ex", step)]
    command = ["gdb", "-p", str(pid), "-batch", "-nx", *steps]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_LIMIT_S)
    finally:
        Path(f"/proc/{pid}/fd/0").write_text("\n")  # it works until then
    assert "outer" in done.stdout, done.stdout + done.stderr


def replace_file(pid: int) -> None:
    """Put a new build in the place of the running one, as a package manager does, and run it."""
    path = Path(f"/proc/{pid}/exe").readlink()
    kept, new = path.with_suffix(".kept"), path.with_suffix(".new")
    os.link(path, kept)
    try:
        shutil.copy2(path.with_name("successor"), new)
        new.rename(path)
        done = subprocess.run([path], input=b"\n\n", capture_output=True, check=False, timeout=_LIMIT_S)
        assert done.returncode == 12, done
        assert b'"outer": 1500' in done.stdout, done
    finally:
        kept.rename(path)


_STEADY = ("outer", "inner")
_NO_SITE = "no-return-site"

TARGETS = (
    # the gate may replace return addresses in these
    Target(name="jumps", group=0, functions=("leaf", "middle", "outer")),
    Target(name="jumped", group=0, functions=("jumper", "longer", "direct")),
    Target(name="nested", group=0, functions=("self", "head", "tail")),
    Target(name="levels", group=0, functions=("down", "left", "right")),
    Target(name="deep", group=0, functions=("down", "ping", "pong")),
    Target(name="tails", group=0, functions=("first", "second", "third", "even", "odd")),
    Target(name="storm", group=1, functions=("work", "forking"), rare=("work",)),
    Target(name="execs", group=1, functions=("work",), exact=False),
    Target(name="plugins", group=1, functions=("use", "plugged"), exact=False, rare=("use",)),
    Target(name="stopped", group=1, built_from="steady", functions=_STEADY, meddle=stop_and_continue),
    Target(
        name="debugged",
        group=6,
        built_from="steady",
        functions=_STEADY,
        flags=("-DUNTIL_LINE",),
        fixed=False,
        exact=False,
        cannot=dict.fromkeys(_STEADY, "debugger"),
        meddle=debug,
        needs="gdb",
    ),
    Target(name="stripped", group=1, built_from="steady", variant="stripped", functions=_STEADY),
    Target(name="replaced", group=1, built_from="steady", functions=_STEADY, meddle=replace_file),
    Target(name="rewrites", group=1, functions=("changing",)),
    Target(name="replaces", group=1, functions=("patched",), exact=False, cannot={"patched": "busy-return-site"}),
    Target(name="loops", group=1, functions=("looping",), cannot={"looping": "loop-head"}),
    Target(name="many", group=1, functions=tuple(f"f{n}" for n in range(8))),
    # here it must not
    Target(
        name="throws",
        group=2,
        by_site=True,
        functions=("leaf", "middle", "again", "ways", "other", "library_call"),
        cannot={"again": _NO_SITE, "library_call": _NO_SITE},
    ),
    Target(name="thrown", group=2, by_site=True, functions=("thrower", "longer", "direct")),
    Target(
        name="crosses",
        group=2,
        by_site=True,
        library="throws",
        functions=("thrown", "task", "collect", "library_call"),
        may_stay_open=("thrown", "task", "library_call"),
        waits=("collect",),
    ),
    Target(
        name="panics",
        group=2,
        by_site=True,
        functions=("leaf", "middle"),
        cannot={"middle": _NO_SITE},
        needs="rustc",
    ),
    Target(
        name="boosts",
        group=2,
        by_site=True,
        functions=("step", "inner"),
        waits=("step", "inner"),
        flags=("-lboost_context",),
        needs="boost/context/fiber.hpp",
    ),
    Target(name="fibers", group=3, by_site=True, functions=("step", "inner")),
    Target(
        name="switches",
        group=3,
        by_site=True,
        functions=("step", "inner", "outside"),
        waits=("step", "inner"),
    ),
    Target(
        name="exits",
        group=3,
        by_site=True,
        functions=("leave", "wait_long", "plain"),
        may_stay_open=("leave", "wait_long"),
        cannot={"leave": "", "wait_long": ""},
    ),
    Target(name="signals", group=3, by_site=True, functions=("outer", "handled")),
    Target(name="static", group=3, by_site=True, built_from="steady", variant="static", functions=_STEADY),
    Target(name="static-pie", group=3, by_site=True, built_from="steady", variant="static-pie", functions=_STEADY),
    Target(
        name="gophers",
        group=4,
        functions=("main.work", "main.panics"),
        cannot=dict.fromkeys(("main.work", "main.panics"), "go-runtime"),
        needs="go",
    ),
    Target(
        name="growing",
        group=4,
        built_from="gophers",
        functions=("main.grow",),
        cannot={"main.grow": "go-runtime"},
        needs="go",
    ),
    Target(
        name="musl",
        group=7,
        by_site=True,
        built_from="steady",
        functions=_STEADY,
        compiler="musl-gcc",
        needs="musl-gcc",
    ),
    Target(
        name="musl-static",
        group=7,
        by_site=True,
        built_from="steady",
        variant="static",
        functions=_STEADY,
        compiler="musl-gcc",
        needs="musl-gcc",
    ),
    Target(name="confined", group=7, by_site=True, functions=_STEADY),
    Target(name="confined-late", group=7, built_from="confined", functions=_STEADY, flags=("-DLATE",)),
    Target(name="traced", group=7, functions=_STEADY),
    Target(
        name="jits",
        group=7,
        by_site=True,
        functions=("made", "outer"),
        exact=False,
        cannot={"made": _NO_SITE},
        flags=("-lluajit-5.1",),
        needs="luajit-2.1/lua.h",
    ),
    Target(name="patched", group=5, functions=("patched",), cannot={"patched": "changed-text"}),
)

HOT = Target(name="hot", group=-1, functions=("tiny",))
SUCCESSOR = Target(name="successor", group=-1, built_from="steady", functions=())
"""What ``replace_file`` puts in another's place."""
