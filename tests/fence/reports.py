"""Calls of the program, their reports as hashes, and the copies of profiles that they read.

`TPUPROF_FENCE_DUMP=<folder>` writes the reports themselves, which are too large for the repository;
`python -m tests.fence --against REVISION` shows how they differ from those of another revision.

Digits of a figure beyond the twelfth are left out of the hash: they depend on the processor's vector units.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.fence.form import check_form
from tests.support.golden import check_golden
from tpuprof.parsers.session import opening
from tpuprof.parsers.session.session import Session
from tpuprof.tui.cli.main import main

Call = Sequence[str]
"""Arguments of the command line."""

WRITTEN = 1_795_230_000
"""When every copied profile says that it was written; lists of runs show it."""

LOOKS = (("--width", "80", "--ascii"), ("--width", "120", "--color", "truecolor"), ("--width", "200", "--limit", "5"))
TABLES = (
    ("--format", "json"),
    ("--format", "json", "--limit", "3"),
    ("--format", "csv"),
    ("--format", "csv", "--limit", "2"),
    ("--format", "md"),
    ("--format", "md", "--limit", "4"),
)
PAGES = (
    "runs",
    "hosts",
    "cores",
    "overview",
    "findings",
    "ledger",
    "model",
    "input",
    "inference",
    "ops",
    "op",
    "op-profile",
    "sources",
    "framework-ops",
    "kernels",
    "counters",
    "roofline",
    "collectives",
    "graph",
    "memory",
    "memory-profile",
)
EXTRA = (
    ("runs", "--facts"),
    ("runs", "--facts", "--format", "json"),
    ("runs", "--facts", "--format", "csv"),
    ("runs", "--facts", "--format", "md"),
    ("memory", "--space", "vmem"),
    ("memory", "--space", "vmem", "--format", "json"),
    ("memory", "--module", "no_such", "--format", "json"),
    ("timeline", "--width", "80", "--ascii"),
    ("timeline", "--width", "120", "--color", "truecolor"),
    ("timeline", "--format", "json"),
    ("timeline", "--format", "csv"),
    ("timeline", "--format", "md", "--limit", "5"),
    ("timeline", "--from", "1", "--to", "9", "--limit", "40"),
    ("timeline", "--from", "1", "--to", "9", "--limit", "40", "--width", "80", "--ascii"),
    ("timeline", "--from", "0", "--to", "40", "--limit", "60", "--format", "json"),
    ("timeline", "--from", "0", "--to", "40", "--limit", "60", "--format", "csv"),
    ("timeline", "--from", "0", "--to", "40", "--limit", "60", "--format", "md"),
    ("timeline", "--track", "XLA Ops", "--limit", "30", "--format", "json"),
    ("timeline", "--from", "0", "--to", "20", "--format", "perfetto"),
    ("graph", "--format", "hlo"),
    ("graph", "--op", "no_such"),
    ("graph", "--op", "copy-done.4", "--around", "2", "--format", "json"),
    ("graph", "--op", "while.97", "--around", "3", "--format", "csv"),
    ("op", "--op", "no_such"),
    ("trend", "--width", "120"),
    ("trend", "--format", "json", "--fail-on-regression", "5%"),
    ("trend", "--format", "junit"),
    ("findings", "--format", "github", "--fail-on", ">5%"),
    ("overview", "--format", "csv", "--require", "mfu>40%"),
    ("op", "--op", "copy-done.4", "--limit", "2", "--format", "json"),
    ("ledger", "--by", "op", "--format", "csv"),
    ("model", "--model-flops", "4e13", "--tokens", "8192", "--width", "80"),
    ("model", "--model-flops", "9e15", "--format", "json"),
    ("ledger", "--by", "scope", "--width", "100"),
    ("ledger", "--by", "module", "--format", "json"),
    ("ledger", "--by", "core", "--format", "md"),
    ("ops", "--from", "0", "--to", "20", "--format", "json", "--limit", "3"),
    *(
        (page, "--step", "104", "--limit", "5", "--format", "csv")
        for page in ("ops", "roofline", "ledger", "cores", "input")
    ),
    *((page, "--step", "1-2", "--limit", "5") for page in ("op-profile", "hosts", "timeline")),
    ("overview", "--core", "1", "--width", "80"),
    ("op-profile", "--core", "0", "--width", "80", "--format", "json"),
    ("timeline", "--core", "1", "--limit", "5", "--format", "md"),
    ("overview", "--limit", "3", "--format", "html"),
    ("timeline", "--limit", "3", "--format", "html", "--mask"),
    ("timeline", "--from", "0", "--to", "40", "--limit", "5", "--format", "html"),
    ("memory", "--limit", "3", "--format", "html"),
)
OF_ONE_RUN = [*((page, *look) for page in PAGES for look in (*LOOKS, *TABLES)), *EXTRA]
OF_LOGS = [*LOOKS[:2], ("--format", "json"), ("--format", "md"), ("--width", "60", "--limit", "2")]
OF_TWO_RUNS = [*LOOKS, *TABLES, ("--format", "github"), ("--format", "junit")]
OF_PROMISES = [LOOKS[0], LOOKS[1], TABLES[0], TABLES[4], ("--format", "junit")]
QUERIES = (
    "SELECT name, self_time_ps, roofline_efficiency FROM ops ORDER BY 2 DESC, 1 LIMIT 20",
    "SELECT track, count(*) AS events, sum(duration_ps) AS ps FROM events GROUP BY track ORDER BY track",
    "SELECT module, category, sum(size_bytes) AS bytes FROM buffers GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT * FROM steps",
    "SELECT nam FROM ops",
)
OF_QUERIES = [
    *((QUERIES[0], *look) for look in (LOOKS[0], TABLES[0], TABLES[3], TABLES[4])),
    *((sql, *TABLES[0]) for sql in QUERIES[1:]),
]
"""One in each format: what the others answer is the same in all."""

MOST_NAMED = 20
"""Reports that a failure names."""

DUMP = "TPUPROF_FENCE_DUMP"
"""The environment variable that names a folder for the reports."""

LONG_FIGURE = re.compile(r"\d+\.\d{8,}(?:e[-+]?\d+)?")


@contextlib.contextmanager
def same_everywhere(root: Path) -> Iterator[None]:
    """One working folder, one terminal, one time zone, and one session a run.

    A page that another report has made is not made again.
    """
    kept: dict[object, Session] = {}

    def one_session(run: object, *_: object, **__: object) -> object:
        if run not in kept:
            kept[run] = Session(run)  # type: ignore[arg-type]
        return kept[run]

    try:
        with pytest.MonkeyPatch.context() as monkeypatch:
            for name in ("COLUMNS", "NO_COLOR", "LANG", "COLORTERM", "TMUX"):
                monkeypatch.delenv(name, raising=False)
            for name, value in (("LC_ALL", "C.UTF-8"), ("TERM", "xterm-256color"), ("TZ", "UTC")):
                monkeypatch.setenv(name, value)
            time.tzset()
            monkeypatch.setattr(opening, "Session", one_session)
            monkeypatch.chdir(root)
            yield
    finally:
        time.tzset()


def said(arguments: Sequence[str], root: Path) -> str:
    """What a call prints, to both streams, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return f"{out.getvalue()}--- {code}\n{err.getvalue()}".replace(str(root), "ROOT")


