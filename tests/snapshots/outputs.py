"""What is compared: the name of each output, and the command line that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """How an output is made."""

    arguments: Sequence[str] = ()
    """A command line of the product; empty for a scrape."""
    needs: Sequence[str] = ()
    """What is there before: NAME.db of a recording or of ``builds`` or ``merged``; NAME.json of recorded durations."""
    daemon: str = ""
    """The recording that a daemon knows, which the command line asks or a scrape shows."""
    accept: str = ""
    """The format of a scrape."""
    file: str = ""
    """Show this file, which the command line writes, in place of standard output."""


RECORDINGS: Mapping[str, Sequence[str]] = {
    "paths": ("z", "c", "b", "main"),
    "paths_again": ("z",),
    "paths_next": (),
    "paths_last": ("z",),
    "paths_named": ("z",),
    "waits": ("semop", "clock_nanosleep", "wait_condition", "write"),
    "throws": ("middle*", "clock_nanosleep"),
    "recursion": ("descend",),
    "splits": ("burn", "clock_nanosleep"),
    "single": ("smooth",),
    "nests": ("work", "plain"),
    "turns": ("step",),
    "redis": ("epoll_wait", "readQueryFromClient", "read", "write"),
    "simulated": ("z", "mixed", "refused", "smooth"),
}
"""Recordings, and the functions of each that are shown one by one."""
BUILDS = ("paths", "paths_again", "paths_next", "paths_last")
"""Recordings that go into one store, one after the other: two runs of a build, two of the next."""
ANALYZED = {
    "planted.csv.gz": "z",
    "planted.ndjson.gz": "z",
    "spans.otlp.json.gz": "GET /cart*",
    "folded.txt.gz": "y",
    "bpftrace.txt": "z",
    "perf.txt": "z",
    "uftrace.json": "z",
    "uftrace.replay": "z",
    "uftrace.timed": "z",
}
"""Recorded durations, and the function of each that is shown."""
COMPARED: Mapping[str, Sequence[str]] = {
    "worse": ("worse.csv.gz", "--base", "old", "--new", "fresh"),
    "worse_fdr": ("worse.csv.gz", "--base", "old", "--new", "fresh", "--fdr", "--summary", "p90", "--level", "99%"),
    "equal": ("equal.csv.gz", "--base", "old", "--new", "fresh", "--tolerance", "5%"),
    "undecided": ("undecided.csv.gz", "--base", "old", "--new", "fresh", "--summary", "mean"),
    "hosts": ("hosts.csv.gz", "--base", "old", "--new", "fresh"),
    "halves": ("hosts.csv.gz", "--base", "old", "--new", "newest", "--self-test"),
    "callers": ("callers.csv.gz", "--base", "old", "--new", "fresh", "--keep-warmup"),
    "no_build": ("equal.csv.gz", "--base", "old", "--new", "nobody"),
}
"""Comparisons of recorded lifetimes."""
CHECKED: Mapping[str, Sequence[str]] = {
    "limits": ("limits.spl", "--against", "worse.csv.gz"),
    "welch": ("limits.spl", "--against", "worse.csv.gz", "--interpretation", "welch"),
    "parametric": ("--formula", "f@new <= f@base", "--against", "worse.csv.gz", "--interpretation", "parametric"),
    "bootstrap": ("--formula", "f@new <= f@base", "--against", "worse.csv.gz", "--interpretation", "bootstrap"),
    "undecided": ("--formula", "f@new <= 1.05 * f@base", "--against", "undecided.csv.gz", "--tolerance", "1%"),
    "waiting": ("waiting.spl", "--against", "planted.csv.gz"),
    "mistake": ("--formula", "f <", "--against", "worse.csv.gz"),
}
"""Formulas over recorded lifetimes."""
FORMULAS = (
    "z@new <= 1.1 * z@base", "z < 1 ms", "share(z, > 40 us | b->c) <= 0.1", "rate(z) >= 1/s", "p90(cpu(z)) < 1 s",
    "p99(nobody) < 1 s",
)  # fmt: skip
"""Formulas over a store."""
OLD, NEW = "2fb18317", "9af72f58"
"""How the build-ids of both begin."""
FORMS = {"json": "json", "text": "txt"}
"""What ``--format`` is called, and how the outputs end."""


def of_recordings() -> Iterator[tuple[str, Making]]:
    """Yield what each recording leads to: its model, what a daemon answers that knows it, its metrics, its store."""
    for name, functions in RECORDINGS.items():
        again = ("replay", f"{name}.jsonl.gz")
        yield f"{name}.replay.json", Making(arguments=(*again, "--format", "json"), needs=(name,))
        yield f"{name}.metrics.txt", Making(daemon=name, accept="text/plain")
        yield f"{name}.assertions.txt", Making(daemon=name, arguments=("assertions",))
        yield f"{name}.store.txt", _of_store(name, "status")
        yield f"{name}.export.csv", _of_store(name, "export", "--format", "csv")
        for form, end in FORMS.items():
            how = ("--format", form)
            yield f"{name}.status.{end}", Making(daemon=name, arguments=("status", *how))
            yield f"{name}.functions.{end}", Making(daemon=name, arguments=("functions", *how))
            for function in functions:
                yield f"{name}.show.{function}.{end}", Making(daemon=name, arguments=("show", function, *how))
    replay = ("replay", "simulated.jsonl.gz")
    openmetrics = "application/openmetrics-text; version=1.0.0"
    yield "simulated.openmetrics.txt", Making(daemon="simulated", accept=openmetrics)
    yield "simulated.replay.txt", Making(arguments=replay, needs=("simulated",))
    settings = ("--config", "settings.yaml", "--format", "json")
    yield "simulated.settings.json", Making(arguments=(*replay, *settings), needs=("simulated",))
    chosen = ("functions", "--state", "refused", "--state", "single")
    yield "simulated.chosen.txt", Making(daemon="simulated", arguments=chosen)
    for function, offset in (("z", "0x13c0"), ("c", "0x1420")):
        key = f"9af72f582644f618e5c6cf07a7dce4a5097ba957+{offset}"
        yield f"paths_next.show.{function}.txt", Making(daemon="paths_next", arguments=("show", key))
    yield "paths_next.ambiguous.txt", Making(daemon="paths_next", arguments=("show", "z"))
    yield "no_recording.txt", Making(arguments=("replay", "planted.csv.gz"))


def of_stores() -> Iterator[tuple[str, Making]]:
    """Yield what is read from a store of two builds, and from two stores merged."""
    formulas = tuple(part for each in FORMULAS for part in ("--formula", each))
    store = ("--store", "builds.db")
    for form, end in FORMS.items():
        how = ("--format", form)
        yield f"builds.compare.{end}", _of("builds", "compare", *store, OLD, NEW, *how)
        yield f"builds.alarms.{end}", _of("builds", "acknowledge", *store, *how)
        yield f"builds.check.{end}", _of("builds", "check", "--against", "builds.db", *formulas, *how)
        yield (
            f"builds.other.{end}",
            Making(arguments=("check", "builds.db", "--against", "paths.db", *how), needs=("builds", "paths")),
        )
        yield (
            f"merged.merge.{end}",
            Making(
                arguments=("merge", "paths.db", "paths_again.db", "paths_named.db", *how),
                needs=("paths", "paths_again", "paths_named"),
            ),
        )
        yield f"merged.show.{end}", _of("merged", "show", "z", "--store", "merged.db", *how)
    yield "builds.label.txt", _of("builds", "label", "nobody", "x", *store)
    yield "builds.report.json", _of("builds", "report", "builds.db", "--format", "json")
    yield "builds.report.html", _of("builds", "report", "builds.db", "--function", "[abcz]")
    yield "builds.export.json", _of("builds", "export", *store)
    yield "builds.assertions.txt", _of("builds", "assertions", *store)
    yield "merged.assertions.txt", _of("merged", "assertions", "--store", "merged.db")


def of_durations() -> Iterator[tuple[str, Making]]:
    """Yield what recorded durations lead to: models, comparisons, verdicts on formulas."""
    for name, function in ANALYZED.items():
        for form, end in FORMS.items():
            yield f"{name}.analyze.{end}", Making(arguments=("analyze", name, "--format", form))
        yield f"{name}.show.txt", _of(name, "show", function, "--store", f"{name}.json")
    planted = ("--store", "planted.csv.gz.json")
    settings = ("--config", "settings.yaml", "--function", "z", "--function", "smooth", "--format", "json")
    yield "planted.settings.json", Making(arguments=("analyze", "planted.csv.gz", *settings))
    yield "planted.nobody.txt", Making(arguments=("analyze", "planted.csv.gz", "--function", "nobody"))
    yield "planted.functions.txt", _of("planted.csv.gz", "functions", *planted)
    yield "planted.export.csv", _of("planted.csv.gz", "export", *planted, "--format", "csv")
    yield "planted.check.txt", _of("planted.csv.gz", "check", planted[1], "--against", "planted.csv.gz")
    yield "planted.itself.txt", _of("planted.csv.gz", "check", planted[1], "--against", planted[1])
    yield "bad.stops.txt", Making(arguments=("analyze", "bad.csv.gz"))
    yield "bad.skipped.txt", Making(arguments=("analyze", "bad.csv.gz", "--skip-bad"))
    for command, table in (("compare", COMPARED), ("check", CHECKED)):
        for name, given in table.items():
            for form, end in FORMS.items():
                yield f"{name}.{command}.{end}", Making(arguments=(command, *given, "--format", form))
    junit = ("check", *CHECKED["limits"], "--junit", "junit.xml")
    yield "limits.junit.txt", Making(arguments=junit, file="junit.xml")
    yield "hosts.report.json", Making(arguments=("report", "hosts.csv.gz", "--format", "json"))
    yield "hosts.report.html", Making(arguments=("report", "hosts.csv.gz"))


def _of(need: str, *arguments: str) -> Making:
    return Making(arguments=arguments, needs=(need,))


def _of_store(name: str, command: str, *more: str) -> Making:
    return Making(arguments=(command, "--store", f"{name}.db", *more), needs=(name,))


OUTPUTS: Mapping[str, Making] = dict([*of_recordings(), *of_stores(), *of_durations()])
"""All of them."""
