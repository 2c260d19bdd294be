"""Answers within a number of bytes: lists lose their ends, and the answer says which and how to get the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from math import isfinite
from typing import Any

from tpuprof.parsers.base.record import dataclass

DIGITS = 6
"""Of a number that is no whole one."""

_LONGEST_TEXT = 300  # characters of a text in an answer that is too long otherwise
_FOR_CUT = 400  # bytes that the words on what was cut take at most
_SMALL = 100  # bytes of a value that is not left out
_MOST_NAMED = 4  # lists that these words name


def bounded(answer: Mapping[str, Any], most_bytes: int, more: str, whole: Mapping[str, int] | None = None) -> str:
    """An answer as JSON in at most so many bytes.

    Args:
        answer: what JSON can hold; its lists begin with what matters most.
        most_bytes: of the text in UTF-8, 1,000 at least.
        more: how to get what is cut.
        whole: how many there are in all of the entries of lists by key, where a list holds fewer from the start.
    """
    kept: dict[str, Any] = _each(_rounded, answer)
    lengths = _lengths(kept)
    for name, number in (whole or {}).items():
        lengths[name] = max(number, lengths.get(name, 0))
    room = most_bytes - _FOR_CUT
    _shorten_lists(kept, room // 8)
    while _size(kept) > room and (_cut_longest(kept) or _cut_texts(kept, room)):
        pass
    left = _lengths(kept)
    cut = {name: number for name, number in lengths.items() if left.get(name, 0) < number}
    cut = {name: number for name, number in cut.items() if not any(name.startswith(f"{other}[]") for other in cut)}
    if cut:
        named = sorted(cut, key=lambda name: -cut[name])[:_MOST_NAMED]
        kept["cut"] = {"lists": {name[:60]: f"{left.get(name, 0)} of {cut[name]}" for name in named}, "more": more}
    return _dumped(kept)


@dataclass(frozen=True)
class _List:
    """A list within an answer, and where it lies."""

    name: str
    items: list[Any]
    holder: MutableMapping[str, Any]
    key: str


def _lists(value: Any, name: str = "") -> Iterator[_List]:  # noqa: ANN401 - what JSON holds
    """All lists in a value, those around others first."""
    if isinstance(value, dict):
        for key, item in value.items():
            place = f"{name}.{key}" if name else key
            if isinstance(item, list):
                yield _List(place, item, value, key)
                for each in item:
                    yield from _lists(each, f"{place}[]")
            else:
                yield from _lists(item, place)


def _lengths(answer: Mapping[str, Any]) -> dict[str, int]:
    """How many entries the lists have, those of one name together."""
    lengths: dict[str, int] = {}
    for each in _lists(answer):
        lengths[each.name] = lengths.get(each.name, 0) + len(each.items)
    return lengths


def _shorten_lists(answer: Mapping[str, Any], most: int) -> None:
    """Takes from lists what can't fit in any case, for the sake of time."""
    for each in list(_lists(answer)):
        del each.items[most:]


def _cut_longest(answer: Mapping[str, Any]) -> bool:
    """Halves the list that takes most, at least two entries long; whether there was one."""
    lists = [each for each in _lists(answer) if len(each.items) > 1]
    if not lists:
        return False
    longest = max(lists, key=lambda each: _size(each.items))
    del longest.items[(len(longest.items) + 1) // 2 :]
    return True


def _cut_texts(answer: dict[str, Any], room: int) -> bool:
    """Shortens long texts, then leaves out the key that takes most; whether there was something to take."""
    short = _each(_shortened, answer)
    if short != answer:
        answer.update(short)
        return True
    largest = max(answer, key=lambda key: _size(answer[key]), default="")
    if not answer or _size(answer[largest]) <= _SMALL:
        return False
    answer[largest] = f"left out: {_size(answer[largest])} bytes are more than fit into {room}"
    return True


def _each(change: Callable[[Any], Any], value: Any) -> Any:  # noqa: ANN401 - what JSON holds
    """A value with each text and number in it changed."""
    if isinstance(value, list):
        return [_each(change, item) for item in value]
    if isinstance(value, Mapping):
        return {key: _each(change, item) for key, item in value.items()}
    return change(value)


def _shortened(value: object) -> object:
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]} (and {len(value) - _LONGEST_TEXT} more characters)"
    return value


def _rounded(value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) and isfinite(value) else value


def _size(value: object) -> int:
    return len(_dumped(value).encode("utf-8", "backslashreplace"))


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
