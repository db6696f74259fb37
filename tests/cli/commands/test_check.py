"""``specmine check`` evaluates formulas against recordings, stores and specifications."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from specmine.model.batch import Lifetime
from specmine.model.buckets import bucket_of
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.split import Split
from specmine.store import Host, Writes, open_store
from tests.support.formulas import formula_of

Outcome = Callable[..., tuple[int, str, str]]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Durations of two builds, five lifetimes each, f 10 % slower in the new one."""
    rng = np.random.default_rng(1)
    lines = ["build,lifetime,duration_ns,function,host"]
    for build in ("old", "fresh"):
        for number in range(5):
            for name, factor in (("f", 1.1 if build == "fresh" else 1.0), ("g", 1.0)):
                values = factor * np.exp(rng.normal(0, 0.005)) * rng.lognormal(10, 0.1, 200)
                lines += [f"{build},{number},{value:.0f},{name},h" for value in values]
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_formulas_of_a_file(tmp_path: Path, recording: Path, outcome: Outcome) -> None:
    """Each formula with its text, verdict and evidence; violated beats unknown beats holds."""
    spec = tmp_path / "limits.spl"
    spec.write_text(
        "# what we promise\nset level 99%\nbuild v2 = fresh\n"
        "slower: f@v2 <= 1.02 * f@old\nf@new <= 1.2 * f@base\nhandle < 20 ms\nforall x in {f, g}: p90(x) < 1 ms\n"
    )
    code, out, err = outcome("check", str(spec), "--against", str(recording), "--format", "json")
    document = json.loads(out)
    assert (code, err, document["schema"]) == (1, "", "specmine.check/1")
    assert [(each["text"], each["verdict"]) for each in document["formulas"]] == [
        ("f@v2 <= 1.02 * f@old", "violated"),
        ("f@new <= 1.2 * f@base", "holds"),
        ("handle < 20 ms", "unknown"),
        ("forall x in {f, g}: p90(x) < 1 ms", "holds"),
    ]
    assert document["formulas"][0]["evidence"]["ratio"] == pytest.approx(1.1, abs=0.02)
    assert len(document["formulas"][3]["evidence"]["parts"]) == 2
    assert document["counts"] == {"holds": 2, "violated": 1, "unknown": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("g@new <= 1.1 * g@base", 0), ("f@new <= f@base", 1), ("q < 1 s", 3), ("f <", 2), ("f@nobody < 1 s", 3)],
)
def test_exit_codes(recording: Path, outcome: Outcome, text: str, expected: int) -> None:
    """Holds is 0, violated 1, a mistake 2 with its place, unknown 3."""
    code, out, err = outcome("check", "--formula", text, "--against", str(recording))
    assert code == expected
    if expected == 2:
        assert out == ""
        assert "line 1, column 4" in err
    else:
        assert text in out


@pytest.mark.parametrize("name", ["welch", "parametric", "bootstrap"])
def test_the_papers_interpretations(recording: Path, outcome: Outcome, name: str) -> None:
    """They see ten per cent as well; of medians they know nothing."""
    ask = ("check", "--against", str(recording), "--interpretation", name, "--format", "json")
    assert outcome(*ask, "--formula", "f@new <= f@base")[0] == 1
    assert outcome(*ask, "--formula", "f@new <= 1.3 * f@base")[0] == 0
    assert outcome(*ask, "--formula", "median(f@new) <= f@base")[0] == 3


def test_base_and_new_are_the_users(recording: Path, outcome: Outcome) -> None:
    """--base and --new say which builds are meant; without a build the new one is."""
    ask = ("check", "--against", str(recording), "--formula")
    assert outcome(*ask, "f@new <= f@base", "--base", "fresh", "--new", "old")[0] == 0
    assert outcome(*ask, "f <= g@old * 1.05", "--new", "old")[0] == 0
    assert outcome(*ask, "f <= g@old * 1.05", "--new", "fresh")[0] == 1


def test_junit_shows_violations_as_failures(tmp_path: Path, recording: Path, outcome: Outcome) -> None:
    """A test case a formula; names with control characters cannot break the file."""
    target = tmp_path / "junit.xml"
    formulas = ["f@new <= f@base", "g@new <= 1.1 * g@base", "`a\x1b<b` < 1 s"]
    arguments = [part for each in formulas for part in ("--formula", each)]
    outcome("check", *arguments, "--against", str(recording), "--junit", str(target))
    suite = ElementTree.parse(target).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "3", "failures": "1", "skipped": "1",
    }  # fmt: skip
    assert [[child.tag for child in case] for case in suite] == [["failure"], ["system-out"], ["skipped"]]


