"""Tables of pages with the rows and columns that a call chooses, and the errors of arguments of a wrong kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.tui.api.table import Column, Table
from tpuprof.tui.report.choice import choose, nearest_or_first
from tpuprof.tui.report.fields import columns as columns_of
from tpuprof.tui.report.page import Listed, TableOptions

_NUMBERS = ("from_ps", "to_ps", "around", "model_flops", "tokens", "fail_on_regression", "facts", "fit")
"""Options of pages that are numbers or flags; the others are texts."""


def refused(what: str, given: object, wanted: str, example: str) -> ProfileError:
    """The error of an argument that is not what it has to be."""
    return ProfileError("usage", f"{what}: {printable(repr(given))} is not {wanted}.", example, EXIT_USAGE)


def check_texts(example: str, **given: object) -> None:
    """Raises an error for the first argument that is neither a text nor None."""
    for name, value in given.items():
        if not isinstance(value, str | None):
            raise refused(name, value, "a text", example)


def check_limit(limit: object) -> None:
    """Raises an error for what is not a number of rows."""
    if not isinstance(limit, Integral) or limit < 0:
        raise refused("limit", limit, "a number of rows, 0 for all", "limit=20")


def check_options(options: Mapping[str, object]) -> None:
    """Raises an error for the first option of a page that is of a wrong kind."""
    for name, value in options.items():
        if name in _NUMBERS and not isinstance(value, Real | None):
            raise refused(name, value, "a number", f"{name}=1")
        if name not in _NUMBERS:
            check_texts(f'{name}="..."', **{name: value})


def table_options(filter: object, sort: object, columns: object) -> TableOptions:
    """What a call chooses of a table; columns may be a text with commas, as on the command line.

    Raises:
        ProfileError: an argument is of a wrong kind.
    """
    check_texts('filter="self_time_ps>1ms"', filter=filter, sort=sort)
    keys = [key.strip() for key in columns.split(",")] if isinstance(columns, str) else columns
    if not isinstance(keys, Sequence) or not all(isinstance(key, str) for key in keys):
        raise refused("columns", columns, "a list of keys", 'columns=["name", "self_time_ps"]')
    return TableOptions(str(filter or ""), str(sort or ""), tuple(key for key in keys if key))


def chosen_table(
    tables: Sequence[Listed],
    key: str | None,
    page: str,
    options: TableOptions,
    limit: int,
    warnings: Sequence[str],
) -> Table:
    """The table of a page with a key, or the main one, with the rows and columns that a call chooses.

    Raises:
        ProfileError: there is no such table or column, or the text is not a filter.
    """
    check_texts('table("ops", "ops")', key=key)
    listed = _named(tables, key, page)
    chosen = choose(listed, options, limit, listed.table.json)
    return as_table(listed, chosen.shown, chosen.keys, len(chosen.matching) - len(chosen.shown), warnings)


def as_table(listed: Listed, rows: Sequence[int], keys: Sequence[str], left_out: int, warnings: Sequence[str]) -> Table:
    """Some rows of a page's table, with a description of each column."""
    table = listed.table
    described = [Column(of.key, of.unit.name, of.meaning, of.null) for of in table.chosen(keys)]
    return Table(table.key, described, columns_of(table, listed.source, rows, keys), left_out, warnings)


def _named(tables: Sequence[Listed], key: str | None, page: str) -> Listed:
    """The table with a key, or the main one."""
    for listed in tables:
        if key in (None, listed.table.key):
            return listed
    known = nearest_or_first(key or "", [listed.table.key for listed in tables])
    sentence = f"The page {page} has no table{f' {printable(key)}' if key else ' with columns'}."
    hint = f"one of: {', '.join(known)}" if known else f"report({page!r}) has all of it"
    raise ProfileError("usage", sentence, hint, EXIT_USAGE)
