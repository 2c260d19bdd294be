"""What a call requires of a page's figures, ``mfu>40%``: in the language of filters, over the keys of its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import nearest, printable
from tpuprof.parsers.ops.filtering.field_term import NAMED, NULL, FieldTerm, field_term
from tpuprof.tui.report.describe import described
from tpuprof.tui.report.fields import NO_REASON
from tpuprof.tui.report.page import Check, Report, ReportRequest

_PART = re.compile(r'(?:"[^"]*"|[^,"])+')  # between commas that stand in no quotes
_UNIT = re.compile(r"_(?:ps|ms|percent)(?=\.|\Z)")


def required(
    texts: Sequence[str], report: Report[Any], content: object, beside: Sequence[Report[Any]], asked: ReportRequest
) -> list[Check]:
    """Checks requirements, of which a text may have several, separated by commas.

    A key may be written without what stands before its dots, and without its unit: ``mfu`` is ``mfu_percent``.

    Args:
        report, content: the page and what was read of it; beside: pages that are read if a key is theirs alone.

    Raises:
        ProfileError: one is no requirement, or its key is none or several; the hint has the nearest.
    """
    asked = replace(asked, form="json", limit=1, keys=None)
    reports = (*beside, report)
    pages = {
        each.key: n for n, of in enumerate(reports) for each in described(of) if each.json and "[]" not in each.key
    }

    @cache
    def document(number: int) -> dict[str, Any]:
        of = reports[number]
        text = of.writers["json"](content if of is report else of.read(replace(asked, options={})), asked)
        assert isinstance(text, str), "declared pages make JSON whole"
        made: dict[str, Any] = json.loads(text)
        return made

    terms = [_term(part.strip(), [*pages]) for text in texts for part in _PART.findall(text)]
    return [_check(text, of, document(pages[of.key])) for text, of in terms]


def _term(text: str, keys: Sequence[str]) -> tuple[str, FieldTerm]:
    """A requirement as it was written, and its term with the whole key."""
    found = NAMED.fullmatch(text)
    if found is None:
        raise _refused(f"{printable(text)!r} is not a requirement", "mfu>40%")
    given, rest = found["key"], text[found.end("key") :]
    fits = [key for key in keys if any(f".{of}".endswith(f".{given}") for of in (key, _UNIT.sub("", key)))]
    if len(fits) != 1 and given not in fits:
        trouble = "is the end of several keys" if fits else "is not a key of the page"
        short = {_UNIT.sub("", key).rpartition(".")[2]: key for key in keys}
        near = fits or [short.get(key, key) for key in nearest(given, [*short, *keys])]
        raise _refused(f"{given} {trouble}", "' or '".join(f"{key}{rest}" for key in dict.fromkeys(near)))
    named = NAMED.fullmatch(f"{given if given in fits else fits[0]}{rest}")
    try:
        term = None if named is None else field_term(named, fits)
    except ValueError as error:
        raise _refused(str(error), f"{given}>40") from error
    assert term is not None, "another key makes it no other term"
    return text, term


def _check(text: str, term: FieldTerm, document: dict[str, Any]) -> Check:
    value: Any = document
    for name in term.key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if value is None and term.text != NULL:
        keys = [term.key.rsplit(".", cut)[0] for cut in range(term.key.count(".") + 1)]
        why = next((document["unknown"][key] for key in keys if key in document["unknown"]), NO_REASON)
        return Check(text, "unknown", f"{term.key} is unknown: {why}.", decides=True)
    is_negated = (len(text) - len(text.lstrip("!"))) % 2 == 1
    shown = f"{value:.6g}" if isinstance(value, float) else printable(str(value))
    return Check(text, "failed" if term.holds(value) is is_negated else "ok", f"{term.key} is {shown}.", decides=True)


def _refused(sentence: str, hint: str) -> ProfileError:
    return ProfileError("usage", f"--require: {sentence}.", f"--require '{hint}'", EXIT_USAGE)