def rounded(text: str) -> str:
    """A report without the digits that depend on the processor."""
    return LONG_FIGURE.sub(lambda figure: f"{float(figure[0]):.12g}", text)


def digest(text: str) -> str:
    """The hash that stands for a report."""
    return hashlib.sha256(rounded(text).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def check(hashes: Path, calls: Sequence[Call], root: Path) -> None:
    """Holds the reports of some calls against the hashes that a file has.

    Args:
        root: the folder that the calls run in; it is called ROOT in the reports.
    """
    texts: dict[str, str] = {}
    with same_everywhere(root):
        for call in calls:
            text = texts[" ".join(call)] = said(call, root)
            printed, _, errors = text.rpartition("--- 0\n")
            if printed and not errors:
                check_form(call, printed)
    hold(hashes, texts)


def hold(hashes: Path, texts: Mapping[str, str], shown: bool = True) -> None:
    """Holds texts by their names against the hashes that a file has.

    Args:
        shown: whether whoever changed them may see how they differ, and not only which.
    """
    found = {key: digest(text) for key, text in texts.items()}
    if shown and (dump := os.environ.get(DUMP)):
        folder = Path(dump) / hashes.stem
        folder.mkdir(parents=True, exist_ok=True)
        for key, text in texts.items():
            (folder / re.sub(r"[^A-Za-z0-9.=-]+", "_", key)).write_text(text, "utf-8", "backslashreplace")
    if hashes.exists() and not os.environ.get("UPDATE_GOLDEN"):
        stored = json.loads(hashes.read_text("utf-8"))
        if changed := [key for key in found | stored if found.get(key) != stored.get(key)]:
            pytest.fail(breach(hashes, changed, len(found), shown), pytrace=False)
    check_golden(hashes, json.dumps(found, indent=1) + "\n")


def breach(hashes: Path, changed: Sequence[str], total: int, shown: bool = True) -> str:
    """What a developer reads of reports that are not what they were, and the command that shows how they differ.

    Args:
        changed: calls of these reports, in a line each.
        total: how many reports were made.
        shown: whether a command shows how they differ.
    """
    git = ("git", "-C", str(hashes.parent), "log", "-1", "--format=%h", "--", hashes.name)
    try:
        written = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        written = ""
    more = [f"  … and {len(changed) - MOST_NAMED} more"] if len(changed) > MOST_NAMED else []
    lines = [
        f"{hashes.stem}: {len(changed)} of {total} reports are not those of {hashes}:",
        *(f"  {call}" for call in changed[:MOST_NAMED]),
        *more,
        *([f"To see how they differ: python -m tests.fence --against {written or 'HEAD'} {hashes.stem}"] * shown),
        "If they were meant to change: UPDATE_GOLDEN=1 rewrites the hashes.",
    ]
    return "\n".join(lines)


def copied(source: Path, target: Path) -> None:
    """Copies a file or a folder, with one time on all of it."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.json", "*.md", "*.txt"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    stamped(target)


def stamped(folder: Path) -> None:
    """Gives a folder, or a file, and all that lies in it one time."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (WRITTEN, WRITTEN))


def reports(path: str, pages: Sequence[Sequence[str]] = OF_ONE_RUN) -> list[tuple[str, ...]]:
    """The calls for a path."""
    return [("report", page, path, *options) for page, *options in pages]
