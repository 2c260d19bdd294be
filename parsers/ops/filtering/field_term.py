"""Terms of a filter that compare a column with a number or a text, and call the column what JSON calls it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable

NULL = "null"
"""What stands for an unknown value in a filter."""

"""Signs of bounds, and what they are called."""

UNIT_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "ms": 10**9, "s": 10**12}
"""Picoseconds of each unit of time."""

LONGEST_NUMBER = 40
"""Most characters of a number."""

NAMED = re.compile(
    r'\s*(?P<nots>!*)(?P<key>[A-Za-z_][\w./]*|[%#])(?P<relation>>=|<=|[<>=:])(?:"(?P<quoted>[^"]*)"|(?P<bare>[^"\s]\S*))'
)
"""A term that names a column, by its title or its key: ``HBM>60%``, ``self_time_ps>1ms``."""

_NUMBER = re.compile(r"(-?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,3})?)([a-zA-Zµμ%]{0,2})")
_KEY_UNIT = re.compile(r"_(ps|ns|us|ms|s)(?=\.|\Z)")
_UNIT = re.compile(r"_(ps|ms|percent)\Z")
_ANY_UNIT = re.compile(r"\A\W+|(_time)?_[pnum]?s\Z")
_MEANT = {
    **dict.fromkeys(("dur", "duration", "time"), ("duration", "self_time", "time_")),
    **dict.fromkeys(("count", "calls", "n"), ("occurrences", "count")),
    **dict.fromkeys(("avg", "mean"), ("average", "mean")),
    "ts": ("start",),
    "step": ("number", "step"),
}
"""How keys of columns begin here, by their names in other programs."""
_FRACTION, _MOST_FRACTION = re.compile(r"_(?:utilization|efficiency|fraction)\Z"), 2.0
"""Columns of shares of 1, and a number that none of them is compared with: 60 is meant as 60%."""
_IN_PERCENT = re.compile(r"percent(?=\.|\Z)")
"""How a key, or an object that it is in, says its unit."""

_IS = ("=", ":")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    **{">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le},
    **dict.fromkeys(_IS, operator.eq),
}
_YES = {True: "yes", False: "no"}


class HasValues(Protocol):
    """What has columns by their keys in JSON."""

    @property
    def values(self) -> Callable[[str], Sequence[Any]]:
        """Returns a column as JSON has it, None where a value is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """A column's value is over, under or equal to a number, or is or has a text. An unknown value only is `NULL`.

    Attributes:
        key: of the column in JSON.
        text: what it is compared with, as it was written.
        number: the same in the unit of the key; None where it is not a number.
    """

    key: str
    relation: str
    text: str
    number: float | None

    def mask(self, columns: HasValues) -> NDArray[np.bool_]:
        values = columns.values(self.key)
        return np.fromiter(map(self.holds, values), np.bool_, len(values))

    def holds(self, value: object) -> bool:
        """Whether the term holds of one value."""
        if value is None or self.text == NULL:
            return value is None and self.text == NULL and self.relation in _IS
        if self.number is None or isinstance(value, bool) or not isinstance(value, int | float):
            return self.relation in _IS and self._is_text(value)
        return _COMPARE[self.relation](value, self.number)

    def _is_text(self, value: object) -> bool:
        wanted, values = self.text.casefold(), value if isinstance(value, list) else [value]
        texts = [(_YES[one] if isinstance(one, bool) else str(one)).casefold() for one in values]
        return wanted in texts if self.relation == "=" else any(wanted in text for text in texts)


def meant_columns(name: str, keys: Collection[str]) -> list[str]:
    """The keys that the name of a column in another unit or another program may mean: ``total_ms``, ``dur``."""
    word = _ANY_UNIT.sub("", name.casefold())
    named = [key for key in keys if not key.endswith("_bar")]
    found = ([key for key in named if key.startswith(begin)][:3] for begin in _MEANT.get(word, (word,)))
    return next(filter(None, found), [])


def columns_called(name: str, keys: Collection[str], titles: Mapping[str, str]) -> list[str]:
    """The keys of the columns that have a name: that title, that key, that title in another case."""
    folded = next((key for title, key in titles.items() if title.casefold() == name.casefold()), None)
    named = (titles.get(name), name if name in keys else None, folded)
    return list(dict.fromkeys(key for key in named if key is not None))


def field_term(named: re.Match[str], keys: Collection[str], titles: Mapping[str, str]) -> FieldTerm | None:
    """The term that a text of the form `NAMED` is; None where it names no column and compares nothing.

    Args:
        keys: of the columns that there are. A term may leave out the unit at the end of a key, and the objects that it
            is in, or all of a title but its last word, where that fits one column.
        titles: keys of columns by their titles with ``_`` for each blank.

    Raises:
        ValueError: it compares a column that is not there, or with what is not a number or has another unit.
    """
    key, relation = named["key"], named["relation"]
    value: str = named["bare"] if named["quoted"] is None else named["quoted"]
    number = _NUMBER.fullmatch(value) if named["quoted"] is None else None
    found = columns_called(key, keys, titles)
    if not found:
        if relation == ":" or "/" in key or (number is None and relation != "="):
            return None
        ends = [of for of in keys if _UNIT.sub("", of).rpartition(".")[2] == key]
        ends = ends or [of for title, of in titles.items() if title.casefold().endswith(f"_{key.casefold()}")]
        if len(ends) != 1:
            near = ends or meant_columns(key, keys) or get_close_matches(key, [*titles, *keys], n=3, cutoff=0.5)
            raise ValueError(f"there is no column {key}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
        found = ends
    if number is None and relation not in ("=", ":"):
        raise ValueError(f"{printable(value[:LONGEST_NUMBER])} is not a number to compare {key} with")
    if number is None:
        return FieldTerm(found[0], relation, value, None)
    if not number[2] and float(number[1]) > _MOST_FRACTION and _FRACTION.search(found[0]):
        raise ValueError(f"{key} is a fraction of 1; did you mean {number[1]}%?")
    if number[2] == "%":
        found = found[::-1]  # of FLOPS and flops the one that is a share
    alike = [other for other in keys if _UNIT.sub("", other) == _UNIT.sub("", found[0])]  # in another unit
    for other in (*found, *alike):
        with suppress(ValueError):
            return FieldTerm(other, relation, value, _in_unit_of(other, number))
    raise ValueError(f"{found[0]} is not in {printable(number[2])}")


def _in_unit_of(key: str, number: re.Match[str]) -> float:
    """A number with or without a unit, in the unit of a key."""
    unit, own = number[2].lower().replace("μ", "µ"), _KEY_UNIT.search(key)
    value = int(number[1]) if number[1].lstrip("-").isdigit() else float(number[1])  # ids need all their digits
    if unit in UNIT_PS and own is not None:
        return value * UNIT_PS[unit] / UNIT_PS[own[1]]
    if unit == "%" and own is None:
        return value if _IN_PERCENT.search(key) else value / 100
    if unit:
        raise ValueError
    return value
