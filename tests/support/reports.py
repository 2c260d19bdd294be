"""Prints pages as the command `report` does, without a profile."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from tests.support.documents import EVIL, nulls, parsed
from tests.support.golden import check_golden
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.tui.report.output import whole
from tpuprof.tui.report.page import FORMATS, Format, Report, ReportRequest, TextLook
from tpuprof.tui.report.text import LEAST_WIDTH

LOOK = TextLook(width=100, ascii_only=False, color=False)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _no_session(run: Run) -> Any:
    raise AssertionError(f"nothing is read of {run.name}: the page is there")


def asked_of(
    run: Run,
    form: Format,
    look: TextLook = LOOK,
    limit: int | None = None,
    host: str | None = None,
    session: Callable[[Run], Any] = _no_session,
    **options: Any,
) -> ReportRequest:
    """What a call of `report` for that run asks for."""
    logdir = Logdir("/logs", (run,), (), ())
    return ReportRequest(logdir, None, host, session, form, look, limit, options)


def printed(report: Report[Any], content: Any, run: Run, form: Format, look: TextLook = LOOK, limit: int = 0) -> str:
    return whole(report.writers[form](content, asked_of(run, form, look, limit)))


def check_report(
    report: Report[Any], name: str, content: Any, run: Run, golden: Path, looks: Mapping[str, TextLook]
) -> dict[str, Any]:
    """Checks what holds for every report; returns the document that it is as JSON.

    Every format is as it was, text keeps to its width and characters, at other widths and in colours too, JSON begins
    with the keys of every contract, and every null has a reason and every reason a null.

    Args:
        name: of the page, in the schema.
        golden: begin of the names of the golden files.
        looks: those of text, by what ends the names of its files.
    """
    for form in FORMATS:
        if form != "text":
            check_golden(golden.with_name(f"{golden.name}.{form}"), printed(report, content, run, form))
    for look, made in looks.items():
        text = printed(report, content, run, "text", made)
        check_golden(golden.with_name(f"{golden.name}{look}.txt"), text)
        assert max(map(len, text.splitlines())) <= made.width and (text.isascii() or not made.ascii_only)
    for width, ascii_only, colour in product((LEAST_WIDTH, 80, 110, 200), (False, True), (False, True)):
        text = printed(report, content, run, "text", TextLook(width, ascii_only, colour))
        plain = COLOUR.sub("", text)
        assert max(map(len, plain.splitlines())) <= width and (plain.isascii() or not ascii_only)
        assert "\x1b" not in plain and (plain != text) == colour
    document = parsed(printed(report, content, run, "json"))
    assert list(document)[:3] == ["schema", "run", "warnings"] and document["schema"] == f"tpuprof.{name}/1"
    assert set(nulls(document)) == set(document["unknown"])
    assert all(reason.strip() for reason in document["unknown"].values())
    return document


def check_harmless(report: Report[Any], content: Any, run: Run, look: TextLook = LOOK) -> None:
    """Names of `EVIL` come out as text that neither a terminal nor Markdown nor a table takes for more."""
    for form in FORMATS:
        text = printed(report, content, run, form, look)
        assert all(printable(line) == line for line in text.split("\n")), form
        text.encode("utf-8")
        assert form != "csv" or len({len(row) for row in csv.reader(io.StringIO(text))}) == 1
        assert form != "md" or ("<b>" not in text.replace("\\<b\\>", "") and "[x](y)" not in text)
        assert form != "json" or json.dumps(printable(EVIL), ensure_ascii=False) in text
