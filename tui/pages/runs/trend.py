"""The report on the trend of a log folder: its runs as a series, and where that changed beyond the noise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.shared.groups import APART
from tpuprof.parsers.pages.shared.split_runs import whole_captures
from tpuprof.parsers.session.diff.regression import Regression
from tpuprof.parsers.session.trend import Judged, KindWorth, KnownPoints, TrendPoint, checked, judged
from tpuprof.tui.draw.format import UNKNOWN, duration, utc
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, declared
from tpuprof.tui.report.fields import Field, Metric, Table, attribute, listed, named, object_table, of_each
from tpuprof.tui.report.page import Check, Head, ReportRequest, step_check
from tpuprof.tui.report.units import BYTES, COUNT, PERCENT, SHARE_PERCENT, TEXT, TIME_MS, VERBATIM, Unit, plain


@dataclass(frozen=True)
class TrendRow:
    """A run of the series; `point` is None where it can't be read, which `problem` says."""

    run: Run
    point: TrendPoint | None
    judged: Judged
    problem: str


@dataclass(frozen=True)
class Trend(Sized):
    """The series, the oldest run first, and the check that was asked for."""

    sized_by = "runs"
    path: str
    runs: tuple[TrendRow, ...]
    check: Regression | None

    @property
    def changes(self) -> list[TrendRow]:
        return [row for row in self.runs if row.judged.verdict in ("slower", "faster")]


def row_of(run: Run, point: TrendPoint | str | None, found: Judged | None) -> TrendRow:
    """A run of a series, read or still being read: `point` is its figures, why it can't be read, or None so far."""
    if isinstance(point, TrendPoint):
        return TrendRow(run, point, found or Judged("unknown"), point.why_no_step)
    return TrendRow(run, None, Judged("unknown"), point or "it is not read yet")


def read(request: ReportRequest) -> Trend:
    """Reads every run of the log folder, or what the cache has of it.

    Raises:
        ProfileError: `usage`, where one run is asked for.
    """
    if request.run_name is not None:
        raise ProfileError("usage", "The page trend covers all runs of a folder.", "leave --run out", EXIT_USAGE)
    runs = sorted(whole_captures(request.logdir.runs), key=lambda run: (run.time, run.name))
    known = KnownPoints(request.session(runs[0]).cache if runs else None, request.logdir.query)
    points = [known.point(run, request.session) for run in runs]
    known.keep()
    found, allowed = judged(points), request.options.get("fail_on_regression")
    check = None if allowed is None else checked(points, found, allowed)
    return Trend(request.logdir.query, tuple(map(row_of, runs, points, found)), check)


# --- fields

_NO_RUN = "the run can't be read"
_NO_STEP = f"the run has no steps, or {_NO_RUN}"
_NO_LEVEL = "it is the first run of its program, or its step time or its noise is unknown"
_NO_ACCOUNT = f"no ops of a device ran in steps, or {_NO_RUN}"
_WORTHS: Table[Sequence[KindWorth]] = object_table(
    "findings",
    (
        attribute("kind", VERBATIM, "of findings"),
        attribute("worth_ms", TIME_MS, "how much all findings of the kind save per step"),
    ),
)
_BY_KIND = listed(_WORTHS)
_FINDINGS = Unit(_BY_KIND.name, _BY_KIND.machine, lambda worths, _: _most(worths), False, _BY_KIND.parts, True)
_MOST_NAMED = 2


def _worths(row: TrendRow) -> Sequence[KindWorth]:
    return () if row.point is None else row.point.worths


def _most(worths: Sequence[KindWorth]) -> str:
    """The kinds that are worth most: ``collective 36.8 ms, unfused 28.3 ms``."""
    return ", ".join(f"{each.kind} {duration(each.worth_ps)}" for each in worths[:_MOST_NAMED]) or "none"


_of = partial(of_each, within="runs")


_WRITTEN = Unit("ISO 8601, UTC", plain, lambda value, _: (value or "?")[:16], is_text=True)
_TYPICAL = "the mean of its steps without those that are odd by chance; what comes in a rhythm counts"
_ERROR = "its standard error, from the spread of the steps"
_CHANGE = "step time compared with the level before: the runs since the last change"
_NOISE = "how much of a change is noise: the spread of the steps and of the runs of the level"
_VERDICT = (
    "first, noise (no change), slower or faster (a new level begins), odd (it alone differs, and the level goes on), "
    "other program, unknown"
)
_EXPOSED = "collectives of a step that no compute hides"
_LEVEL = "number of the level that it is part of, from 0"
_MFU = "model FLOPs by the compiler's count, as a share of the cores' peak in the mean step, as of the page model"
_IDLE = "time of the capture in which a core of the group whose steps these are ran no op"
_MEMORY = "the peak of the fullest device memory"


