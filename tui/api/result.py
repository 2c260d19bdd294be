"""What is read of a page or by a command: its tables, and how it is printed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.memory.live_arrays import read_live_arrays
from tpuprof.parsers.memory.oom.files import errors_of, shown_name, sorted_files
from tpuprof.tui.api.arguments import Guiding, check
from tpuprof.tui.api.table import LOOK, Table
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.choice import choose, nearest_or_first
from tpuprof.tui.report.fields import columns as columns_of
from tpuprof.tui.report.page import Listed, TableOptions, chosen_of
from tpuprof.tui.report.shared.bounded import bounded
from tpuprof.tui.report.shared.columns import column_of


class Result(Guiding):
    """What `tpuprof.diff` or `tpuprof.oom` finds.

    Attributes:
        page: it as frozen dataclasses, with units as those of a `Profile`.
        warnings: what there is to warn of, a sentence each.
    """

    def __init__(
        self,
        name: str,
        page: Any,  # noqa: ANN401 - any page
        listed: Callable[[], Sequence[Listed]],
        write: Callable[[str, int], str],
        warnings: Sequence[str] = (),
        rest: str = "report()",
    ) -> None:
        self.page = page
        self.listed = listed
        self.warnings = warnings
        self._name, self._write, self._rest = name, write, rest

    def tables(self) -> tuple[str, ...]:
        """The keys of its tables, the main one first."""
        return tuple(listed.table.key for listed in self.listed())

    def table(
        self,
        key: str | None = None,
        *,
        filter: str = "",
        sort: str = "",
        columns: Sequence[str] | str = (),
        limit: int = 0,
    ) -> Table:
        """One of its tables; arguments and errors as of `Profile.table`."""
        check(key=key, filter=filter, sort=sort, columns=columns, limit=limit)
        keys = columns if isinstance(columns, str) else ",".join(columns)
        options = chosen_of({"filter": filter, "sort": sort, "columns": keys}) or TableOptions()
        by_key = {listed.table.key: listed for listed in self.listed()}
        if (listed := by_key.get(next(iter(by_key), "") if key is None else key)) is None:
            known = nearest_or_first(key or "", list(by_key))
            sentence = f"The page {self._name} has no table{f' {printable(key)}' if key else ' with columns'}."
            hint = f"one of: {', '.join(known)}" if known else f"report({self._name!r}) has all of it"
            raise ProfileError("usage", sentence, hint, EXIT_USAGE)
        chosen = choose(listed, options, limit, listed.table.json)
        left_out = len(chosen.matching) - len(chosen.shown)
        values = columns_of(listed.table, listed.source, chosen.shown, chosen.keys)
        return Table(listed.table.key, list(map(column_of, chosen.fields)), values, left_out, self.warnings)

    def report(self, *, limit: int = 0, max_bytes: int | None = None) -> dict[str, Any]:
        """The JSON that the command prints; `limit` and `max_bytes` as of `Profile.report`."""
        check(limit=limit, max_bytes=max_bytes)
        text = self._write("json", limit)
        text = text if max_bytes is None else bounded(text, "json", max_bytes, self._rest)[0]
        document: dict[str, Any] = json.loads(text)
        return document

    def __iter__(self) -> Iterator[Any]:
        """The rows of its main table, for what makes data frames of them."""
        return iter(self.table())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Its main table, as `Table` has it."""
        return self.table().__arrow_c_stream__(requested_schema)

    if not TYPE_CHECKING:  # type checkers still refuse unknown attributes

        def __getattr__(self, name: str) -> object:
            """A table by its name, or what the main one has: ``oom(log).buffers``, ``diff(a, b).to_pandas()``."""
            tables = () if name.startswith("_") else self.tables()  # a notebook would show a table's HTML for it
            if name in tables:
                return self.table(name)
            return getattr(self.table(), name) if tables and hasattr(Table, name) else super().__getattr__(name)

    def _way_to(self, _: str) -> str:
        return f"table() or one of its tables: {', '.join(self.tables())}; or page for all that was found"

    def __repr__(self) -> str:
        return self._write("text", 0)

    def _repr_markdown_(self) -> str:
        """The command's Markdown, for a notebook."""
        return self._write("md", 0)


def result_of(command: str, page: Any, *read: Any) -> Result:  # noqa: ANN401 - any page
    """What a command finds.

    Args:
        page: for those who ask for it, None for what is printed.
        read: what the report of the command reads.
    """
    report = command_named(command).load_report()
    content = report.read(*read)
    return Result(
        command,
        content if page is None else page,
        lambda: report.sections(content),
        lambda form, limit: report.writers[form](content, LOOK, limit),
    )


def oom_of(paths: Sequence[str]) -> Result:
    """The out-of-memory errors of logs and dumps, with the live arrays of a device memory profile beside them.

    Raises:
        ProfileError: as `tpuprof.oom`.
    """
    given = sorted_files([os.path.expanduser(path) for path in paths], None)
    log = errors_of(given)
    arrays = None if given.arrays is None else read_live_arrays(given.arrays)
    return result_of("oom", None, log, given.first, shown_name(given.first), arrays)
