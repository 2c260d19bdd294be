"""The hosts of a run in cells: the verdict, a row a host with how late it is in each step, and one host taken apart.

Numbers in, lines out; where the reader is stands in `HostsState`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.hosts.model import PARTS, HostRow, HostsPage, LeftOut, SharedSteps, StepPartName, Verdict
from tpuprof.tui.draw.format import UNKNOWN, duration, percent
from tpuprof.tui.draw.pen import Composed, Pen, cut, cut_words, filled
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, whole_cells
from tpuprof.tui.draw.table import Column, Listing, chosen_columns, each, header_line, row_lines
from tpuprof.tui.pages.hosts.fields import CORES, HOSTS, LISTED, how_many, name_width, of_cores, with_cores
from tpuprof.tui.report import fields
from tpuprof.tui.report.fields import Table

_STYLE: dict[StepPartName, tuple[str, StyleKey]] = {
    "compute": ("C", "class.compute"),
    "input": ("I", "class.host"),
    "output": ("O", "class.host"),
    "transfer": ("T", "class.copy"),
    "collective": ("N", "class.collective"),
    "wait": ("W", "strong"),
    "idle": (".", "class.idle"),
}
"""Letter and style of each part of a step."""

_SIGN: dict[Verdict, tuple[str, StyleKey]] = {
    "straggler": ("STRAGGLER", "bad"),
    "even": ("EVEN", "good"),
    "uneven": ("UNEVEN", "warn"),
    "independent": ("INDEPENDENT", "good"),
    "unknown": ("NOT COMPARED", "warn"),
}
_LEAST_GRAPH = 8
_LEAST_SPAN = 0.02  # of a step, that a full column stands for
_MOST_NAME = 28
_MOST_CORES = 8
_FEW_HOSTS = 8
_LEAST_ROWS = 5
_FIGURE = 9


@dataclass(frozen=True, slots=True)
class HostsState(Listing):
    """Where the reader is.

    Attributes:
        cursor: in the list as it is sorted; rows after the hosts are those left out, and further down the notes scroll.
        sort: title of a column; `host` is the order of the run.
        step: of the common ones, the one that is taken apart below the table; None for their mean.
        with_cores: whether each host's cores stand below it.
    """

    sort: str = "host"
    step: int | None = None
    with_cores: bool = True


@dataclass(frozen=True, slots=True)
class ComposedHosts(Composed):
    """The page as lines, and what is where.

    Attributes:
        order: index into the rows of `with_cores` of each row of the table, all of them but those of hosts that are
            left out; None for the first where that stands for all hosts.
        positions: how far down the cursor goes, notes and all.
    """

    order: tuple[int | None, ...]
    positions: int


def compose_hosts(page: HostsPage, state: HostsState, pen: Pen, height: int) -> ComposedHosts:
    """The page in so many lines: verdict, list, and below it the host under the cursor, or the notes."""
    listed = with_cores(page) if state.with_cores or is_of_one_host(page) else page
    order = listed_order(page, listed, state)
    head = [*_judged(page, pen), _heading(page, pen, "Cores" if is_of_one_host(page) else "Hosts")]
    columns = _table(page, listed, LISTED, pen)
    head.append(header_line(columns, pen, state.sort, LISTED.is_down(state)))
    entries = len(order) + len(page.left_out)
    body = max(0, height - len(head) - min(entries, _LEAST_ROWS))
    notes = _notes(page, pen)
    positions = entries + (1 + max(0, len(notes) - body + 1) if notes else 0)
    row = state.at(state.cursor, positions).cursor
    if row < entries:
        below, shown = _detail(page, listed, order, row, state.step, pen)
        notes = _notes(page, pen, shown)
    else:
        below, notes = [pen.rule("Notes"), *notes[row - entries :]], []
    below = below[:body]
    room = max(1, height - len(head) - len(below))
    rows = min(entries, room)
    if len(notes) > room - rows:  # what does not fit shows when the cursor goes on
        rows -= rows == room > 1
        notes = [*notes[: max(0, room - rows - 1)], pen.fit([("   more notes below the last row", "dim")])]
    top = state.at(row, entries).shown_first(rows, entries)
    table = [_entry(page, order, columns, entry, entry == row, pen) for entry in range(top, top + rows)]
    lines = [pen.fit(line) for line in filled([*head, *table, *below, *notes], pen.width, height)]
    return ComposedHosts(tuple(lines), len(head), top, rows, order, positions)


def is_of_one_host(page: HostsPage) -> bool:
    """Whether the run has one host, whose row is that of all its cores."""
    return len(page.rows) == 1 and not page.left_out


def listed_order(page: HostsPage, listed: HostsPage, state: HostsState) -> tuple[int | None, ...]:
    """The rows of the list: all hosts, each with its cores below it, both sorted; `listed` is the page `with_cores`."""
    out: list[int | None] = [] if is_of_one_host(page) else [None]
    every = fields.order(LISTED, listed, state.sort, LISTED.is_down(state)).tolist()
    cores: dict[tuple[str, int], list[int]] = {}
    for index in every if state.with_cores else ():
        if listed.rows[index].core is not None:
            cores.setdefault(_owner(listed.rows[index]), []).append(index)
    for index in every:
        if listed.rows[index].core is None:
            out += [index, *cores.get(_owner(listed.rows[index]), ())]
    return tuple(out)


def _owner(row: HostRow) -> tuple[str, int]:
    """Whose row below which a core stands: its host's, and group's."""
    return row.host, row.group


def hosts(page: HostsPage, pen: Pen, limit: int = 0) -> list[Line]:
    """The whole page: every host, every core's mean step, what is odd; of at most `limit` hosts, or all for 0."""
    order = fields.order(LISTED, page, "host", False).tolist()[: limit or None]
    columns = _table(page, page, HOSTS, pen)
    lines = [*_verdict(page, pen), _heading(page, pen), *_rows(columns, order, len(page.rows), "more host", pen)]
    for out in page.left_out:
        name, text = _missing(out, columns[0].width, pen.glyphs)
        lines += pen.wrap(text, "warn", [(f" {name}", "bad")])
    if page.every_step:
        lines += _every_host(page, order, pen)
    return [pen.fit(line) for line in (*lines, *_noted(page, pen))]


