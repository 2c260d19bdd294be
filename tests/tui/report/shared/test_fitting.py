"""What a pipe is given unasked: 20 KB of any page, and how to get the rest."""

from __future__ import annotations

import json

import pytest

from tests.tui.cli.calls import Call, run
from tpuprof.tui.cli import printing
from tpuprof.tui.pages import PAGES
from tpuprof.tui.report.json import PIPE_BYTES
from tpuprof.tui.report.page import CUT, FORMATS
from tpuprof.tui.report.shared.fitting import fitting

MOST = PIPE_BYTES * 1.03  # the three trees of the op profile are a little longer with one op each


@pytest.mark.parametrize("page", [page.name for page in PAGES if not page.is_of_arrays])
def test_every_page_fits(page: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for form in FORMATS:
        words = ("report", page, "demo", "--format", form)
        monkeypatch.setattr(printing, "is_pipe", lambda _: True)
        given = call(*words)
        assert len(given.out.encode()) <= MOST, form
        monkeypatch.undo()
        is_cut = f"note: {CUT}" in given.err
        if form == "json":
            assert is_cut == (CUT in json.loads(given.out)["warnings"])
        if is_cut:
            assert len(call(*words, "--limit", "0").out.encode()) > PIPE_BYTES, form
        elif page != "timeline":  # which says itself that the first events are shown
            assert given.out == call(*words).out


def test_a_pipe_is_told_from_a_file(tmp_path: object) -> None:
    done = run("report", "ops", "demo", "--format", "json")
    assert len(done.stdout) <= PIPE_BYTES and CUT in done.stderr.decode()
    assert len(run("report", "ops", "demo", "--format", "json", "--limit", "0").stdout) > PIPE_BYTES
    written = run("report", "ops", "demo", "--format", "json", "--output", f"{tmp_path}/ops.json")
    assert CUT not in written.stderr.decode()


def test_as_many_rows_as_fit() -> None:
    for width, rows in ((10, 100_000), (150, 1_000), (3_000, 50), (30_000, 2)):

        def make(limit: int | None, width: int = width, rows: int = rows) -> str:
            return "x" * (width * (rows if limit is None else min(limit, rows)))

        made, is_cut = fitting(make, rows)
        assert isinstance(made, str) and is_cut
        fits = PIPE_BYTES // width
        assert len(made) == width if not fits else 0.9 * fits * width <= len(made) <= PIPE_BYTES


def test_what_fits_is_whole() -> None:
    assert fitting(lambda limit: "all" if limit is None else "", 3) == ("all", False)
    assert fitting(lambda _: iter(("in", "pieces")), 3)[1] is False
