"""How a model runs, as a view of the overview: its blocks with a cursor, then the waterfall and layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.overview.model_use.blocks import NO_OP, ROW_WORDS, BlockRow
from tpuprof.parsers.pages.overview.model_use.page import MODEL, ModelPage
from tpuprof.parsers.pages.overview.model_use.samples import Samples
from tpuprof.tui.draw.columns import ComposedGraph, Cursor, rows_from
from tpuprof.tui.draw.format import UNKNOWN, binary_size, duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, Span
from tpuprof.tui.pages.overview.ledger.model_use import report
from tpuprof.tui.pages.overview.ledger.model_use.drawing import block_lines, layer_lines, waterfall
from tpuprof.tui.report.describe import Section

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Publish

_MEANINGS: Mapping[str, str] = {
    "MFU, HFU": "the model's FLOPs, and all FLOPs that ran, as a share of what the cores could compute at their peak.",
    "tokens a second": "tokens, or samples, of a step by the arguments of its program; `report model --tokens` "
    "sets another number.",
    "blocks": "by the names of scopes, functions and kernels; other ops by what they compute and by their "
    "neighbours. Blocks add up to the mean step.",
    "by name": "the part of the time in ops whose names give the block.",
    "of peak": "FLOPs over what the cores could compute at their peak in the same time.",
    **{block: f"{words}." for block, words in ROW_WORDS.items()},
    "n/a": "unknown: the notes (W) say why. Unknown is never shown as 0.",
}


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Reads the page, and publishes what shows it: the tab imports neither before the view is asked for."""
    publish("model", ModelView(session.page(MODEL, host)))


def meanings() -> Mapping[str, str]:
    """What the figures of the view are called and mean."""
    return _MEANINGS


@dataclass(frozen=True, slots=True)
class ModelView:
    """The view of a page: its rows are the blocks, each in a pass."""

    page: ModelPage

    @property
    def content(self) -> report.ModelUseContent:
        return report.content_of(self.page)

    @property
    def sections(self) -> list[Section]:
        content = self.content
        return [("Model", [(metric, content) for metric in report.METRICS])]

    @property
    def names(self) -> Sequence[str]:
        return [f"{row.block} {row.phase}" if row.phase else row.block for row in self.page.blocks]

    def largest_op(self, index: int) -> str:
        """The op with most of a row's time; empty without any."""
        return (report.largest_op(self.page.blocks[index]) or "") if index < len(self.page.blocks) else ""

    def compose(self, pen: Pen, cursor: Cursor) -> ComposedGraph:
        page, content = self.page, self.content
        lines: list[Line] = [
            *pen.narrower(1).wrap(report.statement(content.use), "strong", [(" ", "text")]),
            _figures(content, pen),
        ]
        listed = rows_from(len(lines) + 2, "ops", range(len(page.blocks)))
        lines += block_lines(page, pen, cursor.op)
        if content.use.parts:
            lines += [pen.rule("From the peak to MFU"), *waterfall(content.use, pen)]
        lines += layer_lines(page, 0, pen)
        notes = report.notes(content, (), pen)
        lines += [pen.rule("What this profile cannot show"), *notes] if notes else []
        return ComposedGraph(tuple(pen.fit(line) for line in lines), -1, -1, listed)

    def line(self, index: int, pen: Pen) -> Line:
        if index >= len(self.page.blocks):
            return pen.fit([])
        row = self.page.blocks[index]
        spans: list[Span] = [(" block ", "dim"), (self.names[index], "strong")]
        if row.largest:
            name, time = row.largest[0]
            spans += [
                (f"  {row.ops:,} ops, most in ", "dim"),
                (name, "text"),
                (f" {duration(time, pen.glyphs.is_ascii)}", "dim"),
            ]
        return pen.fit(spans)

    def details(self, index: int, pen: Pen) -> list[Line]:
        if index >= len(self.page.blocks):
            return []
        row, ascii_only = self.page.blocks[index], pen.glyphs.is_ascii
        lines = [pen.fit([(self.names[index], "strong")]), *pen.wrap(f"{ROW_WORDS[row.block]}.", "dim")]
        lines += [pen.fit([(f"  {name:<14}", "dim"), (text, "text")]) for name, text in _facts(row, ascii_only)]
        if row.largest:
            lines += [pen.rule("Ops", f"{len(row.largest)} of {row.ops:,}"), *_times(row.largest, pen)]
        inside = sorted((each for each in self.page.layers if each.block == row.block), key=lambda each: -each.time_ps)
        if len(inside) > 1:
            lines += [pen.rule("Layers, all passes")]
            lines += _times([(each.layer or "", each.time_ps) for each in inside], pen)
        return lines


def _times(of: Sequence[tuple[str, float]], pen: Pen) -> list[Line]:
    return [pen.fit([(f"  {duration(time, pen.glyphs.is_ascii):>9}  ", "text"), (name, "text")]) for name, time in of]


def _figures(content: report.ModelUseContent, pen: Pen) -> Line:
    """Tokens a second, and how far steps spread, in one line."""
    page, use, ascii_only = content.model, content.use, pen.glyphs.is_ascii
    kind, rate = page.samples.kind if isinstance(page.samples, Samples) else "tokens", use.tokens_per_second
    spans: list[Span] = [(f" {kind} a second ", "dim"), (report.RATE.words(rate, ascii_only), "text")]
    if (time := page.step_time) is not None:
        least, middle, most = (duration(ps, ascii_only) for ps in (time.minimum_ps, time.median_ps, time.maximum_ps))
        spans += [("  steps ", "dim"), (f"{least} {pen.glyphs.dash} {most}", "text"), (f", median {middle}", "dim")]
    return pen.fit(spans)


def _facts(row: BlockRow, ascii_only: bool) -> list[tuple[str, str]]:
    rate = None if row.peak_fraction is None else 100 * row.peak_fraction
    size = None if row.hbm_bytes is None else round(row.hbm_bytes)
    facts = [
        ("time", f"{duration(row.time_ps, ascii_only)} of a step, {percent(100 * row.fraction)}"),
        ("FLOPs", UNKNOWN if row.flops is None else f"{row.flops:.4g} in a step, over all cores"),
        ("of the peak", percent(rate)),
        ("HBM", f"{binary_size(size)} in a step, over all cores" if size is not None else UNKNOWN),
    ]
    if row.uncounted_ps:
        facts.append(("not counted", f"{duration(row.uncounted_ps, ascii_only)} in ops of unknown work"))
    if row.block != NO_OP and row.time_ps:
        facts.append(("by name", percent(100 * row.by_name_ps / row.time_ps)))
    return facts