def cores(page: HostsPage, pen: Pen, limit: int = 0) -> list[Line]:
    """The cores side by side, with where a mean step of each goes; at most `limit` of them, or all for 0."""
    listed = of_cores(page)
    chosen = range(len(listed.rows))[: limit or None]
    lines = [*pen.wrap(page.cores_statement, "text", [(" ", "text")], indent=1)]
    if chosen:
        lines += _rows(_table(page, listed, CORES, pen), chosen, len(listed.rows), "more core", pen)
    if page.every_step:
        lines += _parts_heading("Where a mean step goes", page.every_step, pen)
        longest = _longest(page.every_step)
        for row in (listed.rows[index] for index in chosen):
            if row.parts_ps is not None:
                lines.append(_parts_line(row.label, row.parts_ps, longest, pen, "dim"))
    return [pen.fit(line) for line in (*lines, *_noted(listed, pen))]


def _rows(columns: Sequence[Column], rows: Sequence[int], whole: int, what: str, pen: Pen) -> list[Line]:
    """The heading, some rows, and how many of the `whole` are left out."""
    lines = [header_line(columns, pen), *row_lines(columns, rows, None, pen)]
    if len(rows) < whole:
        lines.append(pen.fit([(f"   and {counted(whole - len(rows), what)}; --limit 0 shows all", "dim")]))
    return lines


def _noted(page: HostsPage, pen: Pen) -> list[Line]:
    notes = _notes(page, pen)
    return [pen.rule("Notes, and what these profiles cannot show"), *notes] if notes else []


def _verdict(page: HostsPage, pen: Pen) -> list[Line]:
    sign, key = _SIGN[page.verdict]
    return pen.wrap(page.statement, "text", [(f" {sign} ", key)], indent=1)


