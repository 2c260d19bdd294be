"""Answers in at most so many bytes: tables lose their last rows, and the answer says how many, and how to get them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import Any

from tpuprof.parsers.base.text import counted, printable
from tpuprof.tui.report.json import COUNTS, HEAD, laid_out, left_out
from tpuprof.tui.report.output import Made, whole
from tpuprof.tui.report.page import OF_PEOPLE, WITH_KEYS

LEAST_ROW = 20
"""Bytes of the shortest row: more rows than fit need not be made."""

_LARGE_ROW = 100  # bytes: more rows of so many surely do not fit
_FILLED = 0.95  # of the room, by the rows that are tried
_LONGEST_TEXT = 300  # characters of a text in an object that is too long otherwise
_SMALL = 100  # bytes that are not left out: of a value, of the end of a text
_KEPT = ("run.hosts", "warnings")  # lists that keep an entry
_MOST_NAMED = 8  # lists whose rows an object counts


def fitting(make: Callable[[int | None], Made], rows: int, most_bytes: int) -> tuple[str, bool]:
    """A page of text with as many rows as fit, and whether that is less than all of it.

    Args:
        make: makes the page with so many rows of its tables, of all (None).
        rows: how many the longest table has.

    Returns:
        At least the first row, although it may not fit.
    """
    limit, is_whole = min(most_bytes // LEAST_ROW, rows or most_bytes), rows <= most_bytes // _LARGE_ROW
    text = whole(make(None if is_whole else limit))
    while (size := _size(text)) > most_bytes and limit > 1:
        limit, is_whole = max(int(_FILLED * limit * most_bytes / size), 1), False
        text = whole(make(limit))
    return text, not is_whole


def bounded(text: str, form: str, most_bytes: int, rest: str) -> tuple[str, str]:
    """A report in at most so many bytes, and a sentence on what is left out; empty where nothing is.

    Args:
        form: ``json``, which keeps the first rows of its lists, ``csv`` or one of text, which keep their first lines.
        most_bytes: of the text in UTF-8, 1,000 at least.
        rest: how to get what is left out.
    """
    if _size(text) <= most_bytes:
        return text, ""
    if form in WITH_KEYS:
        return bounded_json(json.loads(text), most_bytes, rest), sentence("rows", most_bytes, rest)
    is_text, lines = form in OF_PEOPLE, text.removesuffix("\n").split("\n")
    room = most_bytes - (_size(said(sentence(f"{len(lines):,} lines", most_bytes, rest))) if is_text else 0)
    kept = max(sum(end <= room for end in accumulate(_size(line) + 1 for line in lines)), 1)
    left = sentence(counted(len(lines) - kept, "line" if is_text else "row"), most_bytes, rest)
    return "\n".join(lines[:kept]) + "\n" + (said(left) if is_text else ""), left


def sentence(what: str, most_bytes: int, rest: str) -> str:
    """That something is left out, why, and how to get it."""
    return f"left out to fit {most_bytes:,} bytes: {what}; to print all: {rest}"


def said(words: str) -> str:
    """The last line of a text that is cut."""
    return f"\n{printable(words)}\n"


def bounded_json(
    document: dict[str, Any], most_bytes: int, rest: str, write: Callable[[Mapping[str, Any]], str] = laid_out
) -> str:
    """An object as JSON in at most so many bytes: `all_rows` and `left_out_rows` count what its lists lack.

    Args:
        document: what JSON can hold, which is changed; its lists begin with what matters most.
        rest: how to get what is left out, for `next`.
        write: makes the text.
    """
    text = write(document)
    if _size(text) <= most_bytes:
        return text
    is_by_list = isinstance(document.get("all_rows"), dict)
    earlier = {key: document.pop(key) for key in COUNTS if is_by_list}
    every = {**_lengths(document), **earlier.get("all_rows", {})}
    _shorten(document, most_bytes // 8)
    while True:
        if isinstance(why := document.get("unknown"), dict):
            nulls = set(_nulls(document))
            document["unknown"] = {key: reason for key, reason in why.items() if key in nulls}
        text = write(_with_counts(document, every, rest))
        over = _size(text) - most_bytes
        if over <= 0 or not any(cut(document, over) for cut in (_cut_longest, _cut_texts, _empty_list, _leave_out)):
            return text


def _with_counts(document: Mapping[str, Any], every: Mapping[str, int], rest: str) -> dict[str, Any]:
    """The object with how many rows are left out: one of rows in its own counts, any other by list."""
    here = _lengths(document)
    fewer = {name: number for name, number in every.items() if here.get(name, 0) < number}
    fewer = {name: number for name, number in fewer.items() if not any(name.startswith(f"{one}[]") for one in fewer)}
    named = sorted(fewer, key=lambda name: (name.count("[]") + name.count("."), -fewer[name]))[:_MOST_NAMED]
    if not isinstance(document.get("matching_rows"), int):
        counts = left_out({name: (fewer[name], here.get(name, 0)) for name in named}, rest)
        return {**{key: document[key] for key in HEAD if key in document}, **counts, **document}
    others = [f"{here.get(name, 0):,} of {fewer[name]:,} {name} are here" for name in named if name != "rows"]
    more = {"warnings": [*document.get("warnings", ()), *others]} if others else {}
    left = document["matching_rows"] - here.get("rows", 0)
    return {**document, **more, "left_out_rows": left, **({"next": rest} if left else {})}


def _lists(value: Any, name: str = "") -> Iterator[tuple[str, list[Any]]]:  # noqa: ANN401 - what JSON holds
    """All lists in a value with their keys, those around others first."""
    if isinstance(value, dict):
        for key, item in value.items():
            place = f"{name}.{key}" if name else key
            if isinstance(item, list):
                yield place, item
                for each in item:
                    yield from _lists(each, f"{place}[]")
            else:
                yield from _lists(item, place)


def _nulls(value: Any, place: str = "") -> Iterator[str]:  # noqa: ANN401 - what JSON holds
    """Where something is null, as `unknown` names it: of a tree the lists of children have one name on all levels."""
    if isinstance(value, dict):
        for key, item in value.items():
            is_same = place.rpartition(".")[2] == f"{key}[]"
            yield from _nulls(item, place.removesuffix("[]") if is_same else f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for item in value:
            yield from _nulls(item, f"{place}[]")
    elif value is None:
        yield place


def _lengths(document: Mapping[str, Any]) -> dict[str, int]:
    """How many entries the lists have, those of one name together."""
    lengths: dict[str, int] = {}
    for name, items in _lists(document):
        lengths[name] = lengths.get(name, 0) + len(items)
    return lengths


def _shorten(document: dict[str, Any], most: int) -> None:
    """Takes from lists what can't fit in any case, for the sake of time, and from texts, for the sake of lists."""
    for _, items in list(_lists(document)):
        del items[most:]
    document.update(changed(partial(_shortened, most=most), document))


