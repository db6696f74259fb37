"""``specmine violations`` and ``specmine acknowledge`` on a store."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from specmine.model.function import Function
from specmine.model.violation import Direction, ViolationState
from specmine.store import Build, Document, Host, StoredViolation, Writes, open_store, stored
from tests.support.violations import SECOND, violation

Outcome = Callable[..., tuple[int, str, str]]
UTC = 1_795_305_600 * SECOND
CHECKSUM, LOAD, RENDER = (
    Function(build_id="ab", offset=offset, name=name, module="shop", in_program=True)
    for offset, name in ((16, "checksum"), (32, "load"), (48, "render"))
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with a cause, its consequence, something faster, and one that closed."""
    path = tmp_path / "s.db"
    cause = violation(CHECKSUM.key)
    through = replace(violation(LOAD.key, found_ns=155 * SECOND, expression="db_get->load"), because=CHECKSUM.key)
    faster = violation(RENDER.key, direction=Direction.FASTER, factor=0.8)
    closed = violation(RENDER.key, found_ns=SECOND).closed(ViolationState.RECOVERED, 60 * SECOND)
    with open_store(path) as opened:
        host = Host(boot_id="boot", hostname="shop-03", utc_offset_ns=UTC, facts={})
        build = Build(build_id="ab", label="v2.5.0")
        records = (stored(each, UTC) for each in (cause, through, faster, closed))
        opened.write(Writes((host, build, CHECKSUM, LOAD, RENDER, *records)), 1)
    return path


def test_causes_come_with_their_consequences(store: Path, outcome: Outcome) -> None:
    """One entry a cause; exit code 1 while something is slower."""
    code, out, _ = outcome("violations", "--store", str(store))
    lines = out.splitlines()
    assert code == 1
    assert lines[0].split() == ["SINCE", "FUNCTION", "WHAT", "CAUSE"]
    assert lines[1].split()[:2] == ["00:01:40", "checksum"] and lines[1].endswith("load, likely")
    assert "load" in lines[2] and "when called by db_get" in lines[2]
    assert any(line.endswith("slower only through the one above") for line in lines)
    assert any("render (shop)" in line and "faster" in line for line in lines)
    assert "1 more closed: --all" in lines


def test_what_is_next_is_a_cause_that_is_slower(store: Path, outcome: Outcome) -> None:
    """Neither the newest consequence nor something faster, though these began later."""
    known = (
        replace(violation(LOAD.key, found_ns=170 * SECOND), because=CHECKSUM.key, since_ns=165 * SECOND),
        replace(violation(RENDER.key, found_ns=170 * SECOND, direction=Direction.FASTER), since_ns=160 * SECOND),
    )
    with open_store(store) as opened:
        opened.write(Writes(tuple(stored(each, UTC) for each in known)), 2)
    _, out, _ = outcome("violations", "--store", str(store))
    assert out.splitlines()[-1] == "Next: specmine violations checksum"


def test_one_function_in_full(store: Path, outcome: Outcome) -> None:
    """Now beside normal, where, when, why, and what is slower through it."""
    code, out, _ = outcome("violations", "checksum", "--store", str(store))
    assert code == 1
    assert out.splitlines()[0].startswith("checksum (shop)") and out.splitlines()[0].endswith("open")
    for part in ("NOW", "NORMAL", "median", "p99", "all its calls", "found 00:02:34", "702 calls/s", "the same build"):
        assert part in out
    assert "also    load" in out
    assert "acknowledge checksum" in out


def test_json_has_the_fields_of_the_contract(store: Path, outcome: Outcome) -> None:
    """What, direction, factor, expected, observed, cause with evidence, since, state."""
    _, out, _ = outcome("violations", "--store", str(store), "--format", "json")
    document = json.loads(out)
    assert (document["schema"], document["host"]) == ("specmine.violations/1", "shop-03")
    cause = next(each for each in document["violations"] if each["function"] == "checksum")
    assert (cause["what"], cause["direction"], cause["factor"], cause["quantile"]) == ("level", "slower", 2.1, "p50")
    assert set(cause["expected"]["p50"]) == {"seconds", "low", "high"}
    assert cause["observed"]["p50"]["seconds"] == pytest.approx(159.6e-6)
    assert cause["cause"]["kind"] == "load"
    assert cause["cause"]["evidence"]["load"] == {"changed": True, "text": "702 calls/s, usually 351"}
    assert (cause["since"], cause["found"]) == ("2026-11-22T00:01:40.000Z", "2026-11-22T00:02:34.000Z")
    assert cause["because"] is None and [each["function"] for each in cause["explains"]] == ["load"]
    assert cause["state"] == "open"
    through = next(each for each in document["violations"] if each["function"] == "load")
    assert through["because"]["function"] == "checksum"