def test_a_case_keeps_its_name_when_levels_are_learned_anew(tmp_path: Path, outcome: Outcome) -> None:
    """The name says which calls are meant; what is asserted of them is in the message."""
    names = []
    for scale in (1.0, 1.1):
        rng = np.random.default_rng(3)
        rows = [f"f,{value:.0f},{number}" for number in range(10) for value in scale * rng.lognormal(10, 0.1, 400)]
        data, learned, target = (tmp_path / f"{scale}.{kind}" for kind in ("csv", "json", "xml"))
        data.write_text("\n".join(["function,duration_ns,lifetime", *rows]) + "\n")
        assert outcome("analyze", str(data), "--output", str(learned))[0] == 0
        assert outcome("check", str(learned), "--against", str(data), "--junit", str(target))[0] == 0
        names.append([case.get("name") for case in ElementTree.parse(target).getroot()])
    assert names[0] == names[1] == ["levels(f)"]


def test_paths_of_a_recording(tmp_path: Path, outcome: Outcome) -> None:
    """A condition chooses the calls by their path; escaped separators belong to names."""
    rng = np.random.default_rng(2)
    lines = ["function,path,duration_ns,lifetime"]
    for number in range(4):
        for slow, fast in rng.lognormal([18, 10], 0.1, (100, 2)):
            lines += [f"z,main;lock;z,{slow:.0f},{number}", f"z,main;un\\;lock,{fast:.0f},{number}"]
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")

    def verdict(text: str) -> int:
        return outcome("check", "--formula", text, "--against", str(path))[0]

    assert verdict("share(z, > 10 ms | lock) >= 0.99") == 0
    assert verdict("share(z, > 10 ms | `un;lock`) <= 0.01") == 0
    assert verdict("share(z, > 10 ms | lock->z) >= 0.99 and share(z, > 10 ms | not lock->z) <= 1%") == 0
    assert verdict("share(z, > 10 ms) <= 0.1") == 1
    assert verdict("shares(z, 10 ms | `un;lock`->z) ~ [1, 0] of 1000") == 0
    assert verdict("shares(z, 10 ms | lock->z) ~ [1, 0] of 1000") == 1


def _specification(shares: tuple[float, float]) -> dict[str, Any]:
    behaviours = [
        {"expression": "lock->z", "formula": [[{"caller": "lock", "callee": "z", "present": True}]], "calls": 4000,
         "paths": 1, "shares": list(shares)},
        {"expression": "not lock->z", "formula": [[{"caller": "lock", "callee": "z", "present": False}]],
         "calls": 4000, "paths": 1, "shares": [1.0, 0.0]},
    ]  # fmt: skip
    paths = [
        {"frames": ["main", "lock", "z"], "complete": True, "calls": 4000, "shares": list(shares), "behaviour": 0},
        {"frames": ["main", "open", "z"], "complete": True, "calls": 4000, "shares": [1.0, 0.0], "behaviour": 1},
    ]
    entry = {"function": "z", "module": "app", "borders_seconds": [0.01], "behaviours": behaviours, "paths": paths}
    return {"schema": "specmine.specification/1", "functions": [entry]}


def test_a_slow_recording_violates_a_mined_specification(tmp_path: Path, outcome: Outcome) -> None:
    """A function of one class that takes ten times as long, and a slow caller's calls that take half as long again."""
    rng = np.random.default_rng(3)

    def recorded(name: str, render: float, load: float) -> str:
        lines = ["function,path,duration_ns"]
        for one, fast, slow in zip(*(rng.lognormal(0, 0.2, 4_000) for _ in range(3)), strict=True):
            lines += [f"render,main;render,{38_000 * render * one:.0f}", f"load,main;cache_get;load,{9_900 * fast:.0f}",
                      f"load,main;db_get;load,{160_000 * load * slow:.0f}"]  # fmt: skip
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return str(tmp_path / name)

    spec = str(tmp_path / "spec.json")
    assert outcome("analyze", recorded("before.csv", 1, 1), "--output", spec)[0] == 0
    assert outcome("check", spec, "--against", recorded("again.csv", 1, 1))[0] == 0
    code, out, _ = outcome("check", spec, "--against", recorded("slow.csv", 10, 1))
    assert code == 1
    (violated,) = (line for line in out.splitlines() if line.startswith("VIOLATED"))
    assert violated == "VIOLATED  levels(render)"
    assert "times the asserted 38" in out
    code, out, _ = outcome("check", spec, "--against", recorded("half.csv", 1, 1.5))
    violated_texts = [line.split("  ", 1)[1] for line in out.splitlines() if line.startswith("VIOLATED")]
    assert code == 1
    assert [text.split(", > ")[0] for text in violated_texts] == ["levels(load | not cache_get->load)", "levels(load"]
    assert "none" not in out
    assert "~ [1]" not in out


