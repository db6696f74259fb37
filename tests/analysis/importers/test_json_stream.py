"""JSON read piece by piece."""

from __future__ import annotations

import io
import json

import pytest

from specmine.analysis.importers.records import Faults
from specmine.model.errors import InputError


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


def test_a_text_without_the_array_is_of_another_kind() -> None:
    """Said with what is missing; an empty array, and an empty text, are no mistake."""
    from specmine.analysis.importers.json_stream import elements  # noqa: PLC0415

    with pytest.raises(InputError, match=r"d\.csv holds no array resourceSpans"):
        list(elements(io.BytesIO(b"function,duration_ns\nf,1\n"), "resourceSpans", Faults("d.csv")))
    for text in (b'{"resourceSpans": []}', b"", b"\n"):
        assert not list(elements(io.BytesIO(text), "resourceSpans", Faults("f")))
