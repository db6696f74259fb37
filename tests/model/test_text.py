"""Numbers, durations and foreign names as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.model.text import (
    age,
    cells,
    count,
    duration,
    duration_range,
    escaped,
    listed,
    plural,
    rate,
    share,
    shortened,
    size,
    three_digits,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (4.4e-8, "44 ns"),
        (9.996e-7, "1.0 us"),
        (6.1e-05, "61 us"),
        (9.96e-6, "10 us"),
        (1.04e-4, "104 us"),
        (0.0042, "4.2 ms"),
        (0.9996, "1.0 s"),
        (120.0, "120 s"),
        (4000.0, "4,000 s"),
    ],
)
def test_durations_have_two_or_three_digits(seconds: float, text: str) -> None:
    """A duration is written in the unit in which it has two or three digits."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (4.4e-8, "44 ns"),
        (3.02e-5, "30.2 us"),
        (5.4e-5, "54 us"),
        (1.6e-4, "160 us"),
        (9.999e-6, "10 us"),
        (9.9996e-4, "1 ms"),
        (1.91e-3, "1.91 ms"),
        (4000.0, "4,000 s"),
    ],
)
def test_observed_durations_have_at_most_three_digits(seconds: float, text: str) -> None:
    """Zeros after the point say nothing and are left out."""
    assert three_digits(seconds) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (72e-6, 80e-6, "72-80 us"),
        (35.1e-6, 37.9e-6, "35.1-37.9 us"),
        (9.4e-6, 10.3e-6, "9.4-10.3 us"),
        (0.76e-3, 0.88e-3, "760-880 us"),
        (0.76e-3, 1.21e-3, "0.76-1.21 ms"),
        (3.9e-6, 4.3e-6, "3.9-4.3 us"),
        (990e-9, 1.01e-6, "0.99-1.01 us"),
        (120e-9, 140e-9, "120-140 ns"),
        (0.0, 40e-9, "0-40 ns"),
        (5e-6, 5e-6, "5.00 us"),
        (900.0, 1200.0, "900-1200 s"),
    ],
)
def test_ranges_have_one_unit(low: float, high: float, text: str) -> None:
    """Both ends in the unit of the larger one, told apart."""
    assert duration_range(low, high) == text


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (0.0, "0 %"), (1e-5, "<0.1 %"), (0.003, "0.3 %"), (0.02, "2 %"), (0.6, "60 %"),
        (0.991, "99.1 %"), (0.99999, ">99.9 %"), (1.0, "100 %"),
    ],
)  # fmt: skip
def test_shares_between_none_and_all_look_like_neither(part: float, text: str) -> None:
    """Only 0 is written 0 % and only 1 is written 100 %."""
    assert share(part) == text


@given(st.floats(0, 1))
def test_only_all_is_100_per_cent(part: float) -> None:
    """No share but all of it reads 100 %, none but nothing reads 0 %."""
    assert (share(part) == "100 %") == (part == 1)
    assert (share(part) == "0 %") == (part == 0)


@given(st.floats(1e-9, 1e5), st.floats(1e-9, 1e5))
def test_longer_durations_never_read_shorter(one: float, other: float) -> None:
    """The order of durations survives their being written."""
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}

    def read(text: str) -> float:
        number, unit = text.split()
        return float(number.replace(",", "")) * units[unit]

    low, high = sorted((one, other))
    assert read(duration(low)) <= read(duration(high)) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (40.1, "40 s"), (200, "3 min 20 s"), (7200, "2 h"), (7500, "2 h 5 min"), (90000, "1 d 1 h")],
)
def test_ages(seconds: float, text: str) -> None:
    """How long something took is written in its two largest units."""
    assert age(seconds) == text


def test_counts_rates_sizes_and_lists() -> None:
    """Thousands are separated, slow rates keep a decimal, sizes are binary, lists read as a sentence."""
    assert (count(91234), rate(2280.9), rate(0.5), rate(0)) == ("91,234", "2,281", "0.5", "0")
    assert (size(10), size(1 << 20)) == ("10 B", "1.0 MiB")
    assert (plural(1, "call"), plural(2700, "call")) == ("1 call", "2,700 calls")
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("line\nbreak\t", "line\\x0abreak\\x09"),
        ("\u202eevil", "\\u202eevil"),
        ("\u2028", "\\u2028"),
        ("\x9b31m", "\\x9b31m"),
        ("\udc80", "\\udc80"),
        ("größe::λ", "größe::λ"),
    ],
)
def test_what_steers_a_terminal_is_escaped(hostile: str, shown: str) -> None:
    """Controls, changes of the writing direction and broken text become escapes; letters stay."""
    assert escaped(hostile) == shown


@given(st.text())
def test_escaped_text_is_printable(text: str) -> None:
    """Nothing that is escaped can end a line or steer a terminal."""
    assert all(each.isprintable() or each.isspace() for each in escaped(text))
    assert "\x1b" not in escaped(text)
    assert len(escaped(text).splitlines()) <= 1


def test_wide_letters_fill_two_cells() -> None:
    """Columns are counted as a terminal fills them."""
    assert (cells("abc"), cells("函数"), cells("e\u0301")) == (3, 4, 1)


LONG = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("short<int>(int)", "short<int>(int)"),
        (f"shop::Basket<{LONG}>::total(int) const", "shop::Basket<...>::total(int) const"),
        (f"a_function_of_many_parameters_with_a_long_name({LONG}, {LONG})",
         "a_function_of_many_parameters_with_a_long_name(...)"),
        (f"std::ostream& shop::operator<<<{LONG}>(std::ostream&, int)",
         "std::ostream& shop::operator<<<...>(std::ostream&, int)"),
        (f"bool shop::operator<({LONG} const&, int)", "bool shop::operator<(...)"),
        (f"shop::each<{LONG}>::operator()(int) const", "shop::each<...>::operator()(int) const"),
        (f"<alloc::vec::Vec<{LONG}> as core::ops::drop::Drop>::drop",
         f"<alloc::vec::Vec<{LONG}> as core::ops::drop::Drop>::drop"),
        ("a" * 200, "a" * 200),
        ("<" * 100, "<" * 100),
        (")" * 100, ")" * 100),
    ],
)  # fmt: skip
def test_long_template_names_are_shortened_for_reading(name: str, text: str) -> None:
    """What stands in the outermost brackets goes, the parameters only if that is not enough."""
    assert shortened(name) == text


@given(st.text("ab<>()-:, operator", max_size=120))
def test_shortening_never_lengthens(name: str) -> None:
    """Whatever brackets a name has, it becomes no longer, and one that fits stays."""
    assert len(shortened(name)) <= len(name)
    assert len(name) > 60 or shortened(name) == name