def test_a_formula_of_a_specification_has_the_digits_of_json(tmp_path: Path, outcome: Outcome) -> None:
    """Durations have 6 digits, shares 9, and the text is that of the very formula that is judged."""
    spec, border, share = tmp_path / "spec.json", 0.024557543068106735, 2 / 3
    document = _specification((share, 1 - share))
    document["functions"][0]["borders_seconds"] = [border]
    spec.write_text(json.dumps(document))
    code, out, _ = outcome("check", str(spec), "--against", str(spec), "--format", "json")
    text = json.loads(out)["formulas"][0]["text"]
    assert code == 0
    assert text == "shares(`z (app)`, 24.5575 ms | lock->z) ~ [0.666666667, 0.333333333] of 4000"
    assert str(formula_of(text)) == text


def test_units_have_the_letters_of_people(recording: Path, outcome: Outcome) -> None:
    """What is printed can be given to --formula again."""
    _, out, _ = outcome("check", "--formula", "f < 5 us", "--against", str(recording))
    shown = out.splitlines()[0].removeprefix("VIOLATED").strip()
    assert shown == "f < 5 µs"
    code, again, _ = outcome("check", "--formula", shown, "--against", str(recording))
    assert (code, again) == (1, out)


def test_a_specification_against_another(tmp_path: Path, outcome: Outcome) -> None:
    """What one run mined is checked against what another did."""
    files = {}
    for name, shares in (("first", (0.5, 0.5)), ("like", (0.51, 0.49)), ("unlike", (0.2, 0.8))):
        files[name] = tmp_path / f"{name}.json"
        files[name].write_text(json.dumps(_specification(shares)))
    code, out, _ = outcome("check", str(files["first"]), "--against", str(files["like"]), "--format", "json")
    assert (code, len(json.loads(out)["formulas"])) == (0, 2)
    assert json.loads(out)["formulas"][0]["text"] == "shares(`z (app)`, 10 ms | lock->z) ~ [0.5, 0.5] of 4000"
    code, out, _ = outcome("check", str(files["first"]), "--against", str(files["unlike"]), "--format", "json")
    assert [each["verdict"] for each in json.loads(out)["formulas"]] == ["violated", "holds"]
    assert code == 1
    files["other"] = tmp_path / "other.json"
    files["other"].write_text('{"schema": "specmine.status/1"}')
    assert outcome("check", str(files["other"]), "--against", str(files["like"]))[0] == 2


def test_against_a_store(tmp_path: Path, outcome: Outcome) -> None:
    """A store knows lifetimes, builds, and the paths of windows."""
    rng = np.random.default_rng(4)
    path = tmp_path / "s.db"
    function = Function(build_id="ab", offset=16, name="z", module="app")
    slow, fast = (CallPath(tuple(Frame(name, "app") for name in ("main", via, "z"))) for via in ("lock", "open"))
    with open_store(path) as store:
        store.write(Writes((Host(boot_id="boot", hostname="here", utc_offset_ns=10**18), function)), 10**18)
        for number in range(3):
            lifetime = Lifetime(id=f"boot:{number}:0", pid=number, executable="/bin/app", build_id="ab", start_ns=0,
                                processes=0)  # fmt: skip
            store.write(Writes((lifetime,)), 10**18)
            for second in range(20, 26):
                durations = {slow: rng.lognormal(18, 0.1, 100), fast: rng.lognormal(10, 0.1, 100)}
                parts = tuple(
                    PathHistogram(path=each, histogram=Histogram.from_durations(values))
                    for each, values in durations.items()
                )
                window = Observation(function=function.key, lifetime=lifetime.id, kind=Kind.PATH,
                                     start_ns=second * 10**9, end_ns=(second + 1) * 10**9,
                                     histogram=parts[0].histogram + parts[1].histogram, calls=200, watched_ns=10**9,
                                     paths=parts)  # fmt: skip
                store.write(Writes((window,)), 10**18)

    def verdicts(*texts: str) -> list[str]:
        arguments = [part for text in texts for part in ("--formula", text)]
        _, out, _ = outcome("check", *arguments, "--against", str(path), "--format", "json")
        return [each["verdict"] for each in json.loads(out)["formulas"]]

    assert verdicts(
        "p99(`z (app)`) < 1 s",
        "share(z, > 10 ms | lock) >= 0.99",
        "share(z, > 10 ms | open) >= 0.99",
        "shares(z, 10 ms | lock->z) ~ [0, 1] of 1000",
        "shares(z, 10 ms) ~ [0.5, 0.5] of 1000",
        "rate(z) >= 150/s",
        "z@new < z@base",
    ) == ["holds", "holds", "violated", "holds", "holds", "holds", "unknown"]


