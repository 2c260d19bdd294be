"""Figures as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.base.words import significant
from tpuprof.tui.draw.format import age, count, duration, flop_rate, percent, size


@pytest.mark.parametrize(
    ("ps", "text"),
    [
        (None, "n/a"),
        (0, "0"),
        (1, "1.00 ps"),
        (999, "999 ps"),
        (1000, "1.00 ns"),
        (4_120_000, "4.12 µs"),
        (182_500_000_000, "182 ms"),
        (999_600_000_000, "1.00 s"),
        (1_830_000_000_000, "1.83 s"),
        (98_645_109_682_000, "98.6 s"),
        (5_000_000_000_000_000, "5000 s"),
    ],
)
def test_durations(ps: int | None, text: str) -> None:
    assert duration(ps) == text


def test_ascii_durations_are_ascii() -> None:
    assert duration(4_120_000, ascii_only=True) == "4.12 us"


@given(st.floats(1, 1e16))
def test_a_duration_reads_back_to_three_digits(ps: float) -> None:
    number, unit = duration(ps).split(" ")
    factor = {"ps": 1.0, "ns": 1e3, "µs": 1e6, "ms": 1e9, "s": 1e12}[unit]
    assert float(number) * factor == pytest.approx(ps, rel=0.0051)


@given(st.floats(0, 100))
def test_a_percentage_never_lies_about_nothing_and_everything(value: float) -> None:
    text = percent(value)
    assert (text == "0.0%") == (value == 0)
    assert (text == "100.0%") == (value == 100)
    assert abs(float(text.strip("<>%")) - value) <= 0.1


@pytest.mark.parametrize(
    ("value", "text"), [(None, "n/a"), (0, "-"), (57142.857, "57.1T"), (167.4, "167G"), (0.0001, "<1M"), (2e6, "2.00P")]
)
def test_rates(value: float | None, text: str) -> None:
    assert flop_rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (862_707, "863 KB"), (51_485_632, "51.5 MB"), (2e9, "2.00 GB")]
)
def test_sizes(value: int, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(-5, "in the future"), (3, "just now"), (300, "5 min ago"), (90000, "1 d ago")]
)
def test_ages(value: float, text: str) -> None:
    assert age(value) == text


def test_counts_and_digits() -> None:
    assert (count(None), count(132480)) == ("n/a", "132,480")
    assert [significant(x) for x in (0.0123, 1.835, 9.996, 99.96, 1234.5)] == ["0.01", "1.83", "10.0", "100", "1234"]
