"""Puts one input through one command, and says whether what the command line promises of it was kept."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import logging
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_REGRESSION, EXIT_UNREADABLE, EXIT_USAGE, LOGGER
from tpuprof.tui.cli.main import main

SECONDS = 20.0
"""More time than any input of some kilobytes may take, even on a slow machine under a sanitizer."""

PATIENCE = 10
"""So many times as long is waited for a process that others keep from working."""

GREEDY_BYTES = 300 << 20
"""More memory than any such input may take."""

HARMFUL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, those that turn the direction of text included; lines end in a plain newline."""

_ANSWERS = {
    ("diff",): (EXIT_REGRESSION, EXIT_UNREADABLE),  # with --fail-on-regression
    ("doctor",): (EXIT_NOT_FOUND, EXIT_UNREADABLE),
    ("report", "runs"): (EXIT_UNREADABLE,),  # runs of which some can't be read are listed
    ("report", "trend"): (EXIT_UNREADABLE,),
}
"""Exit codes that these commands end with after a report, by their first words."""


class WalledError(BaseException):
    """A part failed behind a wall for another reason than one that its reader knows; no `except Exception` hides it."""


class _Walls(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise WalledError(record.getMessage())


class TooSlowError(BaseException):
    """The time is over; no `except Exception` catches it."""


@dataclass(frozen=True)
class Outcome:
    """What came of a trial.

    Attributes:
        kind: ``read`` or ``refused``; else the promise that was broken.
        detail: what a person needs to see, on one line; empty where the promise was kept.
        seconds: of the processor that it took.
        grown: bytes that the process grew by at most while it took place.
    """

    kind: str
    detail: str = ""
    seconds: float = field(default=0.0, compare=False)
    grown: int = field(default=0, compare=False)

    @property
    def is_fault(self) -> bool:
        """Whether a promise was broken."""
        return self.kind not in ("read", "refused")


def attempt(arguments: Sequence[str]) -> Outcome:
    """Runs one command in this process.

    The promises: it ends in time and within bounded memory, with 0 or the exit code of unreadable or missing input; no
    exception leaves it; a refusal is a sentence on standard error, with nothing on standard output; what is printed has
    no control characters, and JSON is JSON.
    """
    return _within_budget(lambda: _attempted(arguments))


def asked(read: Callable[[], bool]) -> Outcome:
    """Calls a reader, which returns whether it read anything; it has the time and memory of `attempt`, and no error."""

    def limited() -> Outcome:
        try:
            with _limited(SECONDS):
                return Outcome("read" if read() else "refused")
        except TooSlowError:
            return Outcome("slow", f"over {SECONDS:g} s")
        except (Exception, WalledError) as error:  # noqa: BLE001 - which one is what the trial is for
            return Outcome("raised", f"{type(error).__name__}: {error}"[:300])

    return _within_budget(limited)


def _within_budget(trial: Callable[[], Outcome]) -> Outcome:
    before, began = _memory(begins=True), time.process_time()
    outcome = trial()
    grown, seconds = _memory() - before, time.process_time() - began
    if not outcome.is_fault and grown > GREEDY_BYTES:
        outcome = Outcome("greedy", f"{grown >> 20} MB in {seconds:.1f} s")
    return replace(outcome, seconds=seconds, grown=max(grown, 0))


def _memory(begins: bool = False) -> int:
    """Bytes that this process had at most since a trial began, or has now, where one `begins`.

    Where the system does not say, it is what it had at most at any time.
    """
    try:
        if begins:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
                file.write("5")  # the peak is what there is now
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1 << 10)


def _attempted(arguments: Sequence[str]) -> Outcome:
    out, errors = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
    try:
        with _limited(SECONDS), contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = main(list(arguments))
    except TooSlowError:
        return Outcome("slow", f"over {SECONDS:g} s")
    except (Exception, WalledError) as error:  # noqa: BLE001 - which one is what the trial is for
        return Outcome("raised", f"{type(error).__name__}: {error}"[:300])
    finally:
        gc.enable()
    out.flush()
    buffer = out.buffer
    assert isinstance(buffer, io.BytesIO)
    if buffer.getvalue() and any(
        code in codes and tuple(arguments[: len(words)]) == words for words, codes in _ANSWERS.items()
    ):
        code = EXIT_OK  # the report is whole, and the code an answer
    return judged(code, buffer.getvalue(), errors.getvalue(), is_json="json" in arguments or "--json" in arguments)


def judged(code: int, out: bytes, errors: str, is_json: bool) -> Outcome:
    """Whether an exit code and what was printed keep the promises."""
    try:
        text = out.decode("utf-8")
    except UnicodeDecodeError as error:
        return Outcome("not UTF-8", str(error))
    harmful = HARMFUL.search(text) or HARMFUL.search(errors)
    if harmful:
        return Outcome("control character", repr(harmful.string[max(harmful.start() - 40, 0) : harmful.end() + 40]))
    if "Traceback" in errors:
        return Outcome("traceback", errors[-300:].replace("\n", " "))
    if code not in (EXIT_OK, EXIT_NOT_FOUND, EXIT_UNREADABLE, EXIT_USAGE):
        return Outcome("exit code", str(code))
    if code != EXIT_OK:
        if text.strip():
            return Outcome("output of a refusal", text[:200])
        return Outcome("refused") if errors.strip() else Outcome("silent", str(code))
    if is_json:
        try:
            json.loads(text, parse_constant=_no_number)
        except ValueError as error:
            return Outcome("not JSON", str(error))
    return Outcome("read") if text.strip() else Outcome("silent", str(code))


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    began, worked = time.monotonic(), time.process_time()

    def over(_: int, __: FrameType | None) -> None:
        if time.process_time() - worked < seconds / 2 and time.monotonic() - began < PATIENCE * seconds:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            return
        raise TooSlowError

    handler = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    walls = _Walls()
    logging.getLogger(LOGGER).addHandler(walls)
    try:
        yield
    finally:
        logging.getLogger(LOGGER).removeHandler(walls)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
