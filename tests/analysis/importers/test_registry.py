"""What other tools really print (data/, cut short), and damage to it."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specmine.analysis.importers import otlp
from specmine.analysis.importers.records import Faults, Names
from specmine.analysis.importers.registry import opened, reader_of
from specmine.model.errors import InputError
from tests.support.recordings import analyzed, behaviours, calls, one

DATA = Path(__file__).parent / "data"
Read = dict[tuple[str, ...], list[float]]
Span = dict[str, Any]


def read(file: Path, wanted: str | None = None, *, skip: bool = False) -> tuple[str, Read, Names, Faults]:
    """Return the format, the durations of each path, the names and the bad lines."""
    names, faults = Names(), Faults(file.name, skip=skip)
    found: Read = {}
    with opened(str(file)) as (stream, _, _):
        form, reader = reader_of(stream, file.name, wanted)
        for chunk in reader(stream, names, faults):
            for number, duration in zip(chunk.paths.tolist(), chunk.durations_ns.tolist(), strict=True):
                path = names.paths[number]
                key = tuple(frame.name for frame in path.frames) + (() if path.complete else ("?",))
                found.setdefault(key, []).append(duration)
    return form, found, names, faults


def test_uftrace_dump_gives_exact_durations_over_whole_paths() -> None:
    """Begin and end pair up by thread; what is still open at the end is censored."""
    form, found, names, _ = read(DATA / "uftrace.json")
    assert form == "uftrace"
    path = ("main", "a", "b", "c", "z")
    assert found[path][0] == pytest.approx(14235665016.607e3 - 14235664995.896e3, abs=1)
    assert found[(*path, "spin_ns")][0] == pytest.approx(20_430, abs=1)
    assert {names.functions[number].name: count for number, count in names.censored.items()}["main"] == 1


def test_uftrace_replay_says_the_same_as_its_dump() -> None:
    """Both texts of one recording have the same calls, up to the digits that are printed."""
    _, exact, _, _ = read(DATA / "uftrace.json")
    for name in ("uftrace.replay", "uftrace.timed"):
        form, found, _, _ = read(DATA / name)
        assert form == "uftrace"
        for path in set(exact) & set(found):
            for a, b in zip(exact[path], found[path], strict=False):
                assert a == pytest.approx(b, abs=1, rel=2e-3)
        assert len(set(exact) & set(found)) >= 6


def test_uftrace_replay_reads_arguments_marks_and_inner_calls(tmp_path: Path) -> None:
    """Names lose their arguments, long calls have a mark, recursion counts only the outermost call."""
    file = tmp_path / "replay"
    file.write_text(
        "# DURATION     TID     FUNCTION\n"
        "            [ 1] | ns::f(int, char)(1, \"a)\") {\n"
        "            [ 2] | other() {\n"
        "            [ 1] |   fact(3) {\n"
        "            [ 1] |     fact(2) {\n"
        "   1.000 us [ 1] |       leaf();\n"
        "+ 12.000 us [ 1] |     } = 2; /* fact */\n"
        "! 1.500 ms [ 1] |   } = 6; /* fact */\n"
        "            [ 1] |   /* linux:sched-out */\n"
        "   2.000 ms [ 1] | } /* ns::f */\n"
        "   3.000  s [ 2] | } /* other */\n"
        "\nuftrace stopped tracing with remaining functions\n[0] gone\n"
    )  # fmt: skip
    _, found, names, _ = read(file)
    assert found == {
        ("ns::f(int, char)", "fact", "fact", "leaf"): [1000.0],
        ("ns::f(int, char)", "fact"): [1_500_000.0],
        ("ns::f(int, char)",): [2_000_000.0],
        ("other",): [3e9],
    }
    assert {names.functions[number].name: count for number, count in names.inner.items()} == {"fact": 1}


def test_perf_script_pairs_entries_with_returns() -> None:
    """The duration is the time between both, the path the stack at the entry."""
    form, found, names, _ = read(DATA / "perf.txt")
    assert form == "perf"
    path = ("__libc_start_call_main", "main", "a", "b", "c", "z")
    assert found[path][0] == 12792_722071171 - 12792_722033024
    assert sum(map(len, found.values())) == 6
    assert names.functions[0].module == "paths"


def test_bpftrace_prints_a_duration_before_the_stack() -> None:
    """The form that docs/analyze.md asks bpftrace for; what else it prints is passed over."""
    form, found, _, _ = read(DATA / "bpftrace.txt")
    assert form == "perf"
    assert found[("__libc_start_call_main", "main", "a", "b", "c", "z")][0] == 76_023
    assert read(DATA / "bpftrace.txt", "bpftrace")[1] == found


def test_stacks_with_unknown_frames_are_not_whole(tmp_path: Path) -> None:
    """And a call without any stack has an unknown path; folded stacks are read, samples refused."""
    file = tmp_path / "perf"
    file.write_text(
        "app 7/8 1.000001: 500 z:\n\t1 z+0x1 (/bin/app)\n\t2 [unknown] (/lib/libx.so)\n\n"
        "app 7/8 1.000002: 600 z:\n\nmain;a;y 700\n"
    )
    assert read(file)[1] == {
        ("libx.so+0x2", "z", "?"): [500.0],
        ("z", "?"): [600.0],
        ("main", "a", "y"): [700.0],
    }
    file.write_text("app 7 1.000001: 10101 cycles:\n\t1 z+0x1 (/bin/app)\n")
    with pytest.raises(InputError, match="line 1: cycles is a sample"):
        read(file)


def span(name: str, own: str, parent: str, start: int, end: int, trace: str = "t1") -> Span:
    """Return a span as OTLP writes it."""
    return {"traceId": trace, "spanId": own, "parentSpanId": parent, "name": name,
            "startTimeUnixNano": str(start), "endTimeUnixNano": str(end)}  # fmt: skip


def export(*spans: Span, service: str = "shop") -> Span:
    """Return an export of the spans of one service."""
    attributes = [{"key": "service.name", "value": {"stringValue": service}}]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": list(spans)}]}]}


def test_spans_are_calls_and_parents_their_path(tmp_path: Path) -> None:
    """Children may come before their parents and from another service; a missing parent is told."""
    file = tmp_path / "spans"
    lines = [
        export(span("SELECT", "c", "b", 20, 50), span("lost", "d", "ff", 5, 6)),
        export(span("GET /cart", "b", "a", 10, 60), service="api"),
        export(span("GET /cart", "a", "0000000000000000", 0, 100), service="edge"),
        export(span("retry", "x", "", 0, 9, "t2"), span("retry", "y", "x", 1, 8, "t2")),
    ]
    expected: Read = {
        ("GET /cart", "GET /cart", "SELECT"): [30.0],
        ("lost", "?"): [1.0],
        ("GET /cart", "GET /cart"): [50.0],
        ("GET /cart",): [100.0],
        ("retry",): [9.0],
    }
    file.write_text("\n".join(map(json.dumps, lines)))
    form, found, names, _ = read(file)
    assert (form, found) == ("otlp", expected)
    assert sum(names.inner.values()) == 1
    whole = {"resourceSpans": [each for line in lines for each in line["resourceSpans"]]}
    file.write_text(json.dumps(whole, indent=2))
    assert read(file)[1] == expected


def test_waiting_spans_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When too many wait, the traces untouched for longest go, and late children know no parent."""
    monkeypatch.setattr(otlp, "WAITING", 10)
    file = tmp_path / "spans"
    lines = [export(span("root", "a", "", 0, 5, f"t{n}")) for n in range(40)]
    lines.append(export(span("late", "b", "a", 1, 2, "t0"), span("soon", "b", "a", 1, 2, "t39")))
    file.write_text("\n".join(map(json.dumps, lines)))
    found = read(file)[1]
    assert found[("late", "?")] == found[("root", "soon")] == [1.0]
    assert len(found[("root",)]) == 40