def _shown(key: str, unit: Unit, name: str, meaning: str, heading: str, width: int, null: str = "") -> Field[Trend]:
    """A figure of a run on the screen."""
    return named(key, unit, _of(f"point.{name}"), meaning, heading, width, null=null)


def _signed(value: float | None, _: bool = False) -> str:
    """A change with its sign: ``+12.0%``."""
    if value is None:
        return UNKNOWN
    words = f"{100 * value:+.1f}%"
    return words if float(words[:-1]) else "0.0%"


_CHANGED = Unit(SHARE_PERCENT.name, SHARE_PERCENT.machine, _signed)


def _judged(key: str, name: str, meaning: str, heading: str, width: int) -> Field[Trend]:
    """A share of the level before a run, on the screen."""
    unit, read = _CHANGED if name == "change" else SHARE_PERCENT, _of(f"judged.{name}")
    return named(key, unit, read, meaning, heading, width, null=_NO_LEVEL)


RUNS: Table[Trend] = Table(
    "runs",
    (
        named("run", TEXT, _of("run.name"), "its name", "run", 20, fixed=True, grows=True),
        Field("path", TEXT, _of("run.path"), "where the run lies"),
        named("written", _WRITTEN, _of(lambda row: utc(row.run.time)), "when it was captured", "written", 16),
        Field("program", TEXT, _of("point.program"), "the module with most op time", f"no op names one, or {_NO_RUN}"),
        named("step_time_ms", TIME_MS, _of("point.step_ps"), _TYPICAL, "step", 9, null=_NO_STEP, fixed=True),
        Field("step_error_ms", TIME_MS, _of("point.error_ps"), _ERROR, f"it has one step; or {_NO_STEP}"),
        Field("step_count", COUNT, _of("point.step_count"), "how many steps it has", _NO_RUN),
        Field("mean_step_time_ms", TIME_MS, _of("point.mean_step_ps"), "the mean of all its steps", _NO_STEP),
        named("verdict", VERBATIM, _of("judged.verdict"), _VERDICT, "verdict", 9, fixed=True),
        Field("level", COUNT, _of("judged.level"), _LEVEL, f"it is odd, or {_NO_STEP}"),
        _judged("change_percent", "change", _CHANGE, "change", 7),
        _judged("noise_percent", "noise", _NOISE, "noise", 6),
        _shown("roof_percent", SHARE_PERCENT, "roof_fraction", "part of a step at the roof", "at roof", 7, _NO_ACCOUNT),
        _shown("mfu_percent", SHARE_PERCENT, "mfu", _MFU, "MFU", 6, f"no FLOPs or no peak is known, or {_NO_ACCOUNT}"),
        _shown("exposed_collective_ms", TIME_MS, "collective_ps", _EXPOSED, "exposed", 9, _NO_ACCOUNT),
        _shown("device_idle_percent", PERCENT, "idle_percent", _IDLE, "idle", 6, _NO_ACCOUNT),
        _shown("peak_memory_bytes", BYTES, "memory_bytes", _MEMORY, "memory", 9, "no allocator reported it"),
        named("findings", _FINDINGS, _of(_worths), "how much findings save per step", "findings", 34),
        Field("problem", TEXT, _of("problem"), "why its step time is unknown", "it is known"),
    ),
    len,
    csv=(
        *("run", "written", "program", "step_time_ms", "step_error_ms", "step_count", "mean_step_time_ms", "verdict"),
        *("level", "change_percent", "noise_percent", "roof_percent", "mfu_percent", "exposed_collective_ms"),
        *("device_idle_percent", "peak_memory_bytes", "problem"),
    ),
    markdown=(
        *("run", "written", "step_time_ms", "verdict", "change_percent", "noise_percent", "roof_percent"),
        *("mfu_percent", "exposed_collective_ms", "device_idle_percent", "peak_memory_bytes", "findings"),
    ),
    screen=(
        *("run", "step_time_ms", "verdict", "change_percent", "noise_percent", "roof_percent", "mfu_percent"),
        *("exposed_collective_ms", "device_idle_percent", "peak_memory_bytes", "findings", "written"),
    ),
)
_CHANGES: Table[Sequence[TrendRow]] = object_table(
    "changes",
    (
        attribute("run", TEXT, "the first run of the new level", name="run.name"),
        attribute("verdict", VERBATIM, "slower or faster", name="judged.verdict"),
        attribute("before_ms", TIME_MS, "the step of the level before", name="judged.before_ps"),
        attribute("step_time_ms", TIME_MS, "the step of that run", name="point.step_ps"),
        attribute("change_percent", SHARE_PERCENT, "by how much", name="judged.change"),
        attribute("noise_percent", SHARE_PERCENT, "how much of that could be noise", name="judged.noise"),
    ),
)
_NOT_ASKED = "--fail-on-regression was not given"
# --- words