def _on_cpu(path: Path, waits: float) -> None:
    """Fill a store with three lifetimes whose calls use 1 ms of CPU; this share of them waits for 4 ms more."""
    rng = np.random.default_rng(5)
    function = Function(build_id="ab", offset=16, name="z", module="app")
    seen = []
    with open_store(path) as store:
        store.write(Writes((Host(boot_id="boot", hostname="here", utc_offset_ns=10**18), function)), 10**18)
        for number in range(3):
            lifetime = Lifetime(id=f"boot:{number}:0", pid=number, executable="/bin/app", build_id="ab", start_ns=0,
                                processes=0)  # fmt: skip
            store.write(Writes((lifetime,)), 10**18)
            for second in range(20, 24):
                needed = rng.normal(1e6, 1e4, 500)
                taken = needed + 4e6 * (rng.random(500) < waits)
                counts = Histogram.from_durations(taken)
                waited = np.where(counts.buckets >= bucket_of([3_000_000])[0], 4_000_000, 0)
                split = Split(waiting_ns=Histogram.from_pairs(counts.buckets, counts.counts * waited), blocked_ns=EMPTY,
                              on_cpu=Histogram.from_durations(needed))  # fmt: skip
                seen.append(
                    Observation(function=function.key, lifetime=lifetime.id, kind=Kind.TIME,
                                start_ns=second * 10**9, end_ns=(second + 1) * 10**9,
                                histogram=counts, calls=500, watched_ns=10**9, split=split)
                )  # fmt: skip
        store.write(Writes(tuple(seen)), 10**18)


def test_time_on_cpu_of_a_store(tmp_path: Path, outcome: Outcome) -> None:
    """What is promised of time on CPU holds beside rivals, where the same of durations does not."""
    path = tmp_path / "s.db"
    _on_cpu(path, waits=0.25)

    def verdicts(*texts: str) -> list[str]:
        arguments = [part for text in texts for part in ("--formula", text)]
        _, out, _ = outcome("check", *arguments, "--against", str(path), "--format", "json")
        return [each["verdict"] for each in json.loads(out)["formulas"]]

    assert verdicts(
        "p90(z) <= 1.1 ms",
        "p90(cpu(z)) <= 1.1 ms",
        "cpu(`z (app)`) >= 0.9 ms",
        "share(cpu(z), > 3 ms) <= 1%",
        "share(z, > 3 ms) <= 1%",
        "mean(cpu(z)) <= 0.7 * mean(z)",
        "mean(cpu(z)) >= 0.7 * mean(z)",
        "shares(cpu(z), 3 ms) ~ [1, 0] of 2000",
        "cpu(z | a->z) <= 1 s",
    ) == ["violated", "holds", "holds", "holds", "violated", "holds", "violated", "holds", "unknown"]


def test_time_on_cpu_is_unknown_where_nobody_noted_it(recording: Path, outcome: Outcome) -> None:
    """A recording of durations says nothing of it, and that is said."""
    code, out, _ = outcome("check", "--formula", "cpu(f) < 1 s", "--against", str(recording))
    assert code == 3
    assert "not known here" in out


