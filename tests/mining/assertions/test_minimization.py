"""Disjunctive forms: right on every pattern, and none is shorter."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from specmine.mining.assertions.minimization import Term, shortest_form


def holds(form: tuple[Term, ...], pattern: int) -> bool:
    """Return whether a pattern fulfils a form."""
    return any(pattern & mask == value for mask, value in form)


def exhaustive(width: int, wanted: set[int], unwanted: set[int]) -> tuple[int, int]:
    """Return the fewest terms, and the fewest literals with so many, over all forms there are."""
    terms = []
    for signs in product((None, 0, 1), repeat=width):
        mask = sum(1 << i for i, sign in enumerate(signs) if sign is not None)
        value = sum(1 << i for i, sign in enumerate(signs) if sign)
        if not any(p & mask == value for p in unwanted):
            terms.append((mask, value))
    for size in range(1, len(wanted) + 1):
        sizes = [
            sum(mask.bit_count() for mask, _ in form)
            for form in combinations(terms, size)
            if all(holds(form, p) for p in wanted)
        ]
        if sizes:
            return size, min(sizes)
    raise AssertionError("the patterns themselves are a form")


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.integers(0, 7), st.booleans(), min_size=1))
def test_forms_are_right_and_none_is_shorter(labels: dict[int, bool]) -> None:
    """Against all forms over three edges."""
    wanted = {p for p, label in labels.items() if label}
    unwanted = set(labels) - wanted
    form = shortest_form(3, wanted, unwanted)
    assert all(holds(form, p) for p in wanted)
    assert not any(holds(form, p) for p in unwanted)
    if wanted:
        assert (len(form), sum(mask.bit_count() for mask, _ in form)) == exhaustive(3, wanted, unwanted)
    else:
        assert form == ()


def test_presence_is_preferred_to_absence() -> None:
    """Where two edges never come together, each group is named by its own."""
    assert shortest_form(2, {0b01}, {0b10, 0b00}) == ((0b01, 0b01),)
    assert shortest_form(2, {0b00}, {0b01, 0b10}) == ((0b11, 0b00),)
    assert shortest_form(2, {0b01, 0b00, 0b10}, set()) == ((0, 0),)
