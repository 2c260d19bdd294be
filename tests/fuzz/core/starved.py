"""Calls the compiled core where one allocation fails: the first, then the second, until all are there.

    python -m tests.fuzz.core.starved [CASES] [PATH_OF_MODULE]

Each call either raises MemoryError or answers, or refuses its arguments; anything else, a crash above all, is a fault.
The core has no `malloc` of its own: it allocates where it takes a buffer, makes an answer or says what it refuses.
Prints how many calls lacked one. It needs the interpreter's own test module, which fails its allocators.
"""

from __future__ import annotations

import importlib
import random
import sys
from array import array
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tests.parsers.formats.xspace.core import fuzz_core

MARKER = "calls without one allocation:"
MOST = 12
"""No function of the core allocates so often: it builds a tuple of some numbers, or raises. `Starved` checks it."""

ALLOCATES_NOTHING = {"trim"}
"""Functions that take nothing and make nothing: no allocation of theirs can fail."""


class Starved:
    """The core, of which each function is called again and again, each time without another allocation.

    Attributes:
        failed: how many calls of each function ended with MemoryError.
    """

    def __init__(self, core: ModuleType, nomemory: ModuleType) -> None:
        self._core, self._nomemory = core, nomemory
        self.failed = Counter[str]()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function, starve, feed = getattr(self._core, name), self._nomemory.set_nomemory, self._nomemory.remove_mem_hooks

        def call(*arguments: object) -> object:
            kept = [array(given.typecode, given) if isinstance(given, array) else given for given in arguments]
            for at in range(MOST):
                given = tuple(array(each.typecode, each) if isinstance(each, array) else each for each in kept)
                try:
                    starve(at, at + 1)
                    try:
                        function(*given)
                    finally:
                        feed()
                except MemoryError:
                    self.failed[name] += 1
                    if at == MOST - 1:
                        raise AssertionError(f"{name} allocates more often than {MOST} times") from None
                except (ValueError, TypeError, BufferError):
                    pass
            return function(*arguments)

        return call


def run(core: ModuleType, cases: int, seed: int = 1) -> int:
    """Runs so many cases of the core's fuzzer, each call of which is starved; how many lacked an allocation.

    Raises:
        AssertionError: a function was never called without an allocation, or has more of them than are taken away.
    """
    import _testcapi  # type: ignore[import-not-found]

    starved: Any = Starved(core, _testcapi)
    fuzz_core.run(starved, cases, seed)
    functions = {name for name, each in vars(core).items() if not name.startswith("_") and callable(each)}
    if missing := functions - starved.failed.keys() - ALLOCATES_NOTHING:
        raise AssertionError(f"always had all its memory: {', '.join(sorted(missing))}")
    return int(starved.failed.total())


def main() -> None:
    """See the module's text."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    if len(sys.argv) > 2:
        core = fuzz_core.load(sys.argv[2])
    else:
        core = importlib.import_module("tpuprof.parsers.formats.xspace.core._core")
    print(MARKER, run(core, cases, random.Random(cases).randrange(1 << 30)))


if __name__ == "__main__":
    main()