def test_ndjson_takes_what_csv_takes(tmp_path: Path) -> None:
    """Paths as texts or lists, numbers as numbers or texts, blank lines; the same model as from CSV."""
    some = calls(6000)
    lines = [
        json.dumps({"function": "z", "duration_ns": duration if at % 2 else str(duration), "note": [1, {}],
                    "path": path if at % 3 else path.split(";")})
        for at, (path, duration) in enumerate(some)
    ]  # fmt: skip
    document = analyzed(tmp_path, "\n\n".join(lines))
    assert document["collection"]["source"]["format"] == "ndjson"
    by_path = Counter(path for path, _ in some)
    assert behaviours(document)["b->c"] == by_path["main;a;b;c;z"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"duration_ns": 5', "not JSON"),
        ('{"duration_ns": 5}, {"duration_ns": 5}', "not JSON"),
        ("[5]", "not a JSON object"),
        ('{"duration_ns": -1}', "not a decimal"),
        ('{"duration_ns": NaN}', "not a decimal"),
        ('{"duration_ns": true}', "not a decimal"),
        ('{"function": "z"}', "no duration_ns"),
        ('{"duration_ns": 5, "path": {"a": 1}}', "texts"),
        ('{"duration_ns": 5, "time_ns": 1}', "in some lines"),
    ],
)
def test_bad_ndjson_is_told_by_line(tmp_path: Path, line: str, why: str) -> None:
    """Whatever is wrong with a line, only that line is lost, and its number is right."""
    file = tmp_path / "lines"
    file.write_text(f'{{"duration_ns": 5}}\n\n{line}\n{{"duration_ns": 6}}\n')
    with pytest.raises(InputError, match=f"line 3: .*{why}"):
        read(file)
    _, found, _, faults = read(file, skip=True)
    assert (found, faults.skipped) == ({("all", "?"): [5.0, 6.0]}, 1)


