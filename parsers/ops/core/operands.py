"""The arrays that a custom call reads and writes, by its HLO text, and how many bytes they are."""

from __future__ import annotations

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.shapes import Shape, shapes_in

_CALL = "custom-call("
_BEHIND = pattern(r"\)(?:, [a-z_]+=|$)")
_INDEX = frozenset(("s32", "u32", "s64", "u64"))
_HBM = 0

NO_TEXT = "the profile has no HLO text of it"
CHOSEN = "its index operands choose which parts of the others it moves, as those of paged and ragged kernels do"


@dataclass(frozen=True, slots=True)
class CallArrays:
    """The arrays of a custom call.

    Attributes:
        operands, results: in the order of the text.
    """

    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]

    @property
    def is_indexed(self) -> bool:
        """Whether an operand is a list of indices, so that the others need not be moved as a whole."""
        return any(shape.element_type in _INDEX and shape.dimensions for shape in self.operands)

    @property
    def bytes_once(self) -> int | None:
        """Bytes of all arrays in HBM, each moved once; None where a size is unknown, or indices choose."""
        arrays = [shape for shape in (*self.operands, *self.results) if shape.memory_space == _HBM]
        sizes = [shape.memory_bytes for shape in arrays]
        return None if self.is_indexed or None in sizes else sum(size or 0 for size in sizes)

    @property
    def signature(self) -> str:
        """Types and sizes of all arrays: what calls of one kernel have in common."""
        return ";".join(f"{shape.element_type}{shape.dimensions}" for shape in (*self.operands, *self.results))


def call_arrays(text: str) -> CallArrays | None:
    """What a custom call's HLO text says of its arrays; None where it is none."""
    begin = text.find(_CALL)
    if begin < 0:
        return None
    behind = _BEHIND.search(text, begin)
    end = len(text) if behind is None else behind.start()
    found = shapes_in(text[:end])
    return CallArrays(
        tuple(each.shape for each in found if each.begin > begin),
        tuple(each.shape for each in found if each.begin < begin),
    )
