"""The language that filters tables: words, regexes, bounds on self time and on any column, all of which must hold.

A text is parsed once into a filter, which makes masks over columns. The columns find their distinct texts once and keep
them; a term looks at each distinct text once, however many rows have it.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import count, islice, repeat
from operator import contains
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base import regex
from tpuprof.parsers.base.intervals import Floats, Int64s
from tpuprof.parsers.base.record import Sized, dataclass, field
from tpuprof.parsers.base.text import PYTHON_FILE, printable
from tpuprof.parsers.ops.filtering.field_term import LONGEST_NUMBER, NAMED, UNIT_PS, FieldTerm, field_term

Mask = NDArray[np.bool_]

HELP: tuple[tuple[str, str], ...] = (
    ("fusion", "rows with this in the op's name, category, framework op or program; case does not matter."),
    ("fusion jit", "terms separated by blanks must all match."),
    ('"two words"', "a text with blanks, or one that would be read as another term."),
    ("!copy", "rows that do not match a term; goes before any term."),
    ("~dot.*grad", 'a Python regex in the name or the framework op; ~"a b" for one with blanks.'),
    (">1ms", "self time over it; also <, >= and <=, in ps, ns, us, ms or s."),
    (">5%", "share of all self time over it; rows with an unknown share match neither > nor <."),
    ("cat:copy", "in the category only."),
    ("name:fusion.7", "in the op's name only."),
    ("op:attention", "in the framework op, or in the column op."),
    ("prog:jit_step", "in the program only."),
    ("bound:hbm", "in what bounds the op: compute, hbm, vmem read, unknown and so on."),
    ("src:model.py", "in the source file and line, model.py:12; a file of Python needs no src:."),
    ("hlo:gather(", "in the op's HLO text."),
    ("shape:bf16[8,", "in the shape of its result, with its layout."),
    ("hlo:~a.*b", "a regex in one of these; so name:~, cat:~, op:~, prog:~, src:~ and shape:~."),
    ("remat:yes", "ops that are computed a second time to save memory; remat:no for the others."),
    ("side:host", "where it ran: device (TensorCore or SparseCore) or host."),
    (
        "HBM>60%",
        "a column by its title (or its last word) or key in JSON, over, under or equal to a number, 1us too.",
    ),
    ("class=copy", "a column that is this text; kind:gather for one that has it, source=null for unknown."),
)
"""(example, meaning) of each kind of term."""

LONGEST_PATTERN = 200
"""Most characters of a regex."""
LONGEST_SEARCHED = 4000
"""How many characters of a text a regex sees, because the time for `a.*b` grows with the square of its length."""

Poll = Callable[[], None]
"""Is called now and then by what takes long; what it raises ends that."""

_SAMPLE = 1 << 16  # texts looked at to find out whether a column repeats itself
_LARGEST_PS = int(np.iinfo(np.int64).max)
_ANYWHERE = ("name", "category", "framework_op", "program")
PREFIXES = {
    "name": "name",
    "cat": "category",
    "op": "framework_op",
    "prog": "program",
    "bound": "bound_by",
    "src": "source",
    "hlo": "expression",
    "shape": "shape",
    "remat": "remat",
    "side": "side",
}
CHOICES = {"remat": ("yes", "no"), "side": ("TensorCore", "SparseCore", "device", "host")}
"""What may follow some prefixes; the first letters will do."""
LATER = ("source", "expression", "shape", "remat", "side")
"""Columns that are read when a filter asks for them first."""

# A quote counts only where a value begins. An open quote is a token of its own kind, to be refused with a reason.
_TOKEN = re.compile(
    rf'\s*(?P<nots>!*)(?P<lead>~|(?i:{"|".join(PREFIXES)}):~?|)(?:"(?P<quoted>[^"]*)"|(?P<open>")|(?P<bare>\S*))'
)
_BOUND = re.compile(r"(>=|<=|>|<)([0-9]*\.?[0-9]*)(.*)", re.DOTALL)


class FilterError(ValueError):
    """The text is no filter; `str` of it is one plain sentence for the prompt line."""


@dataclass(frozen=True, slots=True)
class _Texts:
    """A column as distinct texts. `codes` says which of them each row has; None where each row counts as distinct."""

    distinct: Sequence[str]
    codes: NDArray[np.int32] | None

    def rows(self, matches: Iterable[bool]) -> Mask:
        """bool[n] over rows, from one bool for each distinct text."""
        of_texts: Mask = np.fromiter(matches, np.bool_, len(self.distinct))
        return of_texts if self.codes is None else of_texts[self.codes]


def no_values(key: str) -> Sequence[Any]:
    """The values of a column where there are none by key.

    Raises:
        KeyError: always.
    """
    raise KeyError(key)


@dataclass(frozen=True, slots=True)
class OpColumns(Sized):
    """The columns that a filter looks at; every sequence has one entry for each row and must not change.

    Attributes:
        name, category, framework_op, program: texts, empty where unknown.
        bound_by: what bounds the op in lower case (``compute``, ``vmem read``), ``unknown`` where nothing is counted.
        later: returns one of the columns `LATER`; the first term that looks at it calls this once. Of what a row has
            several, such as the shapes of a framework op's HLO ops, each stands on a line of its own.
        self_ps: int64[n]; self time in picoseconds; float64[n] with NaN where it may be unknown.
        self_share: float64[n]; self time as a fraction (0-1) of the whole, NaN where unknown.
        keys, titles: of the columns that a filter can name: as JSON does, and their keys by their titles.
        values: returns one of them as JSON has it, None where a value is unknown.
    """

    sized_by = "self_ps"
    name: Sequence[str]
    category: Sequence[str]
    framework_op: Sequence[str]
    program: Sequence[str]
    bound_by: Sequence[str]
    later: Callable[[str], Sequence[str]]
    self_ps: Int64s
    self_share: Floats
    keys: Collection[str] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    values: Callable[[str], Sequence[Any]] = no_values
    _texts: dict[str, _Texts] = field(default_factory=dict, init=False, repr=False, compare=False)

    def texts(self, names: Sequence[str]) -> list[_Texts]:
        """The distinct texts of some columns, found on first use; several columns that are one object come once."""
        for name in names:
            if name not in self._texts:
                column = self._column(name)
                same = (known for known in self._texts if known not in LATER and self._column(known) is column)
                self._texts[name] = next((self._texts[known] for known in same), None) or _distinct_texts(column)
        return list({id(texts): texts for texts in (self._texts[name] for name in names)}.values())

    def _column(self, name: str) -> Sequence[str]:
        if name in LATER:
            return self.later(name)
        column: Sequence[str] = getattr(self, name)
        return column


def _distinct_texts(column: Sequence[str]) -> _Texts:
    sample = column[:: max(1, len(column) // _SAMPLE)]
    if len(set(sample)) * 2 > len(sample):  # numbering them would take longer than it saves
        return _Texts(column, None)
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(numbers.__getitem__, column), np.int32, len(column))
    return _Texts(tuple(numbers), codes)


@dataclass(frozen=True, slots=True)
class TextTerm:
    """One of some columns contains a text, whatever the case."""

    columns: tuple[str, ...]
    text: str

    def mask(self, columns: OpColumns) -> Mask:
        wanted = self.text.casefold()
        matches = np.zeros(len(columns), np.bool_)
        for texts in columns.texts(self.columns):
            matches |= texts.rows(map(contains, map(str.casefold, texts.distinct), repeat(wanted)))
        return matches


@dataclass(frozen=True, slots=True)
class RegexTerm:
    """A regex is found in one of some columns (in the first `LONGEST_SEARCHED` characters)."""

    pattern: re.Pattern[str]
    columns: tuple[str, ...] = ("name", "framework_op")

    def mask(self, columns: OpColumns, poll: Poll) -> Mask:
        """bool[n]: where the term holds.

        Raises:
            FilterError: the search takes too long.
        """
        columns_of_texts = columns.texts(self.columns)
        starts = [text[:LONGEST_SEARCHED] for texts in columns_of_texts for text in texts.distinct]
        try:
            found = iter(regex.found_in(self.pattern.pattern, starts, poll))
        except regex.SearchFailed as error:
            raise FilterError(f"the regex finds nothing: {error}") from error
        matches = np.zeros(len(columns), np.bool_)
        for texts in columns_of_texts:
            matches |= texts.rows(map(bool, islice(found, len(texts.distinct))))
        return matches


@dataclass(frozen=True, slots=True)
class TimeTerm:
    """Self time is over, under, at least or at most `bound` picoseconds; it compares exactly."""

    relation: str
    bound: Fraction

    def mask(self, columns: OpColumns) -> Mask:
        floor, ceiling = self.bound.__floor__(), self.bound.__ceil__()
        # Times are whole, so each relation is "at least so many", or is not.
        least = ceiling if self.relation in (">=", "<") else floor + 1
        times = columns.self_ps
        reached: Mask = np.zeros(len(times), np.bool_) if least > _LARGEST_PS else times >= least
        return reached if self.relation in (">", ">=") else ~reached & ~np.isnan(times)


@dataclass(frozen=True, slots=True)
class ShareTerm:
    """The share of self time is over, under, at least or at most `bound` (a fraction, not percent); never for NaN."""

    relation: str
    bound: float

    def mask(self, columns: OpColumns) -> Mask:
        compare = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[self.relation]
        return compare(columns.self_share, self.bound)


@dataclass(frozen=True, slots=True)
class Term:
    """One condition, or its opposite: a row whose share is unknown is not over 5%, so ``!>5%`` keeps it."""

    condition: TextTerm | RegexTerm | TimeTerm | ShareTerm | FieldTerm
    negated: bool = False

    def mask(self, columns: OpColumns, poll: Poll) -> Mask:
        condition = self.condition
        matches = condition.mask(columns, poll) if isinstance(condition, RegexTerm) else condition.mask(columns)
        return ~matches if self.negated else matches


@dataclass(frozen=True, slots=True)
class Filter:
    """Terms that must all hold; no terms hold everywhere."""

    terms: tuple[Term, ...]

    @property
    def takes_time(self) -> bool:
        """Whether `mask` searches in another process or reads what nobody asked for yet; no screen waits for it."""
        looked_at = ((term.condition, getattr(term.condition, "columns", ())) for term in self.terms)
        slow = (RegexTerm, FieldTerm)
        return any(isinstance(condition, slow) or not {*LATER}.isdisjoint(of) for condition, of in looked_at)

    @property
    def is_words(self) -> bool:
        """Whether it looks for words alone, without saying where."""
        return all(
            isinstance(term.condition, TextTerm) and {*_ANYWHERE} <= {*term.condition.columns} for term in self.terms
        )

    def mask(self, columns: OpColumns, poll: Poll = lambda: None) -> Mask:
        """bool[n]: rows to keep.

        Args:
            poll: called some times a second while a regex is searched for; what it raises ends the search.

        Raises:
            FilterError: a regex takes longer than `regex.SEARCH_SECONDS`.
        """
        kept = np.ones(len(columns), np.bool_)
        for term in self.terms:
            kept &= term.mask(columns, poll)
            if not kept.any():
                break
        return kept


def parse_filter(text: str, keys: Collection[str] = (), titles: Mapping[str, str] = MappingProxyType({})) -> Filter:
    """Parses a filter; `HELP` shows the language. A text of blanks alone matches everything.

    Args:
        keys, titles: of the columns that it can name (`OpColumns`).

    Raises:
        FilterError: a bound that is no time or percentage, an invalid or long regex, an open quote, a term cut short, a
            bound on a column that is not there.
    """
    for title in titles if " " in text else ():
        as_shown = re.escape(title.replace("_", " "))
        text = re.sub(rf"(?<!\S){as_shown}(?=[<>=])", title, text, flags=re.IGNORECASE)
    terms = []
    begin, end = 0, len(text.rstrip())
    while begin < end:
        named = NAMED.match(text, begin, end) if keys else None
        if named is not None and (condition := _named(named, keys, titles)) is not None:
            terms.append(Term(condition, negated=len(named["nots"]) % 2 == 1))
            begin = named.end()
            continue
        token = _TOKEN.match(text, begin, end)
        assert token is not None  # every part of the expression may be empty, and something other than blanks is left
        terms.append(Term(_condition(token), negated=len(token["nots"]) % 2 == 1))
        begin = token.end()
    return Filter(tuple(terms))


def _named(found: re.Match[str], keys: Collection[str], titles: Mapping[str, str]) -> FieldTerm | TextTerm | None:
    """The term on a column that is named by key or title; None where the text is another term."""
    prefix = PREFIXES.get(found["key"].lower())
    if found["relation"] == ":" and prefix and (column := titles.get(found["key"])) in (None, prefix, "name"):
        is_either = column == "name" != prefix and found["bare"] and not found["bare"].startswith("~")
        return TextTerm(("name", prefix), found["bare"]) if is_either else None
    try:
        return field_term(found, keys, titles)
    except ValueError as error:
        raise FilterError(str(error)) from error


def _condition(token: re.Match[str]) -> TextTerm | RegexTerm | TimeTerm | ShareTerm:
    lead = token["lead"].lower()
    if token["open"]:
        raise FilterError("a quote is open: close it")
    value: str = token["quoted"] if token["bare"] is None else token["bare"]
    if not value:
        before = lead or token["nots"]
        raise FilterError(f"something must follow {before}" if before else "there is nothing between the quotes")
    if lead == "~":
        return RegexTerm(_compiled(value))
    if lead:
        return _in_column(lead, value)
    if token["bare"] and value[0] in "<>":
        return _bound(value)
    is_file = token["bare"] and PYTHON_FILE.fullmatch(value) is not None
    return TextTerm((*_ANYWHERE, "source") if is_file else _ANYWHERE, value)


def _in_column(lead: str, value: str) -> TextTerm | RegexTerm:
    """A text or a regex in the column that a prefix names."""
    prefix, _, is_regex = lead.partition(":")
    choices, column = CHOICES.get(prefix), PREFIXES[prefix]
    if choices is None:
        return RegexTerm(_compiled(value), (column,)) if is_regex else TextTerm((column,), value)
    found = next((choice for choice in choices if choice.casefold().startswith(value.casefold())), None)
    if found is None or is_regex:
        raise FilterError(f"{prefix}: takes {', '.join(choices[:-1])} or {choices[-1]}")
    return TextTerm((column,), found)


def _compiled(pattern: str) -> re.Pattern[str]:
    if len(pattern) > LONGEST_PATTERN:
        raise FilterError(f"the regex is longer than {LONGEST_PATTERN} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubts about nested sets would be written across the screen
            return regex.compiled(pattern)
    except (re.error, ValueError, OverflowError) as error:  # also flags that don't go together, a count over 2**32
        raise FilterError(f"not a regex: {printable(str(error))}") from error
    except RecursionError as error:
        raise FilterError("the regex is nested too deeply") from error


def _bound(value: str) -> TimeTerm | ShareTerm:
    match = _BOUND.match(value)
    assert match is not None  # the number may be empty and the rest is anything
    relation, number, unit = match.groups()
    unit = unit.lower().replace("μ", "µ")  # two characters look the same: Greek mu, and the micro sign
    if number.strip(".") == "" or (unit != "%" and unit not in UNIT_PS):
        shown = printable(value if len(value) <= LONGEST_NUMBER else value[:LONGEST_NUMBER] + "…")
        raise FilterError(
            f"{shown} is not a bound: write a time ({relation}1ms), a share ({relation}5%) or quotes around it"
        )
    if len(number) > LONGEST_NUMBER:
        raise FilterError(f"the number after {relation} is too long")
    exact = _exact(number)
    if unit == "%":
        return ShareTerm(relation, float(exact / 100))
    return TimeTerm(relation, exact * UNIT_PS[unit])


def _exact(number: str) -> Fraction:
    """A decimal number without sign or exponent."""
    whole, _, decimals = number.partition(".")
    return Fraction(int(whole + decimals), 10 ** len(decimals))
