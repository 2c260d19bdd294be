"""The fence: every report of the program, byte for byte, as hashes.

A refactoring leaves all of them as they are. Where a change means to alter a report, `UPDATE_GOLDEN=1` writes the
hashes anew and the commit says what changed and why. `TPUPROF_FENCE_DUMP=<folder>` writes the reports themselves, to
compare two versions of the program with `diff -r`; they are too large for the repository.

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
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.golden import check_golden
from tpuprof.parsers.session import session as session_module
from tpuprof.tui.cli.main import main

HASHES = Path(__file__).parent / "hashes"
MODULES = Path(__file__).parents[1] / "demo" / "modules"
WRITTEN = 1_795_230_000
"""When every copied profile says that it was written; lists of runs show it."""

LOOKS = (
    ("--width", "80", "--ascii"),
    ("--width", "120", "--color", "truecolor"),
    ("--width", "200", "--limit", "5"),
)
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
    "input",
    "inference",
    "ops",
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
    ("graph", "--format", "dot"),
    ("graph", "--format", "hlo"),
    ("graph", "--op", "no_such"),
    ("graph", "--op", "copy-done.4", "--around", "2", "--format", "json"),
    ("graph", "--op", "while.97", "--around", "3", "--format", "csv"),
    ("overview", "--core", "1", "--width", "80"),
    ("op-profile", "--core", "0", "--width", "80", "--format", "json"),
    ("timeline", "--core", "1", "--limit", "5", "--format", "md"),
)
OF_ONE_RUN = [
    *((page, *look) for page in PAGES for look in (*LOOKS, *TABLES)),
    *EXTRA,
]
OF_LOGS = [*LOOKS[:2], ("--format", "json"), ("--format", "md"), ("--width", "60", "--limit", "2")]
OF_TWO_RUNS = [*LOOKS, *TABLES]

LONG_FIGURE = re.compile(r"\d+\.\d{8,}(?:e[-+]?\d+)?")

SHARED_PROFILES = {
    "v6e": "profiles/tpu-v6e-inference",
    "v100": "profiles/gpu-v100-bert",
    "mi300": "profiles/gpu-mi300-jax",
    "cpu-only": "profiles/cpu-only",
    "broken": "profiles/broken",
    "synthetic-a": "golden/synthetic-a/host0.xplane.pb",
    "synthetic-b": "golden/synthetic-b/host0.xplane.pb",
    "synthetic-c": "golden/synthetic-c/host0.xplane.pb",
}


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One terminal, one time zone, and one session a run: a page that another report has made is not made again."""
    for name in ("COLUMNS", "NO_COLOR", "LANG", "COLORTERM", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("LC_ALL", "C.UTF-8"), ("TERM", "xterm-256color"), ("TZ", "UTC")):
        monkeypatch.setenv(name, value)
    time.tzset()
    kept: dict[object, session_module.Session] = {}
    opened = session_module.Session

    def one_session(run: object, *_: object, **__: object) -> object:
        if run not in kept:
            kept[run] = opened(run)  # type: ignore[arg-type]
        return kept[run]

    monkeypatch.setattr(session_module, "Session", one_session)
    yield
    monkeypatch.undo()
    time.tzset()


def said(arguments: Sequence[str], root: Path) -> str:
    """What a call prints, to both streams, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return f"{out.getvalue()}--- {code}\n{err.getvalue()}".replace(str(root), "ROOT")


def digest(text: str) -> str:
    """The hash that stands for a report."""
    rounded = LONG_FIGURE.sub(lambda figure: f"{float(figure[0]):.12g}", text)
    return hashlib.sha256(rounded.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def check(name: str, calls: Sequence[Sequence[str]], root: Path) -> None:
    """Holds the reports of some calls against the hashes that the repository has."""
    found: dict[str, str] = {}
    dump = os.environ.get("TPUPROF_FENCE_DUMP")
    for call in calls:
        text, key = said(call, root), " ".join(call)
        found[key] = digest(text)
        if dump:
            folder = Path(dump) / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / re.sub(r"[^A-Za-z0-9.=-]+", "_", key)).write_text(text, "utf-8", "backslashreplace")
    check_golden(HASHES / f"{name}.json", json.dumps(found, indent=1) + "\n")


def copied(source: Path, target: Path) -> None:
    """Copies a file or a folder, with one time on all of it."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.json", "*.md", "*.txt"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    for path in (target, *target.rglob("*")):
        os.utime(path, (WRITTEN, WRITTEN))


