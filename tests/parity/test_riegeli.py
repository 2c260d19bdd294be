"""Profiles in records say what the same profiles say in one piece, on every page."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from tests.fence.reports import PAGES, WRITTEN, said, same_everywhere
from tests.support.files.riegeli import chunked, written
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.tui.demo import demo_path

CALLS: list[tuple[str, ...]] = [(page, "--format", "json") for page in PAGES if page != "runs"]
CALLS += [("timeline", "--format", "perfetto"), ("timeline", "--from", "0", "--to", "40", "--format", "json")]


def compare(whole: Path, in_records: Path) -> None:
    """Compares the pages of two folders of one name; only sizes of files may differ, which lists of runs show."""
    answers = []
    for folder in (whole, in_records):
        for path in (folder / "run", *(folder / "run").iterdir()):
            os.utime(path, (WRITTEN, WRITTEN))
        with same_everywhere(folder):
            texts = [said(["report", page, "run", *options], folder) for page, *options in CALLS]
        answers.append([text.replace(".xplane.riegeli", ".xplane.pb") for text in texts])
    for call, ours, other in zip(CALLS, *answers, strict=True):
        assert ours == other, call
        assert "--- 0\n" in ours or call[0].startswith(("memory", "graph")), call  # which some profiles know nothing of


def test_reports_of_the_demo_in_records_of_some_events(tmp_path: Path) -> None:
    data = gzip.decompress(Path(demo_path()).read_bytes())
    records = [part.SerializeToString() for part in chunked(XSpace.FromString(data), 3000)]
    assert len(records) > 40
    for folder, name, content in (
        ("whole", "demo.xplane.pb", data),
        ("records", "demo.xplane.riegeli", written(records, "none")),
    ):
        (tmp_path / folder / "run").mkdir(parents=True)
        (tmp_path / folder / "run" / name).write_bytes(content)
    compare(tmp_path / "whole", tmp_path / "records")