def test_all_shows_what_closed(store: Path, outcome: Outcome) -> None:
    """With --all also those that recovered."""
    _, out, _ = outcome("violations", "--all", "--store", str(store), "--format", "json")
    assert [each["state"] for each in json.loads(out)["violations"]] == ["open"] * 3 + ["recovered"]


def test_nothing_open_is_exit_0(store: Path, outcome: Outcome) -> None:
    """A function that is only faster is no problem; another program has none."""
    assert outcome("violations", "render", "--store", str(store))[0] == 0
    code, out, _ = outcome("violations", "--program", "other", "--store", str(store))
    assert (code, out) == (0, "No violation is open.\n")


def test_acknowledging_in_a_store_closes(store: Path, outcome: Outcome) -> None:
    """Who, why and when are stored; what is not there is an error."""
    code, out, _ = outcome("acknowledge", "checksum", "--comment", "gzip is wanted", "--store", str(store))
    assert code == 0 and "acknowledged: gzip is wanted" in out
    with open_store(store, read_only=True) as opened:
        states = {
            each.function: each for each in opened.read(StoredViolation) if each.closed_utc_ns != UTC + 60 * SECOND
        }
    found = states[CHECKSUM.key].violation
    assert (found.state, found.comment) == (ViolationState.ACKNOWLEDGED, "gzip is wanted")
    assert found.closed_by and found.closed_ns is not None
    assert states[LOAD.key].state is ViolationState.ACKNOWLEDGED, "it is slower only through checksum"
    code, _, error = outcome("acknowledge", "checksum", "--store", str(store))
    assert code == 2 and "checksum" in error


def test_what_is_open_is_named_where_nothing_is_of_the_function(store: Path, outcome: Outcome) -> None:
    """Whoever misspells a name learns what there is to acknowledge: violations too, not only alarms."""
    code, out, error = outcome("acknowledge", "nosuch", "--store", store)
    assert (code, out) == (2, "")
    named = "open are: checksum, load and render"
    assert error == f"specmine: no open violation or alarm is of nosuch; {named}\n"
    _, _, error = outcome("acknowledge", "checksum", "--undo", "--store", store)
    assert error == "specmine: no alarm that is acknowledged is of checksum; nothing is acknowledged\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_name_that_no_function_has_is_2(form: str, store: Path, outcome: Outcome) -> None:
    """A misspelt name is no proof that nothing is slower; a function that is known and fine is."""
    entries = [{"function": name, "module": "shop", "build_id": "ab"} for name in ("checksum", "parse")]
    specification = {"schema": "specmine.specification/1", "functions": entries}
    with open_store(store) as opened:
        opened.write(Writes((Document(name="specification", document=specification),)), 2)
    code, out, error = outcome("violations", "pars", "--store", store, "--format", form)
    assert (code, out) == (2, "")
    assert error == "specmine: no function matches pars; did you mean parse; see `specmine functions`\n"
    assert outcome("violations", "parse", "--store", store, "--format", form)[0] == 0


def test_without_a_specification_no_function_is_known(store: Path, outcome: Outcome) -> None:
    """A store of violations alone knows the functions of these."""
    code, _, error = outcome("violations", "nosuch", "--store", store)
    assert code == 2 and error.startswith("specmine: no function matches nosuch")


def test_a_build_is_named_by_label_or_digits(store: Path, outcome: Outcome) -> None:
    """Wherever a function is named, its build may be: by its label as by its id."""
    for build in ("v2.5.0", "ab"):
        code, out, _ = outcome("violations", "--build", build, "--store", store)
        assert code == 1 and "checksum" in out
    code, _, error = outcome("violations", "--build", "v9", "--store", store)
    assert code in (2, 3) and error.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [(("--program", "other"), 2), (("--build", "v9"), 2), (("--program", "shop", "--build", "v2.5.0"), 0)],
)
def test_only_of_a_program_and_build(options: tuple[str, ...], code: int, store: Path, outcome: Outcome) -> None:
    """What is of another program or build is not acknowledged."""
    assert outcome("acknowledge", "checksum", *options, "--store", store)[0] == code
    with open_store(store, read_only=True) as opened:
        known = {each.function: each.state for each in opened.read(StoredViolation) if each.function == CHECKSUM.key}
    assert known == {CHECKSUM.key: ViolationState.OPEN if code else ViolationState.ACKNOWLEDGED}


def test_the_status_has_what_is_open(store: Path, outcome: Outcome) -> None:
    """The JSON of a status begins where its text does: with what is wrong."""
    with open_store(store) as opened:
        document = {"schema": "specmine.specification/1", "functions": []}
        opened.write(Writes((Document(name="specification", document=document),)), 2)
    code, out, _ = outcome("status", "--store", store, "--format", "json")
    listed = json.loads(outcome("violations", "--store", store, "--format", "json")[1])
    assert code == 1 and json.loads(out)["violations"] == listed["violations"]