def reports(path: str, pages: Sequence[Sequence[str]] = OF_ONE_RUN) -> list[tuple[str, ...]]:
    """The calls for a path."""
    return [("report", page, path, *options) for page, *options in pages]


def test_reports_of_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every page of the bundled profile."""
    from tpuprof.tui.demo import demo_path

    copied(Path(demo_path()), tmp_path / "demo-run" / Path(demo_path()).name)
    monkeypatch.chdir(tmp_path)
    check("demo", reports("demo-run"), tmp_path)


def test_reports_of_compiled_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory page without a profile."""
    copied(MODULES, tmp_path / "modules")
    monkeypatch.chdir(tmp_path)
    pages = [(page, *options) for page in ("memory", "graph") for options in (*LOOKS, *TABLES)]
    spaces = [("memory", "--module", "jit_train_step", "--device", "v6e", "--format", form) for form in ("json", "md")]
    check("modules", reports("modules", [*pages, *spaces]), tmp_path)


@pytest.mark.shared
@pytest.mark.parametrize("name", SHARED_PROFILES)
def test_reports_of_a_real_profile(name: str, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every page of a profile that a program on real hardware, or XProf's own test data, left behind."""
    source = shared / SHARED_PROFILES[name]
    if source.suffix == ".pb":
        copied(source, tmp_path / name / source.name)
    else:
        copied(source, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    check(name, reports(name), tmp_path)


@pytest.mark.shared
def test_reports_of_a_profile_cut_off(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of a real profile whose second half is missing."""
    source = next((shared / SHARED_PROFILES["v6e"]).rglob("*.xplane.pb"))
    target = tmp_path / "cut" / source.name
    target.parent.mkdir()
    target.write_bytes(source.read_bytes()[: source.stat().st_size // 2])
    for path in (target.parent, target):
        os.utime(path, (WRITTEN, WRITTEN))
    monkeypatch.chdir(tmp_path)
    check("cut", reports("cut"), tmp_path)


@pytest.mark.shared
def test_reports_of_several_hosts(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts of one run: whole ones, one cut off, one empty."""
    folder = tmp_path / "hosts" / "plugins" / "profile" / "run"
    for number, name in enumerate(("synthetic-a", "synthetic-b", "synthetic-a", "synthetic-h1")):
        copied(shared / "golden" / name / "host0.xplane.pb", folder / f"host{number}.xplane.pb")
    whole = (folder / "host2.xplane.pb").read_bytes()
    (folder / "host2.xplane.pb").write_bytes(whole[: len(whole) * 2 // 3])
    (folder / "host4.xplane.pb").write_bytes(b"")
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (WRITTEN, WRITTEN))
    monkeypatch.chdir(tmp_path)
    one_host = [("overview", "--host", "host1", "--format", "json"), ("ops", "--host", "host9")]
    check("hosts", reports("hosts", [*OF_ONE_RUN, *one_host]), tmp_path)


@pytest.mark.shared
def test_reports_of_two_runs(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs compared: of one program, and of two different ones."""
    for name in ("synthetic-a", "synthetic-b", "synthetic-c"):
        copied(shared / "golden" / name / "host0.xplane.pb", tmp_path / name / "host0.xplane.pb")
    copied(shared / SHARED_PROFILES["v6e"], tmp_path / "v6e")
    monkeypatch.chdir(tmp_path)
    calls = [
        ("diff", before, after, *options)
        for before, after in (("synthetic-a", "synthetic-b"), ("synthetic-c", "synthetic-a"), ("synthetic-a", "v6e"))
        for options in OF_TWO_RUNS
    ]
    check("diff", calls, tmp_path)


@pytest.mark.shared
def test_reports_of_logs(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out-of-memory triage of every real error text."""
    copied_logs = tmp_path / "logs"
    copied_logs.mkdir()
    for log in sorted((shared / "oom").glob("*.txt")):
        shutil.copy(log, copied_logs / log.name)
    monkeypatch.chdir(tmp_path)
    logs = sorted(path.name for path in copied_logs.iterdir())
    check("oom", [("oom", f"logs/{log}", *options) for log in logs for options in OF_LOGS], tmp_path)
