"""Two ops side by side, as a text: sentences first, then figures, then arrays; what differs is set off."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.pages.ops.compare import Array, OpComparison, is_alike, ratio
from tpuprof.tui.draw.format import UNKNOWN, count, size
from tpuprof.tui.draw.layout import cut_middle
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, Span, StyleKey
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.report.fields import row_words

LABEL = 13
TIMES = 8  # cells of a label, and of the ratio of two figures

_FIELDS = (
    ("kind", "category"),
    ("program", "program"),
    ("framework op", "framework_op"),
    ("source", "source"),
    ("core", "core_type"),
    ("remat", "remat"),
    ("runs", "occurrences"),
    ("self time", "self_time_ps"),
    ("a run", "average_time_ps"),
    ("share", "self_time_percent"),
    ("bound by", "bound_by"),
    ("of roof", "roofline_efficiency"),
    ("FLOP/s", "gflops_per_second"),
    ("of peak", "flops_utilization"),
    ("HBM B/s", "hbm_gigabytes_per_second"),
    ("of peak", "hbm_bandwidth_utilization"),
    ("chip rd B/s", "bandwidth_gigabytes_per_second.sram_read"),
    ("chip wr B/s", "bandwidth_gigabytes_per_second.sram_write"),
    ("FLOP/byte", "operational_intensity"),
)
_OF_A_RUN = (("FLOPs a run", "flops", count), ("HBM a run", "bytes_moved", size), ("padding", "padding", size))


ABOUT = (
    ("", "The marked op on the left, the op under the cursor on the right; differences stand out."),
    ("times", "the right figure over the left one, where both are known."),
    ("a run", "FLOPs and bytes of HBM of one occurrence, by the compiler's count."),
    ("array", "shapes of result and operands in order, with their layouts, and the padding by tiles."),
    ("n/a", "the profile does not have it for that op; unknown is never shown as 0."),
)


def comparison_lines(pair: OpComparison, pen: Pen) -> list[Line]:
    """Sentences, figures and arrays of two ops."""
    return _Lines(pair, pen).all()


class _Lines:
    def __init__(self, pair: OpComparison, pen: Pen) -> None:
        self._pair, self._pen, self._glyphs = pair, pen, pen.glyphs
        self._cells = max(10, (pen.width - LABEL - TIMES - 4) // 2)

    def all(self) -> list[Line]:
        pair = self._pair
        lines: list[Line] = []
        for index, sentence in enumerate(pair.sentences):
            lines += self._pen.wrap(sentence, "text" if index else "strong")
        lines.append(self._pen.fit([]))
        names = [pair.page.table.name[op.row] for op in (pair.left, pair.right)]
        lines.append(self._line(("  ", "text"), "", names, "ratio", "title"))
        for label, key in _FIELDS:
            lines += self._words(label, key, self._times_of(key))
        for label, name, write in _OF_A_RUN:
            values = [getattr(op, name) for op in (pair.left, pair.right)]
            texts = [UNKNOWN if value is None else write(round(value)) for value in values]
            lines += self._row(label, texts[0], texts[1], _times(*values), is_alike(*values))
        return lines + self._arrays()

    def _words(self, label: str, key: str, times: str) -> list[Line]:
        pair, ascii_only = self._pair, self._glyphs.is_ascii
        both = (row_words(HLO_OPS, (key,), pair.page, op.row, ascii_only)[0] for op in (pair.left, pair.right))
        left, right = (text or UNKNOWN for text in both)
        return self._row(label, left, right, times)

    def _times_of(self, key: str) -> str:
        """The ratio of two figures of a field, where it has numbers."""
        quantity = HLO_OPS.by_key[key]
        if quantity.unit.is_text:
            return ""
        values = quantity.read(self._pair.page, [self._pair.left.row, self._pair.right.row])
        return _times(float(values[0]), float(values[1]))

    def _arrays(self) -> list[Line]:
        """The arrays of both, each at its place: its shape, and below it layout and padding where they differ."""
        left, right = self._pair.left.arrays, self._pair.right.arrays
        if not left and not right:
            return []
        lines: list[Line] = [self._pen.fit([])]
        for place in range(max(len(left), len(right))):
            first, second = (of[place] if place < len(of) else None for of in (left, right))
            label = "result" if place == 0 else f"array {place + 1}"
            lines += self._row(label, _shape(first), _shape(second))
            lines += self._row("", _layout(first), _layout(second))
        return lines

    def _row(self, label: str, left: str, right: str, times: str = "", alike: bool | None = None) -> list[Line]:
        """A label, both values and their ratio: those that differ stand out, long ones below each other."""
        differs = left != right if alike is None else not alike
        style: StyleKey = "strong" if differs else "dim"
        mark: Span = (f"{self._glyphs.mark if differs else ' '} ", "mark")
        if max(len(left), len(right)) < self._cells:
            return [self._line(mark, label, (left, right), times, style)]
        head: list[Span] = [mark, (f"{label:<{LABEL}}", "dim")]
        if not differs:
            return self._pen.wrap(left, style, head)
        second: list[Span] = [("  ", "text"), (" " * LABEL, "dim")]
        return [*self._pen.wrap(left or "none", style, head), *self._pen.wrap(right or "none", style, second)]

    def _line(self, mark: Span, label: str, values: Sequence[str], times: str, style: StyleKey) -> Line:
        glyphs, cells = self._glyphs, self._cells
        texts = (cut_middle(text, cells - 1, glyphs) for text in values)
        spans: list[Span] = [mark, (f"{label:<{LABEL}}", "dim"), *((f"{text:<{cells}}", style) for text in texts)]
        return self._pen.fit([*spans, (f"{times:>{TIMES}}", style)])


def _times(left: float | None, right: float | None) -> str:
    found = ratio(left, right)
    return "" if found is None else f"{found:.3g}"


def _shape(array: Array | None) -> str:
    return "" if array is None else array.shape


def _layout(array: Array | None) -> str:
    if array is None:
        return ""
    padding = f" +{size(array.padding)} padding" if array.padding else ""
    return f"{array.layout}{padding}"