def statement(page: Trend) -> str:
    """The series in a sentence."""
    known = [row for row in page.runs if row.point is not None and row.point.step_ps is not None]
    runs = counted(len(page.runs), "run")
    if not known:
        return f"{runs}, none with a step time."
    last = known[-1].point
    now = duration(None if last is None else last.step_ps)
    if not page.changes:
        return f"{runs}: a step of the newest run with steps takes {now}; no change exceeds the noise."
    row = page.changes[-1]
    change, noise = (f"{100 * abs(value or 0.0):.1f}%" for value in (row.judged.change, row.judged.noise))
    by = f"{change} {row.judged.verdict}, noise {noise}"
    return f"{runs}: a step of the newest run takes {now}; it changed last with {printable(row.run.name)}, {by}."


def _of_check(name: str, unit: Unit, read: str, meaning: str) -> Metric[Trend]:
    return attribute(f"regression.{name}", unit, meaning, null=_NOT_ASKED, name=f"check.{read}")


METRICS: tuple[Metric[Trend], ...] = (
    Metric("statement", TEXT, statement, "the series in a sentence"),
    Metric("run_count", COUNT, len, "runs before any limit", heading="runs"),
    Metric("changes", listed(_CHANGES), lambda page: page.changes, "where a new level begins, oldest first"),
    _of_check("allowed_percent", SHARE_PERCENT, "allowed", "as asked"),
    _of_check("outcome", VERBATIM, "outcome", "passed, slower or unknown"),
    _of_check("sentence", VERBATIM, "sentence", "why; empty for a plain pass"),
)


def _spark(page: Trend, pen: Pen) -> list[Line]:
    """Step times as columns from 0 on, the oldest run first: as many of the newest runs as there is room for."""
    heights, room = pen.glyphs.column, max(pen.width - 12, 1)
    times = [None if row.point is None else row.point.step_ps for row in page.runs][-room:]
    most = max((time for time in times if time is not None), default=0.0)
    if not most:
        return []
    top = len(heights) - 1
    drawn = "".join(" " if time is None else heights[max(1, round(time / most * top))] for time in times)
    return [pen.fit([(" step time  ", "dim"), (drawn, "busy")])]


def head_lines(page: Trend, pen: Pen) -> list[Line]:
    """The series in a sentence, the check that was asked for, and step times as columns."""
    lines = pen.wrap(statement(page), "strong")
    if page.check is not None and page.check.sentence:
        lines += pen.wrap(page.check.sentence, "warn")
    return [*lines, *_spark(page, pen)]


def _warnings(page: Trend) -> tuple[str, ...]:
    problems = tuple(f"{row.run.name}: {row.problem}" for row in page.runs if row.point is None)
    split = [row.run.name for row in page.runs if len({file.path.rpartition("/")[0] for file in row.run.hosts}) > 1]
    groups = dict.fromkeys(row.point.group for row in page.runs if row.point is not None and row.point.group)
    apart = [f"{APART}: figures are of group {of}" for of in groups]
    return (*problems, *(f"{name} is one capture in several folders: it is one run here" for name in split), *apart)


def declare(page: Trend, request: ReportRequest) -> Declared:
    """The statement, the changes, and a row a run."""
    runs = Section(RUNS, page, "Runs", request.most_rows)
    hosts = [host for row in page.runs[-1:] if row.point is not None for host in row.point.hosts]
    title = f"Trend of {printable_url(page.path)}"
    head = Head(title, request.run, hosts, _warnings(page), (), False, counted(len(page), "run"), lists_hosts=False)
    check = "" if page.check is None else page.check.sentence
    return Declared(
        head,
        statement=statement(page),
        parts=(Metrics(METRICS, page), Block(markdown=Section(_CHANGES, page.changes, "Changes").markdown), runs),
        csv=runs,
        text=lambda pen: [*head_lines(page, pen), *runs.lines(pen, ""), *pen.notes(_warnings(page), ())],
        notes=(check,) if check else (),
    )


def checks(page: Trend, _: ReportRequest) -> list[Check]:
    """The newest step; without ``--fail-on-regression`` the runs that can't be read too."""
    unread = [row for row in page.runs if row.point is None and page.check is None]
    return [step_check(page.check, statement(page)), *(Check(row.run.name, "unknown", row.problem) for row in unread)]


REPORT = declared("trend", read, declare, (RUNS,), METRICS, RUNS, _warnings, checks=checks)