def test_time_on_cpu_of_a_specification(tmp_path: Path, outcome: Outcome) -> None:
    """Its assertion is read as a formula, and checked against another's histogram; without one, against its classes."""
    document = _specification((0.5, 0.5))
    (entry,) = document["functions"]
    classes = [{"upper_seconds": 0.002, "share": 1.0}, {"upper_seconds": None, "share": 0.0}]
    on_cpu = {"calls": 4000, "borders_seconds": [0.002], "classes": classes}
    spec = tmp_path / "first.json"
    spec.write_text(json.dumps(document | {"functions": [entry | {"on_cpu": on_cpu, "time": {"calls": 4000}}]}))
    slower = {"histogram": Histogram.from_durations(np.full(4000, 5e6)).pairs}
    against = tmp_path / "second.json"
    for told, verdict in (({}, "holds"), (slower, "violated")):
        other = entry | {"on_cpu": on_cpu | told, "time": {"calls": 4000}}
        against.write_text(json.dumps(document | {"functions": [other]}))
        _, out, _ = outcome("check", str(spec), "--against", str(against), "--format", "json")
        last = json.loads(out)["formulas"][-1]
        assert (last["text"], last["verdict"]) == ("shares(cpu(`z (app)`), 2 ms) ~ [1, 0] of 4000", verdict)
    against.write_text(json.dumps(document | {"functions": [entry | {"histogram": slower["histogram"]}]}))
    assert outcome("check", "--formula", "cpu(z) < 1 s", "--against", str(against))[0] == 3


def test_against_the_daemon(
    outcome: Outcome, asked: tuple[Path, list[Mapping[str, Any]]], document: dict[str, Any], tmp_path: Path
) -> None:
    """Live is the default: what the daemon mined agrees with itself."""
    spec = tmp_path / "app.json"
    spec.write_text(json.dumps(document))
    code, out, err = outcome("check", str(spec), "--socket", str(asked[0]), "--format", "json")
    assert (code, err) == (0, "")
    assert {each["verdict"] for each in json.loads(out)["formulas"]} == {"holds"}


def _median(seconds: float) -> dict[str, Any]:
    return {"p50": {"seconds": seconds, "low": 0.9 * seconds, "high": 1.1 * seconds}}


def _stated(seconds: float, span: tuple[str, str] | None, began: str | None) -> dict[str, Any]:
    """Return a specification of one function that takes so long, observed in a span, mined since ``began``."""
    dates = dict(zip(("start", "end"), span, strict=True)) if span else None
    level = {"quantiles": _median(seconds), "windows": 9, "lifetimes": 1, "calls": 2_000, "observed_span": dates}
    behaviour = {"expression": "true", "formula": [[]], "shares": [1.0], "observed": _median(seconds), **level}
    entry = {"function": "f", "module": "app", "behaviours": [behaviour], "observed": _median(seconds), **level}
    entry |= {"windows_span": dates}
    return {"schema": "specmine.specification/1", "collection": {"began": began}, "functions": [entry]}


EARLY = ("2026-11-22T10:00:00.000Z", "2026-11-22T10:00:05.000Z")
BEGAN = "2026-11-22T10:20:05.000Z"
LATE = ("2026-11-22T10:21:00.000Z", "2026-11-22T10:26:00.000Z")


@pytest.mark.parametrize(
    ("observed", "seconds", "verdict", "reason"),
    [
        (EARLY, 1e-3, "unknown", "observed 20 min before the specification"),
        (EARLY, 1e-4, "unknown", "observed 20 min before the specification"),
        ((EARLY[0], LATE[1]), 1e-3, "unknown", "observed in part before the specification"),
        ((EARLY[0], LATE[1]), 1e-4, "holds", ""),
        (LATE, 1e-3, "violated", ""),
        (LATE, 1e-4, "holds", ""),
        (None, 1e-3, "violated", ""),
    ],
)
def test_what_the_daemon_saw_before_a_specification_does_not_contradict_it(
    observed: tuple[str, str] | None,
    seconds: float,
    verdict: str,
    reason: str,
    outcome: Outcome,
    asked: tuple[Path, list[Mapping[str, Any]]],
    document: dict[str, Any],
    tmp_path: Path,
) -> None:
    """A file of the same age is compared on purpose: it has its verdict. So has a formula that a person wrote."""
    spec, other = tmp_path / "spec.json", tmp_path / "other.json"
    spec.write_text(json.dumps(_stated(1e-4, LATE, BEGAN)))
    found = _stated(seconds, observed, EARLY[0])
    document.clear()
    document.update(found)
    other.write_text(json.dumps(found))
    code, out, _ = outcome("check", spec, "--socket", asked[0], "--format", "json")
    (formula,) = json.loads(out)["formulas"]
    assert (formula["verdict"], code) == (verdict, {"unknown": 3, "violated": 1, "holds": 0}[verdict])
    assert formula["evidence"].get("reason", "").startswith(reason)
    assert formula["evidence"].get("newest") == (observed[1] if observed else None)
    given = "holds" if seconds == 1e-4 else "violated"
    _, out, _ = outcome("check", spec, "--against", other, "--format", "json")
    assert json.loads(out)["formulas"][0]["verdict"] == given
    text = "levels(f) ~ [p50 100 us in [90 us, 110 us]] of 2000 calls in 9 windows of 1 lifetime"
    _, out, _ = outcome("check", "--formula", text, "--socket", asked[0], "--format", "json")
    assert json.loads(out)["formulas"][0]["verdict"] == given


