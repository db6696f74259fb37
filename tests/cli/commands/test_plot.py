"""``specmine plot``: what the picture holds, of which file, and the layout of the graph."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specmine.cli.commands.plot import place_and_date
from specmine.cli.pictures.durations import is_flattened
from specmine.cli.pictures.figure import picture
from specmine.model.text import three_digits
from tests.support.recordings import calls, csv_text

Outcome = Callable[..., tuple[int, str, str]]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def specification(tmp_path: Path, outcome: Outcome) -> Path:
    """An analysed recording."""
    recording, target = tmp_path / "calls.csv", tmp_path / "calls.json"
    recording.write_text(csv_text(calls(6000)))
    assert outcome("analyze", recording, "--output", target)[0] == 0
    return target


def texts(svg: str | bytes) -> list[str]:
    """Return the texts of a picture."""
    return ["".join(each.itertext()).strip() for each in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_picture_says_what_is_asserted(specification: Path, outcome: Outcome) -> None:
    """Border, class shares, behaviours with their conditions, functions, and the calls of the deciding edge."""
    code, out, err = outcome("plot", "--store", specification)
    assert (code, err) == (0, "")
    shown = " ".join(texts(out))
    (entry,) = json.loads(specification.read_text())["functions"]
    calls_of = {each["expression"]: f"{each['calls']:,}" for each in entry["behaviours"]}
    for wanted in ("if b->c (", "if not b->c (", "6,000 calls, known", "main", calls_of["b->c"], "36 us", "100 %"):
        assert wanted in shown
    assert out.count("#d55e00") >= 1
    assert out == outcome("plot", "z", "--store", specification)[1]


def test_the_durations_have_axes_marks_and_a_legend(specification: Path, outcome: Outcome) -> None:
    """Shares of the calls upwards, median and p99 as strokes, the behaviours by colour."""
    (entry,) = json.loads(specification.read_text())["functions"]
    shown = texts(outcome("plot", "--store", specification)[1])
    assert any(re.fullmatch(r"calls, in steps of \d+ %", each) for each in shown)
    assert {"0 %", "2 %", "4 %"} <= {*shown} or {"0 %", "5 %", "10 %"} <= {*shown}
    for name, word in (("p50", "median"), ("p99", "p99")):
        assert f"{word} {three_digits(entry['quantiles'][name]['seconds'])}" in shown
    assert {"if b->c", "if not b->c"} <= {*shown}


def test_one_step_does_not_flatten_all_others() -> None:
    """Then the axis of calls is logarithmic; where the steps are alike it is not."""
    assert is_flattened([0.9, *[0.001] * 50])
    assert not is_flattened([0.1] * 10)
    assert not is_flattened([0.5, 0.3, 0.2, *[0.0] * 50])
    assert not is_flattened([])
    few = {"function": "f", "module": "m", "state": "timing", "calls": 100_000,
           "histogram": [[300, 100_000], *([bucket, 100] for bucket in range(320, 400))]}  # fmt: skip
    alike = {**few, "histogram": [[bucket, 100] for bucket in range(320, 400)]}
    assert "0.1 %" in texts(picture(few, "svg"))
    assert "0 %" in texts(picture(alike, "svg"))


def test_the_spread_is_drawn_down_the_callees(specification: Path) -> None:
    """Where it is known what a function's spread consists of, its parts and their shares are in the picture."""
    (entry,) = json.loads(specification.read_text())["functions"]
    part = {"what": "callee", "callee": "lock", "module": "m", "variance": 0.83, "excess": None, "mean_seconds": 1e-4}
    told = texts(picture({**entry, "spread": {"parts": [part]}}, "svg"))
    assert "lock" in told
    assert any(each.startswith("83 % of 100") for each in told)
    assert "lock" not in texts(picture(entry, "svg"))


def test_deciding_edges_and_behaviours_have_colours(specification: Path) -> None:
    """Without the formula nothing is orange; without histograms of behaviours the bars have one colour."""
    (entry,) = json.loads(specification.read_text())["functions"]
    assert b"#e69f00" in picture(entry, "svg")
    plain = {**entry, "behaviours": [{**each, "formula": [], "histogram": None} for each in entry["behaviours"]]}
    assert b"#d55e00" not in picture(plain, "svg")