def _judged(page: HostsPage, pen: Pen) -> list[Line]:
    """The verdict on the hosts, or of one host on its cores."""
    if not is_of_one_host(page):
        return _verdict(page, pen)
    compares = page.steps is not None and len(page.cores) > 1
    sign: Span = (" CORES ", "good" if compares else "warn")
    if page.slowest_core is not None:
        sign = (" SLOWEST CORE ", "warn")
    return pen.wrap(page.cores_statement, "text", [sign], indent=1)


def _heading(page: HostsPage, pen: Pen, what: str = "Hosts") -> Line:
    shared = "no common steps" if page.steps is None else counted(len(page.steps), "common step")
    if page.steps is not None and page.group_count > 1:
        shared += f" of group {page.steps.group}"
    number = counted(len(page.cores), "core") if what == "Cores" else how_many(page)
    return pen.rule(f"{what} {pen.glyphs.dash} {number}", shared)


def _table(page: HostsPage, listed: HostsPage, table: Table[HostsPage], pen: Pen) -> list[Column]:
    """The columns that fit, and in the room that is left how late each `listed` host, or core, is in each step."""
    longest = max([name_width(listed), *(len(pen.text(out.host)) for out in page.left_out)])
    widest = min(_MOST_NAME, longest, max(8, pen.width // 4))
    keys = [key for key in table.screen if key != "group" or page.group_count > 1]
    looks = {key: {"width": widest} if key == table.screen[0] else {} for key in keys}
    columns = fields.screen_columns(table, listed, pen.glyphs, looks)
    room = pen.width - 2 - widest - 1
    least = max(_LEAST_GRAPH, min(room // 3, len(page.steps) if page.steps is not None else 0))
    if page.steps is None or room < 4 * _LEAST_GRAPH:
        return chosen_columns(columns, pen.width)
    shown = chosen_columns(columns, pen.width - least - 1)
    used = 1 + sum(column.width + 1 for column in shown)
    cells = max(least, min(pen.width - used - 1, len(page.steps)))
    most, levels_of = len(pen.glyphs.column) - 1, dict[str, list[int]]()
    for steps in page.every_step:
        hosts = [page.rows[row].label for row in steps.rows]
        levels_of |= zip(hosts, _levels(steps.done_ps, cells, most).tolist(), strict=True)
        if any(row.core is not None for row in listed.rows):
            levels_of |= zip(steps.core_names, _levels(steps.core_done_ps, cells, most).tolist(), strict=True)

    def graph(row: int) -> Span:
        heights = levels_of.get(listed.rows[row].label)
        return (UNKNOWN, "dim") if heights is None else ("".join(map(pen.glyphs.column.__getitem__, heights)), "busy")

    title = "late by step" if cells >= len("late by step") else "late"
    return [*shown, Column("", title, cells, each(graph), right=False)]


def _entry(
    page: HostsPage, order: Sequence[int | None], columns: Sequence[Column], entry: int, selected: bool, pen: Pen
) -> Line:
    """A row of the table: a host's figures, or why it is left out."""
    if entry < len(order):
        place = order[entry]
        if place is not None:
            return row_lines(columns, [place], place if selected else None, pen)[0]
        words = "all cores, merged" if page.host_count == 1 else f"all {counted(page.host_count, 'host')}, merged"
        return pen.fit([(pen.glyphs.mark, "mark"), (words, "cursor")] if selected else [(f" {words}", "strong")])
    name, text = _missing(page.left_out[entry - len(order)], columns[0].width, pen.glyphs)
    text = cut_words(text, pen.width - 1 - len(name), pen.glyphs)
    if selected:
        return pen.fit([(pen.glyphs.mark, "mark"), (name + text, "cursor")])
    return pen.fit([(f" {name}", "bad"), (text, "warn")])


def _missing(out: LeftOut, name_width: int, glyphs: Glyphs) -> tuple[str, str]:
    """A host's name, and in place of its figures why they are not there; the file's path says no more than the name."""
    first, _, rest = out.reason.partition(" ")
    reason = rest if rest and "/" in first and out.host in first else out.reason
    name = cut(out.host, name_width, glyphs)
    return f"{name:<{name_width}} ", f"left out: {reason}"


def _levels(own_ps: NDArray[np.int64], cells: int, most: int) -> NDArray[np.int64]:
    """int64[rows, cells]: heights of columns, by how much later than the fastest host each is in that step.

    They are made of the own times, int64[rows, steps]. Of steps that share a cell the one in which a host is latest
    counts. Hosts that differ by next to nothing are all low.
    """
    own = own_ps.astype(np.float64)
    late = own - own.min(axis=0)
    borders = np.arange(cells) * late.shape[1] // cells
    latest = np.maximum.reduceat(late, borders, axis=1)
    span = max(float(latest.max()), _LEAST_SPAN * float(own.mean()), 1.0)
    return np.clip(np.ceil(latest / span * most), 1, most).astype(np.int64)


def _longest(every: Sequence[SharedSteps], step: int | None = None) -> float:
    """How long the slowest core takes, for a step or for the mean of all."""
    wholes = [steps.parts_ps.sum(axis=2) for steps in every]
    return max(float((whole.mean(axis=1) if step is None else whole[:, step]).max()) for whole in wholes)


def _detail(
    page: HostsPage, listed: HostsPage, order: Sequence[int | None], entry: int, step: int | None, pen: Pen
) -> tuple[list[Line], tuple[str, ...]]:
    """A step of a host taken apart, by core, and what is wrong with the host's profile; the sentences on that, too."""
    if entry >= len(order):
        out = page.left_out[entry - len(order)]
        return [pen.rule(out.host), *pen.wrap(out.reason, "text", [(" ! ", "bad")])], (out.reason,)
    place = order[entry]
    if place is None:
        return [pen.rule(f"Enter opens {how_many(page)} together")], ()
    core = listed.rows[place]
    host_index = next(index for index, row in enumerate(page.rows) if _owner(row) == _owner(core))
    row, lines = page.rows[host_index], list[Line]()
    steps = page.steps_of(row)
    if steps is not None and host_index in steps.rows:
        step = None if step is None else min(max(step, 0), len(steps) - 1)
        which = "A mean step" if step is None else f"Step {steps.names[step]}"
        lines += _parts_heading(f"{which} of {row.label}", [steps], pen)
        lines += _core_lines(steps, host_index, step, pen, core.label if core.core is not None else "")
    else:
        lines.append(pen.rule(row.label))
    return [*lines, *pen.notes(row.problems, ())], row.problems


def _every_host(page: HostsPage, order: Sequence[int], pen: Pen) -> list[Line]:
    """The mean step of every host, and of its cores where there are few hosts or it is the straggler."""
    lines = _parts_heading("Where a mean step goes", page.every_step, pen)
    longest = _longest(page.every_step)
    for host_index in order:
        row, steps = page.rows[host_index], page.steps_of(page.rows[host_index])
        if row.parts_ps is not None:
            lines.append(_parts_line(row.label, row.parts_ps, longest, pen, "strong"))
            is_told = len(page.rows) <= _FEW_HOSTS or host_index == page.straggler
            if row.cores > 1 and is_told and steps is not None and host_index in steps.rows:
                lines += _core_lines(steps, host_index, None, pen, longest=longest)
    return lines


def _parts_heading(title: str, every: Sequence[SharedSteps], pen: Pen) -> list[Line]:
    """A heading and what the bars' parts are, those that there are, on one line where it holds both."""
    signs: list[Span] = []
    for part in np.flatnonzero(np.any([steps.parts_ps.any(axis=(0, 1)) for steps in every], axis=0)).tolist():
        letter, key = _STYLE[PARTS[part]]
        signs += [(f" {letter if pen.glyphs.letters else pen.glyphs.full}", key), (f" {PARTS[part]}", "dim")]
    room = pen.width - sum(len(text) for text, _ in signs) - 1
    if not signs:
        return [pen.rule(title)]
    if room < len(title) + 4:
        return [pen.rule(title), pen.fit(signs)]
    return [(*pen.at(room).rule(title), *signs, (" ", "text"))]


def _core_lines(
    steps: SharedSteps, host_index: int, step: int | None, pen: Pen, chosen: str = "", longest: float | None = None
) -> list[Line]:
    """A row for each core of a host, few of many: the first, or those up to the chosen one."""
    parts = steps.parts_ps.mean(axis=1) if step is None else steps.parts_ps[:, step]
    longest = _longest([steps], step) if longest is None else longest
    mine = np.flatnonzero(steps.core_hosts == steps.rows.index(host_index)).tolist()
    lines = []
    last = max(_MOST_CORES, *(place + 1 for place, core in enumerate(mine) if steps.core_names[core] == chosen), 0)
    for core in mine[last - _MOST_CORES : last]:
        is_chosen = steps.core_names[core] == chosen
        name = f"core {steps.core_names[core].rpartition(':')[2]}{f' {pen.glyphs.mark}' if is_chosen else ''}"
        key: StyleKey = "strong" if is_chosen else "dim"
        lines.append(_parts_line(name, parts[core].tolist(), longest, pen, key))
    if len(mine) > _MOST_CORES:
        lines.append(pen.fit([(f"   and {counted(len(mine) - _MOST_CORES, 'more core')}", "dim")]))
    return lines


def _parts_line(name: str, parts: Sequence[float], longest: float, pen: Pen, key: StyleKey) -> Line:
    """Name, whole time, and a bar of the parts as long as the time is of the longest; the largest parts in figures."""
    whole = sum(parts)
    label = max(10, min(_MOST_NAME, pen.width // 5))
    text = cut(name, label, pen.glyphs)
    head: list[Span] = [(f" {text:<{label}}", key), (f"{duration(whole, pen.glyphs.is_ascii):>{_FIGURE}} ", "text")]
    metrics = _part_figures(parts, whole, pen.width)
    cells = pen.width - 1 - label - _FIGURE - 1 - len(metrics) - 1
    size = round(cells * whole / longest) if longest > 0 else 0
    bar: list[Span] = []
    for part, width_ in zip(PARTS, whole_cells(parts, size), strict=True):
        letter, style = _STYLE[part]
        bar.append(((letter if pen.glyphs.letters else pen.glyphs.full) * width_, style))
    return pen.fit([*head, *bar, (" " * (cells - size), "text"), (f" {metrics}", "dim")])


def _part_figures(parts: Sequence[float], whole: float, width: int) -> str:
    """The shares that matter, the largest first, as far as a third of the line holds them."""
    text = ""
    for value, part in sorted(zip(parts, PARTS, strict=True), reverse=True) if whole > 0 else ():
        fraction = value / whole
        more = f"{part} {percent(100 * fraction)}"
        longer = f"{text}, {more}" if text else more
        if fraction < 0.0005 or len(longer) > width // 3:
            break
        text = longer
    return f"{text:<{width // 3}}"


_NAMES = {
    "step_time": "step time",
    "own_ps": "own time",
    "input_percent": "waiting for input",
    "mxu_percent": "MXU",
    "hbm_percent": "HBM",
    "idle_percent": "idle of capture",
    "busy_percent": "busy",
    "duty_percent": "duty cycle",
}


def _notes(page: HostsPage, pen: Pen, shown: Sequence[str] = ()) -> list[Line]:
    """Warnings but those that are `shown` elsewhere, and the figures that are unknown, grouped by reason."""
    warnings = (warning for warning in page.warnings if warning not in shown)
    unknown = ((_NAMES[key], why) for key, why in page.unknown.items() if key in _NAMES)
    return pen.notes(warnings, unknown, f" {pen.glyphs.dash} ")
