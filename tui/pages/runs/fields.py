"""The quantities of runs: what their files say, and the facts that somebody has looked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.base.words import SOURCE_HELP
from tpuprof.tui.draw.format import UNKNOWN, age, duration, utc
from tpuprof.tui.draw.spans import Glyphs, Span
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.report.fields import ColumnSpec, Field, Rows, Table, of_each
from tpuprof.tui.report.units import COUNT, FILE_BYTES, FLAG, PROBLEMS, TEXTS, TIME_PS, Unit, plain

if TYPE_CHECKING:  # the list stands before numpy is imported
    from tpuprof.parsers.base.errors import Problem
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.run_facts import RunFacts

NOT_YET = "..."


@dataclass(frozen=True, slots=True)
class RunRow:
    """One row.

    Attributes:
        facts: what is known of it; None as long as nobody has looked.
        is_newest, is_shown: it is the newest of all runs, or the one that is open.
        mark: ``A`` or ``B`` for the first of two runs to compare, else empty.
    """

    run: Run
    facts: RunFacts | None = None
    is_newest: bool = False
    is_shown: bool = False
    mark: str = ""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with its files, as far as somebody has looked."""
        return (*self.run.problems, *(() if self.facts is None else self.facts.problems))


@dataclass(frozen=True, slots=True)
class ListedRuns(Sized):
    """Rows in their order, and the time in seconds since 1970 that ages are counted from."""

    rows: Sequence[RunRow]
    now: float = 0.0


# --- words


def short_age(run: Run, now: float) -> str:
    """How old a run is, in six cells: ``now``, ``5 min``, ``12 d``."""
    if run.time <= 0:
        return UNKNOWN
    words = age(now - run.time).removesuffix(" ago")
    words = {"just now": "now", "in the future": "future"}.get(words, words)
    return words if len(words) <= 6 else ">99 y"


def step_words(facts: RunFacts | None, is_ascii: bool) -> str:
    """The step time; with ``~`` where it was inferred from the periods of a module."""
    if facts is None or facts.core_step_ps is None:
        return UNKNOWN
    return ("" if facts.step_source == "steps" else "~") + duration(facts.core_step_ps, is_ascii)


def device_words(facts: RunFacts) -> str:
    """``TPU v5 Lite x4``; empty where there is none."""
    if facts.device_type is None:
        return ""
    return facts.device_type + (f" x{facts.core_count}" if facts.core_count and facts.core_count > 1 else "")


# --- fields

_TEXT = Unit("text", plain, lambda value, _: value, is_text=True)
_WORDS = Unit("text", plain, lambda value, _: value)
_UTC = Unit("text", plain, lambda value, _: value or "?", is_text=True)
_TALLY = Unit("count", plain, lambda value, _: str(value))
_FAULTS = Unit("count", plain, lambda value, _: str(value or ""))
_STEP = Unit("text", plain, step_words)


def _blank(unit: Unit) -> Unit:
    """The same with nothing where a person reads of what is unknown."""
    return replace(unit, words=lambda value, is_ascii: "" if value is None else unit.words(value, is_ascii))


_of_row = partial(of_each, within="rows")


def _known(read: Callable[[RunFacts], Any]) -> Callable[[RunRow], Any]:
    """What is read of the facts, None for a run that nobody has looked into."""
    return lambda row: None if row.facts is None else read(row.facts)


def _drawn(draw: Callable[[RunRow, bool], Span]) -> Callable[[ListedRuns, Glyphs], Cells]:
    """Cells drawn from the whole row; with True in ASCII characters only."""
    return lambda source, glyphs: each(lambda index: draw(source.rows[index], glyphs.is_ascii))


def _drawn_fact(write: Callable[[RunFacts, bool], str]) -> Callable[[ListedRuns, Glyphs], Cells]:
    """Cells of a fact: dots as long as nobody has looked, `UNKNOWN` where the profile does not record it."""

    def draw(row: RunRow, is_ascii: bool) -> Span:
        words = NOT_YET if row.facts is None else write(row.facts, is_ascii)
        return words, "dim" if row.facts is None or words == UNKNOWN else "text"

    return _drawn(draw)


def _sign(row: RunRow, _: bool) -> Span:
    """What stands before a name: the letter of a run to compare, or a star for the newest."""
    if row.mark:
        return row.mark, "key"
    return ("*", "key") if row.is_newest else (" ", "text")


def _problem_sign(row: RunRow, _: bool) -> Span:
    count = len(row.problems)
    if not row.run.hosts:
        return "!!", "warn"
    return (f"!{count}" if 1 < count < 10 else "!", "warn") if count else ("", "text")


def _name(row: RunRow, is_ascii: bool) -> Span:
    return row.run.name, "strong" if row.is_shown else "text" if row.run.hosts else "dim"


def _step_times(source: ListedRuns) -> list[int | None]:
    return [None if row.facts is None else row.facts.core_step_ps for row in source.rows]


def _ages(source: ListedRuns, rows: Rows) -> list[str]:
    return [short_age(source.rows[row].run, source.now) for row in rows]


def _fact(attribute: str, key: str, unit: Unit, meaning: str, heading: str = "") -> tuple[str, Field[ListedRuns]]:
    null = "the profile does not say, or the run has not been read"
    return attribute, Field(key, unit, _of_row(f"facts.{attribute}"), meaning, null, heading)


_CORE_STEP = (
    "median of the steps on one core, found without reading its ops or the host; a step of the overview is that of the "
    "slowest core. For a core without a Steps line it is the overview's step, for small profiles and those with an "
    "overview in the cache"
)

_CORE_STEPS = (
    "how many steps that median is of: each marker of that core is one, or each period of its busiest module. A step "
    "of the overview may have several markers, and is in the capture as a whole"
)

