"""Calls of Python that led to an op: which of them are the user's own, and which a library's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern

INSTALLED = pattern(
    r"(?:^|/)(?:site-packages|dist-packages|third_party)/|/lib(?:64)?/python3[^/]*/|^<(?!ipython|stdin)"
)
"""Files of installed packages, of Python itself, and what is not a file."""

OF_JAX = pattern(r"(?:^|/)(?:jax|jaxlib)/")
"""Files of JAX wherever it lies."""

OF_FRAMEWORK = pattern(r"(?:^|/)(?:jax|jaxlib|flax|optax|haiku|chex|equinox|orbax|tensorflow|keras|torch_xla)/")
"""Files of JAX and of the libraries over it, wherever they lie: a checkout is no installed package."""

_CALL = pattern(r"(.+?):(\d{1,9})(?::\d{1,9})?(?: (.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A call on a stack: a file, its line, and the function that the line is in, empty where the profile lacks it."""

    file: str
    line: int
    function: str

    @property
    def words(self) -> str:
        """``attend (attention.py:18)``, or the place alone without a function."""
        place = f"{self.file.rpartition('/')[2]}:{self.line}"
        return f"{self.function} ({place})" if self.function else place


def call_stack(source: str, text: str) -> tuple[str, ...]:
    """The calls that led to a line, a text each, outermost first.

    TPU profiles write them so. In HLO, from which those of GPUs are, they are the other way round: what is to be last
    is recognised by the line that the profile names.
    """
    calls = tuple(line for line in text.splitlines() if line)
    turned = bool(source) and bool(calls) and calls[0].startswith(source) and not calls[-1].startswith(source)
    return calls[::-1] if turned else calls


def own_call(calls: Sequence[str]) -> StackFrame | None:
    """The innermost of some calls that is the user's own; else the innermost that is not JAX's; None without any.

    Args:
        calls: outermost first, ``file:line``, ``file:line:column`` or ``file:line function`` each.
    """
    read = map(_CALL.fullmatch, reversed(calls))
    known = [StackFrame(call[1], int(call[2]), call[3] or "") for call in read if call is not None]
    for of_library in ((INSTALLED, OF_FRAMEWORK), (INSTALLED,), (OF_JAX,)):
        for call in known:
            if not any(pattern.search(call.file) for pattern in of_library):
                return call
    return known[0] if known else None
