"""One call of a tool, in a process that the server may end at any time: its answer, or why there is none."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from functools import partial
from threading import Thread
from typing import Any

from tpuprof.parsers.base.errors import INTERNAL, ProfileError, behind_wall
from tpuprof.parsers.base.folders import ONLY_BELOW
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.tui.cli.commands.agents.root import Root
from tpuprof.tui.cli.commands.agents.tools import TOOLS
from tpuprof.tui.cli.debug import FailedParts
from tpuprof.tui.report.output import write_stderr

SMALLER = "the same tool with run, host or core, or a smaller limit; in SQL fewer rows to join"
"""What to ask instead of a call that took too much."""


@dataclass(frozen=True)
class Call:
    """A call, and what it may take.

    Attributes:
        tool, arguments: as the client gives them.
        seconds: after which the server ends it.
        memory_mib: that each of its processes may have.
    """

    tool: str
    arguments: dict[str, Any]
    seconds: int
    memory_mib: int


@dataclass(frozen=True)
class Said:
    """What a call is answered: JSON, or a sentence on what is wrong."""

    text: str
    is_error: bool


def main() -> None:
    """Reads a call from standard input and writes its answer to standard output; ends when the server does."""
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # where whatever else prints does no harm
    if not (line := sys.stdin.buffer.readline()):
        return
    Thread(target=_end_with_server, daemon=True).start()
    call = Call(**json.loads(line))
    _bind(call)
    with FailedParts(sys.argv) if "--debug" in sys.argv else contextlib.nullcontext():
        said = answered(call)
    with open(answers, "wb") as file:
        file.write(json.dumps(vars(said)).encode())


def _end_with_server() -> None:
    """Waits for the end of standard input, which comes when the server closes it or is no more."""
    os.read(sys.stdin.fileno(), 1)
    os.killpg(0, signal.SIGKILL)  # the processes that decode hosts too


def _bind(call: Call) -> None:
    # Where the machine's memory runs out, Linux ends this process and not another.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    with contextlib.suppress(OSError, ValueError):  # a lower limit holds already
        resource.setrlimit(resource.RLIMIT_DATA, (call.memory_mib << 20, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def internal(what: str, number: str = "") -> Said:
    """The answer about an internal error, and the same on standard error: both have its number, a new one without."""
    number = number or os.urandom(4).hex()
    said = Said(
        f"Internal error {number}: {what}. Please report it with the server's log, which has this number.", True
    )
    write_stderr(f"{said.text}\n")
    return said


def answered(call: Call) -> Said:
    """What a call is answered, whatever happens in it. An internal error has a number that is in the log too."""
    failed, number = list[str](), os.urandom(4).hex()
    try:
        said = behind_wall(f"answer call {number} of {call.tool}", partial(_said, call), failed)
    except MemoryError:
        said = Said(f"{call.tool} needs more than the {call.memory_mib:,} MiB of a call. Try: {SMALLER}", True)
    said = said or internal(failed[0].removesuffix(f": {INTERNAL}"), number)
    return Said(said.text.encode("utf-8", "replace").decode(), said.is_error)  # a lone surrogate is not text


def _said(call: Call) -> Said:
    tool = next((tool for tool in TOOLS if tool.name == call.tool), None)
    if tool is None:
        return Said(f"There is no tool {printable(call.tool)[:60]}.", True)
    try:
        text = tool.answer(call.arguments, Root(os.environ[ONLY_BELOW]), call.seconds)
    except ProfileError as error:
        if error.sentence.endswith(INTERNAL):
            raise
        return Said(error.sentence + (f" Try: {error.hint}" if error.hint else ""), True)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return Said(f"The system refused: {printable(reason)}.", True)
    return Said(text, False)