@pytest.mark.parametrize(("name", "magic"), [("z.png", b"\x89PNG"), ("z.PDF", b"%PDF"), ("z.svg", b"<?xml")])
def test_the_name_of_the_file_says_which_kind(
    name: str, magic: bytes, specification: Path, tmp_path: Path, outcome: Outcome
) -> None:
    """And --format, where it is given."""
    code, out, _ = outcome("plot", "z", "--store", specification, "--output", tmp_path / name)
    assert (code, out) == (0, "")
    assert (tmp_path / name).read_bytes().startswith(magic)
    assert outcome("plot", "--store", specification, "--output", tmp_path / "z", "--format", "png")[0] == 0
    assert (tmp_path / "z").read_bytes().startswith(b"\x89PNG")


def test_every_state_can_be_drawn(store: Path, document: dict[str, Any], outcome: Outcome) -> None:
    """Functions without borders, paths or histogram have a picture too, and nothing warns."""
    for entry in document["functions"]:
        drawn = picture(entry, "svg").decode()
        assert not re.search(r"[ \"]nan[ \"]", drawn)
        assert picture({**entry, "histogram": None, "paths": []}, "svg").startswith(b"<?xml")
    assert outcome("plot", document["functions"][0]["function"], "--store", store)[0] == 0


def test_wrong_use_is_code_2(specification: Path, store: Path, tmp_path: Path, outcome: Outcome) -> None:
    """No such function, several, an unknown kind of picture, a folder that is not there."""
    for arguments in (
        ["nobody", "--store", specification],
        ["--store", store],
        ["--store", specification, "--output", tmp_path / "z.jpg"],
        ["--store", specification, "--output", tmp_path / "no" / "z.png"],
        ["--store", tmp_path / "missing"],
    ):
        code, out, err = outcome("plot", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), arguments


def test_names_are_drawn_as_they_are() -> None:
    """Dollar signs are no formulas, controls are escaped, markup is text, long names are cut in the middle."""
    names = ["a$x^2$b", "<b>&", "evil\x1b[31m", "n" * 100]
    entry = {"function": names[0], "paths": [{"frames": [*names, names[0] + "z"], "calls": 5}], "behaviours": []}
    shown = texts(picture(entry, "svg"))
    assert {"a$x^2$b", "<b>&", "evil\\x1b[31m"} <= set(shown)
    assert any(text.startswith("nnn") and "..." in text and len(text) < 40 for text in shown)


def test_without_matplotlib_the_extra_is_named(
    specification: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not a part of a plain installation."""
    monkeypatch.delitem(sys.modules, "specmine.cli.pictures.figure", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = outcome("plot", "--store", specification)
    assert (code, out) == (4, "")
    assert "pip install 'specmine[plot]'" in err


def test_the_picture_says_where_and_when(store: Path, document: dict[str, Any], outcome: Outcome) -> None:
    """Program, build, host and date stand below a headline that is a sentence."""
    known = {
        **document,
        "host": {"hostname": "shop-03"},
        "collection": {**document["collection"], "at": "2026-11-22T03:12:40Z"},
    }
    assert place_and_date(known) == "shop-03, 22 Nov 2026, 03:12 UTC"
    assert place_and_date({}) == ""
    entry = document["functions"][0]
    shown = texts(picture(entry, "svg", place=place_and_date(known)))
    assert any(each.endswith("shop-03, 22 Nov 2026, 03:12 UTC") for each in shown)
    assert any(re.match(r"z \(app\): .*half of the calls within \d", each) for each in shown)


def test_the_normal_time_is_drawn_behind_now(document: dict[str, Any]) -> None:
    """Where windows of both are known; without them all calls are drawn as before."""
    entry = document["functions"][0]
    sides = {
        name: {"calls": 300, "bias_seconds": 0.0, "histogram": [[bucket, 300]]}
        for name, bucket in (("normal", 300), ("now", 340))
    }
    drawn = picture(entry, "svg", known=sides)
    assert "Durations of calls: normal in grey, now in blue" in texts(drawn)
    few = {name: {**each, "calls": 10} for name, each in sides.items()}
    assert picture(entry, "svg", known=few) == picture(entry, "svg")