def _cut_short(text: str) -> str:
    return text[: len(text) // 2]


@pytest.mark.parametrize("name", ["uftrace.json", "uftrace.replay", "perf.txt", "bpftrace.txt"])
@pytest.mark.parametrize(
    "damage", [_cut_short, lambda text: text.replace(":", "", 9), lambda text: text.replace("\n", " ", 5)]
)
def test_damage_is_one_error_or_less_data(name: str, damage: Callable[[str], str], tmp_path: Path) -> None:
    """Files that end early or are mangled never end in anything but InputError."""
    file = tmp_path / "damaged"
    file.write_text(damage((DATA / name).read_text()))
    form = "perf" if name.endswith(".txt") else "uftrace"
    try:
        read(file, form)
    except InputError as error:
        assert "line" in str(error)
    assert sum(map(len, read(file, form, skip=True)[1].values())) <= sum(map(len, read(DATA / name)[1].values()))


def test_a_format_that_cannot_be_told_is_asked_for(tmp_path: Path) -> None:
    """Nothing is guessed; UTF-16 and folders are refused in one line."""
    file = tmp_path / "x"
    for data, why in ((b"hello world\n", "--from"), (b"\xff\xfeh\x00", "UTF-16"), (b"\x1f\x8bxx", "cannot read")):
        file.write_bytes(data)
        with pytest.raises(InputError, match=why):
            read(file)
    with pytest.raises(InputError, match="cannot read"):
        read(tmp_path)


def test_calls_of_several_functions_keep_apart(tmp_path: Path) -> None:
    """Every function of a file is mined by itself; a call path that is not known explains nothing."""
    some = calls(6000)
    lines = ["function,path,duration_ns"]
    for path, duration in some:
        lines += [f"z,{path},{duration}", f"y,,{duration}"]
    document = analyzed(tmp_path, "\n".join(lines))
    assert one(document)["state"] == "explained"
    other = one(document, "y")
    assert (other["state"], other["reason"]["code"]) == ("unexplained", "no-paths")
    assert len(other["classes"]) == 2
    assert [each["function"] for each in document["functions"]] == ["y", "z"]


def test_elements_survive_any_size_of_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays and objects are found wherever the blocks are cut."""
    from specmine.analysis.importers import json_stream  # noqa: PLC0415

    objects = [{"n": number, "text": 'a"], [{' * (number % 4), "list": [{"x": 1}]} for number in range(50)]
    text = json.dumps({"before": [1, 2], "wanted": objects, "after": {}}, indent=1).encode()
    for size in (1, 2, 7, 64, 1 << 20):
        monkeypatch.setattr(json_stream, "_BLOCK", size)
        found = list(json_stream.elements(io.BytesIO(text), "wanted", Faults("f")))
        assert [value for _, value in found] == objects
        assert found[0][0] == text[: text.index(b'"n": 1')].count(b"\n") - 1
