"""Errors about memory that are no TPU's, so that nobody takes them for one."""

from __future__ import annotations

import re

_KINDS = {
    "gpu": (
        re.compile(
            r"BufferAssignment OOM Debugging|CUDA_ERROR_OUT_OF_MEMORY|CUDA out of memory|hipErrorOutOfMemory"
            r"|HIP out of memory|ran out of memory trying to allocate|Out of memory while trying to allocate"
            r"|Failed to allocate request for .{1,40} on device ordinal"
        ),
        "{where} a GPU's memory ran out (or the host's, allocated like a GPU's)",
    ),
    "bad_alloc": (
        re.compile(r"std::bad_alloc"),
        "{where} a C++ program on the host got no memory (std::bad_alloc): the host's own memory ran out",
    ),
    "killed": (
        re.compile(r"[Oo]ut of memory: Kill(?:ed)? process|oom-kill:|OOMKilled"),
        "{where} the system killed a process since the host's own memory, or a container's share of it, ran out",
    ),
    "python": (
        re.compile(r"(?<![A-Za-z])_?(?:Array)?MemoryError(?=:|$|\()"),
        "{where} Python got no memory on the host (MemoryError)",
    ),
}
_ANY = re.compile("|".join(f"(?P<{kind}>{expression.pattern})" for kind, (expression, _) in _KINDS.items()))


class Others:
    """Collects what is no TPU error, a kind at a time."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._count: dict[str, int] = {}

    def see(self, text: str, number: int) -> None:
        """Looks at a line."""
        for match in _ANY.finditer(text):
            kind = match.lastgroup or ""
            self._first.setdefault(kind, number)
            self._count[kind] = self._count.get(kind, 0) + 1

    def notes(self) -> tuple[str, ...]:
        """A sentence a kind, in order of first appearance."""
        return tuple(
            _KINDS[kind][1].format(where=f"Line {number:,}{_again(self._count[kind])}:")
            + "; this is no TPU's error, and only those are read."
            for kind, number in sorted(self._first.items(), key=lambda item: item[1])
        )


def _again(count: int) -> str:
    return "" if count == 1 else f", one of {count:,}"
