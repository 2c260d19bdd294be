"""Words for a filter that is being typed: what a word may become, and what is nearest to one that keeps no row."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tpuprof.parsers.base.text import alike, beginning, nearest, printable, words_of
from tpuprof.parsers.ops.filtering import filter as terms
from tpuprof.parsers.ops.filtering.field_term import FieldTerm, columns_called

_VALUE = re.compile(r"([A-Za-z_][\w./]*|[%#])([=:])(.*)")
_MOST_TEXTS = 4_000  # of a column
_OF_TEXTS = ("name", "category", "framework_op", "program", "bound_by")


def completions(begun: str, columns: terms.OpColumns) -> Sequence[str]:
    """What a word that is begun may become: a prefix, a column or a value of one, else a word of the rows."""
    prefix, colon, rest = begun.partition(":")
    if colon and prefix in terms.CHOICES:
        return beginning(rest, terms.CHOICES[prefix], f"{prefix}:")
    if colon and terms.PREFIXES.get(prefix) in _OF_TEXTS:
        return beginning(rest, _words(columns, (terms.PREFIXES[prefix],)), f"{prefix}:")
    if (value := _VALUE.fullmatch(begun)) and (keys := columns_called(value[1], columns.keys, columns.titles)):
        texts = {text: None for text in columns.values(keys[0])[:_MOST_TEXTS] if isinstance(text, str)}
        words = [f'"{text}"' if " " in text else text for text in texts]
        return beginning(value[3], words, value[1] + value[2])
    named = [f"{prefix}:" for prefix in terms.PREFIXES]
    found = beginning(begun, [*columns.titles, *named, *columns.keys])
    return found if found or not begun else beginning(begun, _words(columns, _OF_TEXTS))


def _words(columns: terms.OpColumns, names: Sequence[str]) -> list[str]:
    """The words of some columns, those of most texts first."""
    return words_of(text for column in columns.texts(names) for text in column.distinct[:_MOST_TEXTS])


def nearest_filter(text: str, columns: terms.OpColumns) -> str:
    """The filter nearest to one that keeps no row: its first term that keeps none by itself made one that keeps some.

    Where each term keeps some rows by itself, the text without the last of those that together keep none. Empty where
    nothing is near, and for what would take long.
    """
    try:
        asked = terms.parse_filter(text, columns.keys, columns.titles)
        if asked.takes_time and any(not isinstance(term.condition, FieldTerm) for term in asked.terms):
            return ""
        for term in asked.terms:
            if not terms.Filter((term,)).mask(columns).any():
                return _near(term, columns)
        for place in range(len(asked.terms) - 1, 0, -1):
            if terms.Filter(asked.terms[:place]).mask(columns).any():
                return printable(" ".join(text.split()[:place])) if len(text.split()) == len(asked.terms) else ""
    except terms.FilterError:
        pass
    return ""


def _near(term: terms.Term, columns: terms.OpColumns) -> str:
    """A term like one that holds nowhere, which holds somewhere; empty where there is none like it."""
    condition = term.condition
    if term.negated:
        return ""
    if isinstance(condition, terms.TextTerm):
        names = [name for name in condition.columns if name in _OF_TEXTS]
        near = alike(condition.text, _words(columns, names) if names else ())
        lead = next((f"{lead}:" for lead, name in terms.PREFIXES.items() if condition.columns == (name,)), "")
        return printable(lead) + near if near else ""
    if isinstance(condition, terms.TimeTerm) and len(columns):
        extreme = columns.self_ps.max() if ">" in condition.relation else columns.self_ps.min()
        return f"{condition.relation[0]}={int(extreme)}ps"
    if isinstance(condition, terms.ShareTerm):
        known = columns.self_share[columns.self_share == columns.self_share]  # those that are no NaN
        if len(known):
            return f"{condition.relation[0]}={100 * (known.max() if '>' in condition.relation else known.min()):.3g}%"
    return _near_value(condition, columns) if isinstance(condition, FieldTerm) else ""


def _near_value(condition: FieldTerm, columns: terms.OpColumns) -> str:
    """A bound that the largest or smallest value of a column reaches, or the text of it that is most alike."""
    values = [value for value in columns.values(condition.key) if value is not None]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if condition.relation in (">", ">=", "<", "<=") and numbers:
        extreme = max(numbers) if ">" in condition.relation else min(numbers)
        return f"{condition.key}{condition.relation[0]}={extreme:g}"
    texts = sorted({value for value in values if isinstance(value, str)})
    near = nearest(str(condition.text), texts, 1)
    return printable(f"{condition.key}={near[0]}") if near else ""
