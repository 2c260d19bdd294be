"""What holds for every report, whatever it shows: its text keeps to the terminal, its JSON says why a value is null."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from tests.support.documents import check_page, nulls, parsed
from tests.support.reports import COLOUR
from tpuprof.parsers.base.text import printable
from tpuprof.tui.report.text import LEAST_WIDTH


def check_form(call: Sequence[str], printed: str) -> None:
    """Checks what a call printed on a terminal of the width and characters that it asks for, or in its format."""
    words, name = list(call), " ".join(call)
    form = words[words.index("--format") + 1] if "--format" in words else "text"
    plain = COLOUR.sub("", printed) if "--color" in words else printed
    assert all(printable(line) == line for line in plain.split("\n")), f"{name}: a control character"
    if form == "json":
        _check_json(name, printed, words[1] if words[0] == "report" else words[0])
    elif form == "csv":
        assert len({len(row) for row in csv.reader(io.StringIO(printed))}) <= 1, f"{name}: rows of several lengths"
    elif form == "html":
        check_page(printed)
    elif form == "text":
        if "--width" in words:
            width = max(int(words[words.index("--width") + 1]), LEAST_WIDTH)
            assert max(map(len, plain.splitlines()), default=0) <= width, f"{name}: a line is too wide"
        assert "--ascii" not in words or plain.isascii(), f"{name}: a character that is not ASCII"


def _check_json(name: str, printed: str, page: str) -> None:
    document = parsed(printed)
    assert document["schema"] == f"tpuprof.{page}/1", name
    unknown = document.pop("unknown")
    assert set(nulls(document)) <= set(unknown), f"{name}: a null without a reason"
    assert all(reason.strip() for reason in unknown.values()), f"{name}: an empty reason"