_VERSIONS = "versions and builds of JAX, libtpu or XLA, if the profile has them"
_FACTS = (
    _fact("device_type", "device_type", _blank(_TEXT), "the type of the device, such as TPU v5 Lite", "device"),
    _fact("core_count", "host_core_count", COUNT, "TensorCores, or GPUs, of the host that was read"),
    _fact("modules", "modules", _blank(TEXTS), "HLO modules, the busiest first, some of many", "modules"),
    _fact("module_count", "module_count", COUNT, "how many HLO modules there are"),
    _fact("core_step_ps", "core_step_ps", _blank(TIME_PS), _CORE_STEP, "step on one core"),
    _fact("step_source", "step_time_source", _TEXT, SOURCE_HELP),
    _fact("step_count", "step_count", COUNT, _CORE_STEPS),
    _fact("duration_ps", "profile_duration_ps", TIME_PS, "how long was profiled, as the profiler recorded it"),
    _fact("has_hlo", "has_hlo", FLAG, "whether the profile holds compiled HLO"),
    _fact("host_tracing", "host_tracing", _TEXT, "what the host's threads recorded: off, annotations or python"),
    _fact("versions", "software_versions", _blank(TEXTS), _VERSIONS),
)
FACTS = {field.key: attribute for attribute, field in _FACTS}
"""Fields that JSON has where facts are there, in its order, and the attributes of `RunFacts` that they hold."""

CSV_FACTS = ("device_type", "host_core_count", "core_step_ps", "step_time_source", "profile_duration_ps", "modules")
MARKDOWN_FACTS = ("core_step_ps", "device_type", "modules")

_FOUND = ("run",)  # what a filter calls the fields that it looks at: there is one filter, for words in any of them


def _row(
    key: str,
    unit: Unit,
    read: str | Callable[[RunRow], Any],
    meaning: str,
    heading: str = "",
    screen: ColumnSpec[ListedRuns] | None = None,
    is_found: bool = True,
) -> Field[ListedRuns]:
    """A field of a row, which the filter looks at if `is_found`."""
    return Field(key, unit, _of_row(read), meaning, "", heading, screen, filter=_FOUND if is_found else ())


_SIGN: ColumnSpec[ListedRuns] = ColumnSpec("", 1, cells=_drawn(_sign), fixed=True)
_NAME: ColumnSpec[ListedRuns] = ColumnSpec("run", 8, cells=_drawn(_name), fixed=True, grows=True)
_FAULTED: ColumnSpec[ListedRuns] = ColumnSpec("!", 2, cells=_drawn(_problem_sign))
_HOSTS: ColumnSpec[ListedRuns] = ColumnSpec("hosts", 5)
_SIZE: ColumnSpec[ListedRuns] = ColumnSpec("size", 7)
_STEP_COLUMN: ColumnSpec[ListedRuns] = ColumnSpec("step", 8, cells=_drawn_fact(step_words))
_DEVICE_CELLS = _drawn_fact(lambda facts, _: device_words(facts) or UNKNOWN)
_DEVICE: ColumnSpec[ListedRuns] = ColumnSpec("device", 14, cells=_DEVICE_CELLS, is_left=True)
_MODULE_CELLS = _drawn_fact(lambda facts, _: UNKNOWN if facts.modules is None else ", ".join(facts.modules))
_NAMES: ColumnSpec[ListedRuns] = ColumnSpec("modules", 0, cells=_MODULE_CELLS)

_HOST_COUNT, _FAULT_COUNT = "how many hosts have a file in it", "how many problems its files have"
_WRITTEN, _NO_TIME = "when its files were written last, in UTC", "the file's time is out of range"
_STEP_TIME = "the median step on one core, with ~ where it is inferred from the periods of a module"
_DEVICE_TYPE = "the type of the device, and how many cores the host that was read has"
RUNS: Table[ListedRuns] = Table(
    "runs",
    (
        _row("sign", _TEXT, lambda row: "newest" if row.is_newest else "", "whether it is the newest run", "", _SIGN),
        _row("name", _TEXT, "run.name", "the name of its folder", "run", _NAME),
        _row("path", _TEXT, "run.path", "where it lies"),
        _row("hosts", TEXTS, lambda row: [file.host for file in row.run.hosts], "hosts that have a file in it"),
        _row("host_count", _TALLY, lambda row: len(row.run.hosts), _HOST_COUNT, "hosts", _HOSTS, False),
        _row("size_bytes", FILE_BYTES, "run.size_bytes", "the size of its files", "size", _SIZE),
        Field("modified", _UTC, _of_row(lambda row: utc(row.run.modified)), _WRITTEN, _NO_TIME, "modified"),
        Field("age", _WORDS, _ages, "how old it is", screen=ColumnSpec("age", 6), filter=_FOUND),
        _row("problems", PROBLEMS, "problems", "what is wrong with its files"),
        _row("problem_count", _FAULTS, lambda row: len(row.problems), _FAULT_COUNT, "problems", _FAULTED, False),
        replace(_row("step", _STEP, "facts", _STEP_TIME, "", _STEP_COLUMN), sort=_step_times),
        _row("device", _WORDS, _known(device_words), _DEVICE_TYPE, "", _DEVICE),
        _row("module_names", TEXTS, _known(lambda facts: facts.modules or ()), "names of the HLO modules", "", _NAMES),
        *(field for _, field in _FACTS),
    ),
    len,
    json=("name", "path", "hosts", "size_bytes", "modified", "problems"),
    csv=("name", "path", "hosts", "host_count", "size_bytes", "modified", "problems"),
    markdown=("name", "host_count", "size_bytes", "modified", "problem_count"),
    screen=("sign", "name", "host_count", "size_bytes", "age", "step", "problem_count", "device", "module_names"),
)
