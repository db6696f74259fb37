"""CSV of durations, by the letter of the contract."""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from specmine.analysis.importers.csv import read_csv
from specmine.analysis.importers.records import Faults, Names
from specmine.model.errors import InputError
from tests.support.recordings import analyzed, behaviours, calls, csv_text, one

Row = tuple[str, tuple[str, ...], bool, float]


def rows(text: str | bytes, *, skip: bool = False) -> tuple[list[Row], Faults]:
    """Return each call as its function, callers, whether the path is known, duration; and the bad lines."""
    names, faults = Names(), Faults("file", skip=skip)
    data = text if isinstance(text, bytes) else text.encode()
    found = []
    for chunk in read_csv(io.BytesIO(data), names, faults):
        for number, duration in zip(chunk.paths.tolist(), chunk.durations_ns.tolist(), strict=True):
            path = names.paths[number]
            function = names.functions[names.function_of[number]].name
            found.append((function, tuple(frame.name for frame in path.frames), path.complete, duration))
    return found, faults


def test_the_edge_that_decides_is_found(tmp_path: Path) -> None:
    """The contract's example: fast over b->c, mixed elsewhere, every call counted."""
    some = calls(6000)
    document = analyzed(tmp_path, csv_text(some))
    by_path = Counter(path for path, _ in some)
    assert behaviours(document) == {
        "b->c": by_path["main;a;b;c;z"],
        "not b->c": by_path["main;a;b;z"] + by_path["main;a;c;z"],
    }
    found = one(document)
    assert (found["state"], found["calls"], found["calls_exact"], found["observations"]) == (
        "explained",
        6000,
        True,
        10,
    )
    assert sum(calls for _, calls in found["histogram"]) == 6000
    (border,) = found["borders_seconds"]
    assert 25e-6 < border < 50e-6


def test_columns_come_in_any_order_among_others(tmp_path: Path) -> None:
    """Unknown columns are ignored, wherever they stand, and quotes and line ends change nothing."""
    some = calls(4000)
    plain = analyzed(tmp_path, csv_text(some))["functions"]
    lines = ["\ufeffnote,Duration_ns,process,path,function"]
    lines += [f'"a ""b"", c",{duration},{at % 7},"{path}",z' for at, (path, duration) in enumerate(some)]
    assert analyzed(tmp_path, "\r\n".join(lines))["functions"] == plain
    tail = ["path,function,duration_ns,note", *(f'{path},z,{duration},"x,1"' for path, duration in some)]
    assert analyzed(tmp_path, "\n".join(tail))["functions"] == plain
    assert analyzed(tmp_path, gzip.compress(csv_text(some).encode()))["functions"] == plain


def test_paths_are_read_by_the_letter() -> None:
    """Escaped semicolons, a function that is appended or stands there, an empty path, a function of no name."""
    text = 'function,path,duration_ns\nz,main;op\\;x;z,1\nz,main;a,2.5\nz,,3\n,main;a,4\n"f(int, int)",main,5e3\n'
    assert rows(text)[0] == [
        ("z", ("main", "op;x", "z"), True, 1.0),
        ("z", ("main", "a", "z"), True, 2.5),
        ("z", ("z",), False, 3.0),
        ("all", ("main", "a", "all"), True, 4.0),
        ("f(int, int)", ("main", "f(int, int)"), True, 5000.0),
    ]
    assert rows("duration_ns\n7\n8\n")[0] == [("all", ("all",), False, 7.0), ("all", ("all",), False, 8.0)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("z,main,-5", "not a decimal"),
        ("z,main,", "no duration_ns"),
        ("z,main,nan", "not a decimal"),
        ("z,main,1_000", "not a decimal"),
        ("z,main,0x10", "not a decimal"),
        ("z,main,1e400", "thirty years"),
        ("z,main", "2 fields"),
        ("z,f(int, int),5", "4 fields"),
        ("z,main,5,6", "4 fields"),
    ],
)
def test_a_bad_line_is_an_error_with_its_number(line: str, why: str) -> None:
    """The header is line 1; skipped instead, the others are read and the bad one is counted."""
    text = f"function,path,duration_ns\nz,main,1\n\n{line}\nz,main,2\n"
    with pytest.raises(InputError, match=f"line 4: .*{why}") as caught:
        rows(text)
    assert caught.value.exit_code == 2
    found, faults = rows(text, skip=True)
    assert [row[-1] for row in found] == [1.0, 2.0]
    assert (faults.skipped, faults.first is not None and faults.first[0]) == (1, 4)


