"""What a command finds in its files: a comparison, or the errors of a log."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from tpuprof.parsers.memory.live_arrays import read_live_arrays
from tpuprof.parsers.memory.oom.dumps import read_dumps
from tpuprof.parsers.memory.oom.files import checked_size, nothing_found, scan_file, shown_name, sorted_files, whole_log
from tpuprof.tui.api.chosen import check_limit, chosen_table, table_options
from tpuprof.tui.api.table import Table
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.page import TextLook

LOOK = TextLook(110, ascii_only=False, color=False)
"""How text looks that Python asks for."""


class Result:
    """What `tpuprof.diff` or `tpuprof.oom` finds.

    Attributes:
        page: it as frozen dataclasses, with units as those of a `Profile`.
    """

    def __init__(self, name: str, page: Any, content: Any) -> None:  # noqa: ANN401 - of the command
        self.page = page
        self._name, self._content, self._report = name, content, command_named(name).load_report()

    def tables(self) -> tuple[str, ...]:
        """The keys of its tables, the main one first."""
        return tuple(listed.table.key for listed in self._report.sections(self._content))

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
        check_limit(limit)
        sections = self._report.sections(self._content)
        return chosen_table(sections, key, self._name, table_options(filter, sort, columns), limit, ())

    def report(self, *, limit: int = 0) -> dict[str, Any]:
        """The JSON that the command prints; `limit` as on the command line, 0 for all rows."""
        check_limit(limit)
        document: dict[str, Any] = json.loads(self._report.writers["json"](self._content, LOOK, limit))
        return document

    def __repr__(self) -> str:
        return self._report.writers["text"](self._content, LOOK, 0)

    def _repr_markdown_(self) -> str:
        """The command's Markdown, for a notebook."""
        return self._report.writers["md"](self._content, LOOK, 0)


def oom_of(paths: Sequence[str]) -> Result:
    """The out-of-memory errors of logs and dumps, with the live arrays of a device memory profile beside them.

    Raises:
        ProfileError: as `tpuprof.oom`.
    """
    given = sorted_files([os.path.expanduser(path) for path in paths], None)
    for path in given.logs:
        checked_size(path)
    log = whole_log(given, [scan_file(path) for path in given.logs], read_dumps(given.dumps))
    first = (given.logs or given.dumps)[0]
    if not log.reports:
        raise nothing_found(first, log)
    arrays = None if given.arrays is None else read_live_arrays(given.arrays)
    errors = command_named("oom").load_report().read(log, first, shown_name(first), arrays)
    return Result("oom", errors, errors)
