"""Details of one HLO op: its text, the padding of its shapes, its use of the matrix unit, its source."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.matrix import MatrixWork, matrix_works, mxu_side
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import Shape, shapes_in
from tpuprof.parsers.ops.frames import call_stack
from tpuprof.parsers.pages.ops.ops import OpsPage

LEAST_WASTE = 16 << 10
"""A shape is named from this many bytes of padding on; every scalar has half a kilobyte, which does not matter."""

MOST_TEXT = 200_000
"""How many characters of an HLO text it reads; a longer text is cut, and says so."""


@dataclass(frozen=True, slots=True)
class ShapeNote:
    """A shape in an op's text: where it stands in the text, and the shape that it describes."""

    begin: int
    end: int
    text: str
    shape: Shape

    @property
    def wasted_bytes(self) -> int:
        """The bytes that tiling adds; 0 where unknown."""
        padded, plain = self.shape.padded_bytes, self.shape.unpadded_bytes
        return 0 if padded is None or plain is None else padded - plain


@dataclass(frozen=True, slots=True)
class OpDetails:
    """What the profile's texts say about an op.

    Attributes:
        row: the op's row in the ops page.
        expression: its full HLO text; empty where the profile has lost it.
        is_cut: whether the text was longer than `MOST_TEXT`.
        source: ``file:line``; empty where unknown.
        source_stack: the calls that led there, outermost first; then what of these details could not be made.
        shapes: the distinct array shapes of the text in order of their first place; the result's come first.
        matrix: how the op's dots and convolutions use the matrix unit; empty where it has none, or unknown.
        mxu_side: the matrix unit's side that `matrix` assumes; None for an unknown device.
    """

    row: int
    expression: str
    is_cut: bool
    source: str
    source_stack: tuple[str, ...]
    shapes: tuple[ShapeNote, ...]
    matrix: tuple[MatrixWork, ...]
    mxu_side: int | None

    @property
    def padded(self) -> list[ShapeNote]:
        """The shapes that take noticeably more bytes than their elements, most wasted bytes first."""
        wasteful = [note for note in self.shapes if note.wasted_bytes >= LEAST_WASTE]
        return sorted(wasteful, key=lambda note: note.wasted_bytes, reverse=True)


def op_details(page: OpsPage, row: int, module: HloModule | None = None) -> OpDetails:
    """Reads the texts of one op.

    Args:
        module: the op's HLO module, which the matrix unit's use needs; None while it is unknown.
    """
    expression = page.table.expression(row)
    is_cut = len(expression) > MOST_TEXT
    expression = expression[:MOST_TEXT]
    rows = np.array([row])
    source, stack = page.table.texts("source", rows)[0], page.table.texts("source_stack", rows)[0]
    side, failed = mxu_side(page.device_type), list[str]()
    calls = behind_wall("read its call stack", partial(call_stack, source, stack), failed) or ()
    matrix: tuple[MatrixWork, ...] = ()
    if module is not None and side is not None:
        look = partial(matrix_works, module, page.table.name[row], side)
        matrix = behind_wall("find how it uses the matrix unit", look, failed) or ()
    return OpDetails(
        row=row,
        expression=expression,
        is_cut=is_cut,
        source=source,
        source_stack=(*calls, *failed),
        shapes=tuple(_distinct(expression)),
        matrix=matrix,
        mxu_side=side,
    )


def _distinct(expression: str) -> Iterable[ShapeNote]:
    seen = set()
    for in_text in shapes_in(expression):
        text = expression[in_text.begin : in_text.end]
        if text not in seen:
            seen.add(text)
            yield ShapeNote(in_text.begin, in_text.end, text, in_text.shape)
