"""Inflating in steps, within a bound."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.files.inflate import Inflation, inflated

PLENTY = 1 << 20


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[begin : begin + size] for begin in range(0, len(data), size))


@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 50), st.integers(1, 50))
def test_all_of_it_in_steps(parts: list[bytes], size: int, step: int) -> None:
    pieces = list(inflated(chunks(b"".join(map(gzip.compress, parts)), size), PLENTY, step))
    assert b"".join(pieces) == b"".join(parts) and all(0 < len(piece) <= step for piece in pieces)


def test_nothing_is_read_before_it_is_asked_for() -> None:
    taken: list[int] = []
    bomb = gzip.compress(bytes(50_000_000), mtime=0)

    def watched() -> Iterator[bytes]:
        for chunk in chunks(bomb, 1000):
            taken.append(len(chunk))
            yield chunk

    assert len(next(inflated(watched(), PLENTY, 64))) == 64
    assert len(taken) == 1


def test_no_more_than_the_bound() -> None:
    given: list[bytes] = []
    with pytest.raises(Inflation) as stopped:
        given.extend(inflated(chunks(gzip.compress(bytes(1_000_000), mtime=0), 100), 5_000, 999))
    assert stopped.value.stop == "too_large" and stopped.value.given == 5_000


@pytest.mark.parametrize(
    ("data", "stop"),
    [
        (gzip.compress(b"abc" * 1000, mtime=0)[:-9], "cut"),
        (gzip.compress(b"abc" * 1000, mtime=0)[:20] + b"\xff" * 30, "damaged"),
        (gzip.compress(b"abc", mtime=0) + b"\x1f\x8b\x00\x00\x00\x00", "damaged"),
        (b"no gzip at all", "damaged"),
    ],
)
def test_a_stream_that_breaks_says_how(data: bytes, stop: str) -> None:
    with pytest.raises(Inflation) as stopped:
        list(inflated(chunks(data, 7), PLENTY))
    assert stopped.value.stop == stop


def test_padding_behind_the_last_member_is_left_alone() -> None:
    assert b"".join(inflated([gzip.compress(b"abc", mtime=0), bytes(512)], PLENTY)) == b"abc"
    assert list(inflated([], PLENTY)) == []