def test_windows_taken_over_from_an_earlier_daemon_are_the_specification_s_own(
    outcome: Outcome, asked: tuple[Path, list[Mapping[str, Any]]], document: dict[str, Any], tmp_path: Path
) -> None:
    """A daemon that was started anew agrees with what it states, though it did not look at a function since."""
    spec = tmp_path / "spec.json"
    found = _stated(1e-4, EARLY, BEGAN)
    spec.write_text(json.dumps(found))
    document.clear()
    document.update(found)
    assert outcome("check", spec, "--socket", asked[0])[0] == 0


def test_of_the_lifetime_that_was_mined_earlier_windows_do_not_count(tmp_path: Path, outcome: Outcome) -> None:
    """A store has its verdict of every other lifetime, and of this one since it was mined."""
    path, spec = tmp_path / "s.db", tmp_path / "spec.json"
    rng = np.random.default_rng(8)
    function = Function(build_id="ab", offset=16, name="f", module="app")
    utc = 1_795_305_600 * 10**9  # 2026-11-22T00:00:00Z
    lives = [
        Lifetime(id=f"boot:{pid}:0", pid=pid, executable="/bin/app", build_id="ab", start_ns=0, processes=0)
        for pid in (1, 2)
    ]

    def window(life: int, second: int, median_ns: float) -> Observation:
        durations = Histogram.from_durations(rng.lognormal(np.log(median_ns), 0.1, 500))
        return Observation(function=function.key, lifetime=lives[life].id, kind=Kind.TIME, start_ns=second * 10**9,
                           end_ns=(second + 1) * 10**9, histogram=durations, calls=500, watched_ns=10**9)  # fmt: skip

    def against(mined_from: str) -> tuple[str, str]:
        mined = _stated(1e-4, None, "2026-11-22T00:10:00Z") | {"program": {"lifetimes": [{"id": mined_from}]}}
        spec.write_text(json.dumps(mined))
        _, out, _ = outcome("check", spec, "--against", path, "--format", "json")
        (formula,) = json.loads(out)["formulas"]
        return formula["verdict"], formula["evidence"].get("reason", "")

    with open_store(path) as store:
        store.write(Writes((Host(boot_id="boot", hostname="here", utc_offset_ns=utc), function, *lives)), utc)
        store.write(Writes(tuple(window(0, second, 1e6) for second in range(20, 29))), utc)
    assert against(lives[0].id) == ("unknown", "observed 9 min 31 s before the specification")
    assert against("elsewhere:1:0")[0] == "violated", "another lifetime is compared on purpose"
    with open_store(path) as store:
        store.write(Writes(tuple(window(0, second, 1e5) for second in range(620, 629))), utc)
    assert against(lives[0].id)[0] == "holds", "what came later decides"


def test_wrong_input(tmp_path: Path, recording: Path, outcome: Outcome) -> None:
    """Nothing to check, no such file, an unknown summary: exit 2 in one line."""
    for arguments in (
        (),
        (str(tmp_path / "none.spl"),),
        ("--formula", "f < 1 s", "--against", str(tmp_path / "none.csv")),
        ("--formula", "f < 1 s", "--against", str(recording), "--summary", "p98"),
    ):
        code, out, err = outcome("check", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)


def test_no_formula_is_not_enough(tmp_path: Path, recording: Path, outcome: Outcome) -> None:
    """A file without formulas shows nothing: exit 3."""
    spec = tmp_path / "empty.spl"
    spec.write_text("# nothing yet\n")
    assert outcome("check", str(spec), "--against", str(recording))[0] == 3
