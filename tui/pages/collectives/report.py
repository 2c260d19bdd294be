"""The report on collectives."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.collectives.model import CollectivesPage, Rows
from tpuprof.parsers.pages.collectives.rows import rows_by, single, why_unknown
from tpuprof.tui.draw.layout import clean, fit, note_lines, rule, wrap
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import chosen_columns, header_line, row_lines
from tpuprof.tui.pages.collectives.drawing import slice_table, slice_words, strip_lines
from tpuprof.tui.pages.collectives.fields import GROUPS, SINGLE, Shown
from tpuprof.tui.pages.collectives.figures import FIGURES, SLICES, STEPS, steps_of
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import (
    figure_reasons,
    figure_rows,
    figure_values,
    first,
    order,
    reasons,
    screen_columns,
    table_records,
)
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, figures_table, joined, main_table, page_head, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import page_heading, page_text

_FEW_STEPS = 3


def groups_of(page: CollectivesPage) -> Shown:
    """The groups with most exposed time first."""
    shown = Shown(rows_by(page, "all"), are_groups=True)
    return Shown(_taken(shown.rows, order(GROUPS, shown, "exposed", descending=True)), are_groups=True)


def single_of(page: CollectivesPage) -> Shown:
    """Single collectives, those with most exposed time first."""
    shown = Shown(single(page), are_groups=False)
    return Shown(_taken(shown.rows, order(SINGLE, shown, "exposed", descending=True)), are_groups=False)


def _taken(rows: Rows, places: np.ndarray) -> Rows:
    """Some rows, in their order."""
    picked = places.tolist()
    columns = []
    for name in Rows.__slots__:
        column = getattr(rows, name)
        if name == "cores":
            columns.append(column)
        else:
            columns.append(tuple(column[row] for row in picked) if isinstance(column, tuple) else column[places])
    return Rows(*columns)


def json(page: CollectivesPage, asked: Asked) -> str:
    """Figures, groups, single collectives, those between slices, and steps."""
    groups, each, steps, slices = groups_of(page), single_of(page), steps_of(page), slice_table(page)
    body: dict[str, object] = dict(figure_values(FIGURES, page))
    body["groups"] = table_records(GROUPS, groups, range(len(groups)))
    body["collectives"] = table_records(SINGLE, each, first(len(each), asked.most_rows))
    body["slices"] = table_records(SLICES, slices, range(len(slices)))
    body["steps"] = table_records(STEPS, steps, range(len(steps)))
    why = figure_reasons(FIGURES)
    if page.why_none:
        why |= {figure.key: page.why_none for figure in FIGURES if figure.null and figure.read(page) is None}
    for table, shown in ((GROUPS, groups), (SINGLE, each)):
        own = {f"{table.key}[].{key}": reason for key, reason in why_unknown(page, shown.rows).items()}
        why |= reasons(table.chosen(table.json), f"{table.key}[]", own)
    why |= reasons(SLICES.fields, "slices[]", {})
    return document(head("collectives", asked.run, page.hosts, page.warnings), body, why)


def csv(page: CollectivesPage, asked: Asked) -> str:
    """Groups, those with most exposed time first."""
    groups = groups_of(page)
    return table_csv(GROUPS, groups, first(len(groups), asked.most_rows))


def markdown(page: CollectivesPage, asked: Asked) -> str:
    """The answer, figures, groups, and those between slices."""
    groups, slices, steps = groups_of(page), slice_table(page), steps_of(page)
    lines = page_head(f"Collectives of {asked.run.name}", page.hosts, page.device_type or "", warnings=page.warnings)
    lines += ["", escaped(page.statement)]
    lines += figures_table(figure_rows(FIGURES, page))
    lines += main_table("Collectives", GROUPS, groups, first(len(groups), asked.most_rows), len(groups))
    lines += main_table("Between slices", SLICES, slices, range(len(slices)), len(slices))
    lines += main_table("Steps", STEPS, steps, range(len(steps)), len(steps))
    lines += ["", "## Notes", "", *(f"- {escaped(note)}" for note in page.notes)] if page.notes else []
    return joined([*lines, *unknown_block(why_unknown(page, groups.rows))])


def text(page: CollectivesPage, asked: Asked) -> str:
    """A line for logs; the answer, groups, those between slices, and a strip of a step."""
    glyphs = asked.look.glyphs
    groups, slices = groups_of(page), slice_table(page)

    def lines(width: int) -> list[Line]:
        out = [fit([(clean(page.log_line, glyphs.is_ascii), "strong")], width, glyphs)]
        out.append(page_heading(f"Collectives of {asked.run.name}", page.hosts, width, glyphs))
        out += wrap(page.statement, width, "text", glyphs, [(" ", "text")])
        if len(groups):
            shown = chosen_columns(screen_columns(GROUPS, groups, glyphs), width)
            kept = first(len(groups), asked.most_rows)
            out += [header_line(shown, width, glyphs, "exposed"), *row_lines(shown, kept, None, width, glyphs)]
            if len(kept) < len(groups):
                out.append(
                    fit(
                        [(f"  + {counted(len(groups) - len(kept), 'more group', 'more groups')}", "dim")], width, glyphs
                    )
                )
        if slices:
            out.append(rule("Between slices (DCN)", width, glyphs))
            for each in slices:
                out += wrap(slice_words(each, glyphs), width, "text", glyphs, [(" ", "text")])
        strips = [
            line
            for step in range(min(_FEW_STEPS, len(page.step_names)))
            for line in strip_lines(page, step, width, glyphs)
        ]
        if strips:
            out += [rule(f"What core {page.cores[0]} did", width, glyphs), *strips]
        unknown = why_unknown(page, groups.rows).items()
        return [*out, *note_lines((*page.warnings, *page.notes), unknown, width, glyphs)]

    return page_text(lines, asked.look)


REPORT = Report(
    read=lambda asked: asked.session(asked.run).collectives(asked.host),
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(GROUPS, SINGLE, SLICES, STEPS),
    figures=FIGURES,
    csv_table=GROUPS,
    warnings=lambda page: page.warnings,
)
