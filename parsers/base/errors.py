"""The errors that a user sees: each has a plain sentence, a hint and an exit code. And the wall around optional parts.

Sentences and hints are masked here, whoever writes them: no password or token of an address stands in one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import masked

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_NOT_FOUND = 3
EXIT_UNREADABLE = 4
EXIT_NO_TERMINAL = 5
EXIT_REGRESSION = 6
EXIT_CAPTURE_FAILED = 7
EXIT_INTERRUPTED = 130


class ProfileError(Exception):
    """The user's input makes the requested work impossible.

    Args:
        code: a stable short name for scripts and tests, such as ``not_found`` or ``corrupt``.
        sentence: one plain sentence that says what is wrong with what.
        hint: one line that says what to try; empty when there is nothing to try.
        exit_code: process exit code of the headless commands, one of the ``EXIT_*`` constants.
    """

    def __init__(self, code: str, sentence: str, hint: str = "", exit_code: int = EXIT_UNREADABLE) -> None:
        self.code = code
        self.sentence = _masked(sentence)
        self.hint = _masked(hint)
        super().__init__(self.sentence)
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[object, ...]:  # processes exchange it
        return ProfileError, (self.code, self.sentence, self.hint, self.exit_code)


def unreadable(path: str, error: OSError | ValueError) -> ProfileError:
    """Why a file can't be opened: it is not there, or not to be read."""
    shown = printable(path)
    if isinstance(error, FileNotFoundError | NotADirectoryError | ValueError):
        return ProfileError("not_found", f"{shown} does not exist.", "check the path", EXIT_NOT_FOUND)
    why = (error.strerror or str(error)).lower()
    is_refused = isinstance(error, PermissionError)
    hint = f"check its permissions: ls -l {shown}" if is_refused else "check the disk, or the connection to it"
    return ProfileError("unreadable", f"{shown} cannot be read: {why}.", hint)


class Cancelled(Exception):
    """The caller asked to stop the work; nothing is wrong with the input."""


LOGGER = "tpuprof"
"""The logger that gets the tracebacks of parts that failed behind a wall."""

INTERNAL = "internal error, please report"
"""Why something is unknown if the part that finds it failed behind a wall."""

_Part = TypeVar("_Part")


def could_not(what: str) -> str:
    """The sentence about a part that failed; `what` as for `behind_wall`."""
    return f"could not {what}: {INTERNAL}"


def behind_wall(what: str, part: Callable[[], _Part], failed: list[str]) -> _Part | None:
    """Runs an optional part of the work; None if it fails. Whatever the error is, it costs only a sentence.

    Args:
        what: what it does, in words that follow ``could not``.
        failed: gets the sentence.
    """
    try:
        return part()
    except (Cancelled, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - whatever it is
        failed.append(could_not(what))
        _log(failed[-1])
        return None


def _log(sentence: str) -> None:
    """Logs the error that is being handled; nothing is printed unless somebody listens."""
    import logging  # noqa: PLC0415 - seldom needed

    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.exception(sentence)


Damage = Literal["cut off", "damaged"]
"""What is wrong with a file of which a part could not be read."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something is wrong with one file; the rest can be shown all the same.

    Attributes:
        code: stable short name, such as ``truncated``, ``empty_file`` or ``duplicate_host``.
        subject: what the problem is about: a path, or ``plane / line`` inside a file.
        sentence: one plain sentence.
        hint: what the user can do about it, or empty.
    """

    code: str
    subject: str
    sentence: str
    hint: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", _masked(self.sentence))
        object.__setattr__(self, "hint", _masked(self.hint))


def _masked(text: str) -> str:
    if "://" not in text and "@" not in text and "=" not in text:
        return text

    return masked(text)