def test_numbers_of_lines_count_those_inside_quotes() -> None:
    """A name with a line feed in it moves the lines below, and is one name."""
    text = 'function,path,duration_ns\n"a\nb",main,1\nz,main,x\n'
    with pytest.raises(InputError, match="line 4: "):
        rows(text)
    assert rows(text, skip=True)[0] == [("a\nb", ("main", "a\nb"), True, 1.0)]


@pytest.mark.parametrize("after", ["z,main,2\nz,main,3\n", 'z,"main",2\nz,main,3\n', 'z,main,2\n"z",main,3\n'])
def test_an_open_quote_blames_the_line_where_it_opened(after: str) -> None:
    """Whether it swallows the rest of the file or ends at another quote; left out, the lines after it are read."""
    text = f'function,path,duration_ns\nz,main,1\nz,"main,5\n{after}'
    with pytest.raises(InputError, match="line 3: a quote opens in this line"):
        rows(text)
    found, faults = rows(text, skip=True)
    assert [row[-1] for row in found] == [1.0, 2.0, 3.0]
    assert faults.skipped == 1


def test_long_fields_are_read() -> None:
    """A name of C++ may have more than the 128 KiB that Python's reader allows by default."""
    name = "x" * 200_000
    for field in (name, f'"{name}"'):
        found, _ = rows(
            f"function,path,duration_ns\nz,{field};z,5\n" if field == name else f"path,duration_ns\n{field},5\n"
        )
        assert found[0][-1] == 5.0 and len(found[0][1][0]) == len(name)
    found, _ = rows(f"function,duration_ns,{name}\nz,5,\n")
    assert len(found) == 1


def test_a_carriage_return_inside_a_line_is_a_bad_line() -> None:
    """It is no end of line where others are line feeds."""
    with pytest.raises(InputError, match="line 3: a carriage return"):
        rows("function,duration_ns\nz,1\nz\rz,2\n")


def test_a_file_without_durations_is_refused() -> None:
    """The header must name the durations; an empty file has no calls."""
    with pytest.raises(InputError, match="line 1: no column duration_ns"):
        rows("function,path\nz,main\n")
    with pytest.raises(InputError, match="two columns are called path"):
        rows("path,path,duration_ns\n")
    assert rows("")[0] == rows("function,path,duration_ns\n")[0] == []


def test_times_are_whole_numbers() -> None:
    """A time that is none is a bad line, and one of 19 digits is not."""
    good = "duration_ns,time_ns\n5,1790000000000000000\n"
    names = Names()
    (chunk,) = read_csv(io.BytesIO(good.encode()), names, Faults("file"))
    assert chunk.times_ns is not None
    assert chunk.times_ns.tolist() == [1790000000000000000]
    for bad in ("1.5", "", "9999999999999999999", "later"):
        with pytest.raises(InputError, match="line 3: time_ns"):
            rows(f"{good}5,{bad}\n")


def _written(some: Iterable[tuple[str, str, float]], *, quoting: int) -> bytes:
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(["function", "path", "duration_ns"])
    writer.writerows(some)
    return lines.getvalue().encode()


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL])
def test_both_ways_through_the_lines_agree_with_the_csv_module(quoting: int) -> None:
    """Random names, with all that needs quotes, come back as Python's own reader gives them, in order."""
    chance = random.Random(3)
    letters = 'ab,;"\n\r x\\é'
    some = []
    for _ in range(3000):
        function = "".join(chance.choices(letters, k=chance.randint(0, 12)))
        path = "".join(chance.choices("pq;", k=chance.randint(0, 30)))
        some.append((function, path, chance.choice([chance.randint(0, 10**17), round(chance.random() * 1e6, 3)])))
    found, _ = rows(_written(some, quoting=quoting))
    assert [(function, duration) for function, _, _, duration in found] == [
        (function.replace("\r\n", "\n") or "all", float(duration)) for function, _, duration in some
    ]
    plain = [(function.translate({ord(each): "_" for each in ',"\n\r'}), path, n) for function, path, n in some]
    assert rows(_written(plain, quoting=csv.QUOTE_MINIMAL))[0] == rows(_written(plain, quoting=csv.QUOTE_ALL))[0]