def _cut_longest(document: Mapping[str, Any], over: int) -> bool:
    """Takes so many bytes from the list that has most, at most half of its entries; whether there was one of two."""
    longest = max((items for _, items in _lists(document) if len(items) > 1), key=_size_of, default=[])
    least, taken = max(len(longest) // 2, 1), 0
    while len(longest) > least and taken < over:
        taken += _size_of(longest.pop())
    return taken > 0


def _cut_texts(document: dict[str, Any], _: int) -> bool:
    """Shortens long texts; whether there were any."""
    short = changed(partial(_shortened, most=_LONGEST_TEXT), document)
    is_shorter: bool = short != document
    document.update(short)
    return is_shorter


def _empty_list(document: Mapping[str, Any], _: int) -> bool:
    """Takes the last entry of a list, of those that are deepest within others the largest; whether there was one."""
    lists = [(name.count("[]"), items) for name, items in _lists(document) if items and name not in _KEPT]
    _, last = max(lists, key=lambda each: (each[0], _size_of(each[1])), default=(0, []))
    last.clear()
    return bool(lists)


def _leave_out(document: dict[str, Any], _: int) -> bool:
    """Leaves out the value that takes most; whether there was a large one."""
    largest = max(document, key=lambda key: _size_of(document[key]), default="")
    size = _size_of(document.get(largest))
    if size > _SMALL:
        document[largest] = f"left out: {size:,} bytes"
    return size > _SMALL


def changed(change: Callable[[Any], Any], value: Any) -> Any:  # noqa: ANN401 - what JSON holds
    """A value with each text and number in it changed."""
    if isinstance(value, list):
        return [changed(change, item) for item in value]
    if isinstance(value, Mapping):
        return {key: changed(change, item) for key, item in value.items()}
    return change(value)


def _shortened(value: object, most: int) -> object:
    if isinstance(value, str) and len(value) > most + _SMALL:
        return f"{value[:most]} (and {len(value) - most} more characters)"
    return value


def _size_of(value: object) -> int:
    return _size(compact(value))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))


def compact(value: object) -> str:
    """A value as JSON on one line, without gaps."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
