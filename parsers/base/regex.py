"""Regular expressions: ours, compiled when they are first used, and a stranger's, searched for in bounded time.

Of the ninety that a report knows it uses a third. With a stranger's, Python's engine can try exponentially many ways,
and holds the interpreter while it does: neither a thread nor a signal gets through. So this file is also a program of
its own, which searches in a process that can be killed.
"""

from __future__ import annotations

import marshal
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

SEARCH_SECONDS = 5.0
"""A search takes no longer."""

_POLL_SECONDS = 0.05
_SPARE_SECONDS = 2  # after which the process ends by itself, should nobody be left to kill it
_FLAGS = re.IGNORECASE


class _Pattern:
    """Has what a compiled expression has."""

    def __init__(self, pattern: Any, flags: int = 0) -> None:  # noqa: ANN401 - a text or bytes
        self._written = pattern, flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever that is
        """What the compiled expression has under a name; the next time it is found without this."""
        pattern, flags = self._written
        value = getattr(re.compile(pattern, flags), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    pattern = re.compile
else:
    pattern = _Pattern


class SearchFailed(Exception):
    """The search has no result; `str` of it is a clause."""


def compiled(pattern: str) -> re.Pattern[str]:
    """The regex as it is searched for; upper and lower case are one.

    Raises:
        re.error, ValueError, OverflowError, RecursionError: it is none.
    """
    return re.compile(pattern, _FLAGS)


def found_in(pattern: str, texts: Sequence[str], poll: Callable[[], None]) -> bytes:
    """Looks for a regex in each text: a byte for each, 1 where it is found.

    Args:
        poll: called some times a second; what it raises ends the search.

    Raises:
        SearchFailed: it took longer, or could not be done.
    """
    import subprocess  # noqa: PLC0415 - for those who search

    command = [sys.executable, "-I", "-S", __file__, str(int(SEARCH_SECONDS) + _SPARE_SECONDS)]
    wanted: bytes | None = marshal.dumps((pattern, tuple(texts)))
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
    except OSError as error:
        raise SearchFailed(f"the search process cannot be started ({error.strerror})") from error
    with process:
        try:
            for _ in range(max(1, round(SEARCH_SECONDS / _POLL_SECONDS))):
                poll()
                try:
                    found, _ = process.communicate(wanted, _POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    wanted = None  # it has it
                    continue
                if process.returncode or len(found) != len(texts):
                    raise SearchFailed("the search process ended early")
                return found
            raise SearchFailed(f"it takes longer than {SEARCH_SECONDS:g} s on these names")
        finally:
            process.kill()


def _serve(seconds: int) -> None:
    """Answers one search that comes on standard input."""
    import resource  # noqa: PLC0415 - here alone

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    pattern, texts = marshal.load(sys.stdin.buffer)  # noqa: S302 - the parent process wrote it
    search = compiled(pattern).search
    sys.stdout.buffer.write(bytes(search(text) is not None for text in texts))


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    _serve(int(sys.argv[1]))
