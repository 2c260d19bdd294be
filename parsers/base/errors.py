"""The errors that a user sees: each has a plain sentence, a hint and an exit code. And the wall around optional parts.

Sentences and hints are masked here, whoever writes them: no password or token of an address stands in one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        trace: the traceback of the error behind it, where it stopped at a wall (`one_part`).
    """

    def __init__(
        self, code: str, sentence: str, hint: str = "", exit_code: int = EXIT_UNREADABLE, trace: str = ""
    ) -> None:
        self.code = code
        self.sentence = _masked(sentence)
        self.hint = _masked(hint)
        super().__init__(self.sentence)
        self.exit_code = exit_code
        self.trace, self.is_logged = trace, False

    def __str__(self) -> str:
        return f"{self.sentence}\ntry: {self.hint}" if self.hint else self.sentence

    def __reduce__(self) -> tuple[object, ...]:  # processes exchange it
        return ProfileError, (self.code, self.sentence, self.hint, self.exit_code, self.trace)


def unreadable(path: str, error: OSError | ValueError) -> ProfileError:
    """Why a file can't be opened: it is not there, or not to be read."""
    shown = printable(path)
    if isinstance(error, FileNotFoundError | NotADirectoryError | ValueError):
        return ProfileError("not_found", f"{shown} does not exist.", "check the path", EXIT_NOT_FOUND)
    why = (error.strerror or str(error)).lower()
    is_refused = isinstance(error, PermissionError)
    hint = f"check its permissions: ls -l {shown}" if is_refused else "check the disk, or the connection to it"
    return ProfileError("unreadable", f"{shown} cannot be read: {why}.", hint)


class Damaged(ValueError):
    """Bytes do not hold together as what they should be; the text says why, as the end of a sentence."""


class Cancelled(Exception):
    """The caller asked to stop the work; nothing is wrong with the input."""


LOGGER = "tpuprof"
"""The logger that gets the tracebacks of parts that failed behind a wall."""

INTERNAL = "internal error, please report"
"""Why something is unknown if the part that finds it failed behind a wall."""

FAILED = "failed_part"
"""The code of the error of a part that failed."""

DAMAGED = "it is damaged"
"""Why a part is unknown whose bytes do not hold together."""

_OF_BYTES = (ValueError, LookupError, ArithmeticError, EOFError, RecursionError, struct.error)
"""What a decoder raises for bytes that do not hold together."""

Part = TypeVar("Part")


@contextmanager
def as_damage() -> Iterator[None]:
    """Around work on decoded messages, or as a decorator of it: where these do not fit together, they are damaged.

    Raises:
        Damaged: the work found what a decoder raises for senseless bytes.
    """
    try:
        yield
    except _OF_BYTES as error:
        raise (error if isinstance(error, Damaged) else Damaged(DAMAGED)) from error


def could_not(what: str, why: str = INTERNAL) -> str:
    """The sentence about a part that failed; `what` as for `one_part`."""
    return f"could not {what}: {why}"


@contextmanager
def one_part(what: str, is_decoder: bool = False) -> Iterator[None]:
    """Around the work on one part of the input: a host, a run, a module. Whatever the error is, it is the part's alone.

    Args:
        what: what it does with which part, in words that follow ``could not``.
        is_decoder: whether it only decodes bytes, so that these are damaged where it finds them senseless.

    Raises:
        ProfileError: as the work; `FAILED` for any error but `MemoryError` and `Cancelled`, which stay as they are.
    """
    try:
        yield
    except (Cancelled, MemoryError, ProfileError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is
        import traceback  # noqa: PLC0415 - seldom needed

        code, trace, why = FAILED, traceback.format_exc().rstrip(), INTERNAL
        if isinstance(error, OSError) and error.strerror:
            code, why = "unreadable", error.strerror.lower()
        elif isinstance(error, Damaged):
            trace, why = "", str(error)
        elif is_decoder and isinstance(error, _OF_BYTES):
            why = DAMAGED
        failed = ProfileError(code, could_not(what, why), "--debug says where" if trace else "", trace=trace)
        log_failed(failed)
        raise failed from None


def behind_wall(what: str, part: Callable[[], Part], failed: list[str], is_decoder: bool = False) -> Part | None:
    """The same for a part without which the rest is shown: None if it fails.

    Args:
        failed: gets the sentence.
    """
    try:
        with one_part(what, is_decoder):
            return part()
    except ProfileError as error:
        failed.append(error.sentence)
        return None


def log_failed(error: ProfileError) -> None:
    """Logs where a part failed, be it in another process; nothing is printed unless somebody listens."""
    import logging  # noqa: PLC0415 - seldom needed

    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    if error.trace and not error.is_logged:
        error.is_logged = True
        logger.error("%s\n%s", error.sentence, error.trace)


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
