"""The report on SparseCores; its main table is that of their ops."""

from __future__ import annotations

from tpuprof.parsers.pages.ops.sparse_core import SparseCorePage
from tpuprof.tui.pages.sparse_core.fields import CORES, FIGURES, OPS, SPLIT, STEPS, WAITS
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import figure_reasons, figure_rows, figure_values, first, reasons, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, figures_table, joined, main_table, page_head, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import covered, titled_text


def json(page: SparseCorePage, asked: Asked) -> str:
    """All figures and tables."""
    body: dict[str, object] = figure_values(FIGURES, page)
    why = figure_reasons(FIGURES)
    body["steps"] = table_records(STEPS, page.steps, range(len(page.steps)))
    body["sparse_cores"] = table_records(CORES, page.sparse_cores, range(len(page.sparse_cores)))
    body["waits"] = table_records(WAITS, page.waits, range(len(page.waits)))
    for fields, key in ((STEPS.fields, "steps[]"), (CORES.fields, "sparse_cores[]"), (WAITS.fields, "waits[]")):
        why |= reasons(fields, key, page.unknown)
    body["ops"] = table_records(OPS, page.ops, first(len(page.ops), asked.most_rows))
    why |= reasons(OPS.fields, "ops[]", page.unknown)
    return document(head("sparse-core", asked.run, page.hosts, page.warnings), body, {**why, **page.unknown})


def csv(page: SparseCorePage, asked: Asked) -> str:
    """The ops of the SparseCores."""
    return table_csv(OPS, page.ops, first(len(page.ops), asked.most_rows))


def markdown(page: SparseCorePage, asked: Asked) -> str:
    """The answer, the mean step, SparseCores, who waits, their ops, steps, and what is unknown."""
    lines = page_head(f"SparseCores of {asked.run.name}", page.hosts, warnings=page.warnings)
    lines += ["", escaped(page.statement)]
    if page.mean is not None:
        lines += figures_table(figure_rows(SPLIT, page.mean))
    lines += main_table("SparseCores", CORES, page.sparse_cores, range(len(page.sparse_cores)), len(page.sparse_cores))
    lines += main_table("Who waits", WAITS, page.waits, range(len(page.waits)), len(page.waits))
    shown = first(len(page.ops), asked.most_rows)
    lines += main_table("Ops of the SparseCores", OPS, page.ops, shown, len(page.ops))
    lines += main_table("Steps", STEPS, page.steps, range(len(page.steps)), len(page.steps))
    lines += ["", *(f"- note: {escaped(note)}" for note in page.notes)]
    return joined([*lines, *unknown_block(page.unknown)])


def text(page: SparseCorePage, asked: Asked) -> str:
    """The page as on the screen, and all its tables."""
    from tpuprof.tui.pages.sparse_core.drawing import report_lines  # noqa: PLC0415 - for text alone

    title, hosts = f"SparseCores of {asked.run.name}", covered(page.hosts)
    return titled_text(
        title, hosts, lambda width, glyphs: report_lines(page, width, glyphs, asked.most_rows), asked.look
    )


REPORT = Report(
    read=lambda asked: asked.session(asked.run).sparse_core(asked.host),
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(STEPS, CORES, WAITS, OPS),
    figures=FIGURES,
    csv_table=OPS,
    warnings=lambda page: page.warnings,
)
