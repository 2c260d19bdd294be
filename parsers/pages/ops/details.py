"""All there is to say about one HLO op: its text, the padding of its shapes, its use of the matrix unit, its source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tpuprof.parsers.formats.hlo.matrix import MatrixWork, matrix_works, mxu_side
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import Shape, shapes_in
from tpuprof.parsers.pages.ops.ops import OpsPage

LEAST_WASTE = 16 << 10
"""Bytes of padding from which on a shape is named: each scalar has half a kilobyte of it, and no one cares."""

MOST_TEXT = 200_000
"""Characters of an HLO text that are looked at; longer ones are cut, and say so."""


@dataclass(frozen=True, slots=True)
class ShapeNote:
    """A shape of an op's text: where it stands there, and what its layout makes of it."""

    begin: int
    end: int
    text: str
    shape: Shape

    @property
    def wasted_bytes(self) -> int:
        """What tiling adds; 0 where that is not known."""
        padded, plain = self.shape.padded_bytes, self.shape.unpadded_bytes
        return 0 if padded is None or plain is None else padded - plain


@dataclass(frozen=True, slots=True)
class OpDetails:
    """What the profile's texts tell of an op.

    Attributes:
        row: the op's row in the ops page.
        expression: its full HLO text; empty where the profile has lost it.
        is_cut: the text was longer than `MOST_TEXT`.
        source: ``file:line``, source_stack: the calls that led there, outermost first; empty where unknown.
        shapes: the distinct array shapes of the text, in order of their first place; the result's come first.
        matrix: what the op's dots and convolutions make of the matrix unit; empty where it has none, or unknown.
        mxu_side: rows and columns of the matrix unit that this supposes, None for an unknown device.
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
        """The shapes that take noticeably more room than their elements need, most wasted bytes first."""
        wasteful = [note for note in self.shapes if note.wasted_bytes >= LEAST_WASTE]
        return sorted(wasteful, key=lambda note: note.wasted_bytes, reverse=True)

    @property
    def is_padding_known(self) -> bool:
        """Whether the layout of any shape tells its padding."""
        return any(note.shape.padded_bytes is not None for note in self.shapes)


def op_details(page: OpsPage, row: int, module: HloModule | None = None) -> OpDetails:
    """Reads the texts of one op.

    Args:
        module: the op's HLO module, for the matrix unit; None where it is not known (yet).
    """
    expression = page.table.expression(row)
    is_cut = len(expression) > MOST_TEXT
    expression = expression[:MOST_TEXT]
    rows = np.array([row])
    stack = page.table.texts("source_stack", rows)[0]
    side = mxu_side(page.device_type)
    return OpDetails(
        row=row,
        expression=expression,
        is_cut=is_cut,
        source=page.table.texts("source", rows)[0],
        source_stack=tuple(line for line in stack.splitlines() if line),
        shapes=tuple(_distinct(expression)),
        matrix=matrix_works(module, page.table.name[row], side) if module is not None and side is not None else (),
        mxu_side=side,
    )


def _distinct(expression: str) -> Iterable[ShapeNote]:
    seen = set()
    for in_text in shapes_in(expression):
        text = expression[in_text.begin : in_text.end]
        if text not in seen:
            seen.add(text)
            yield ShapeNote(in_text.begin, in_text.end, text, in_text.shape)
