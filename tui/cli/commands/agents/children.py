"""Processes that answer calls, one each, within bounds: number, time, memory; none outlives its call or the server."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from tpuprof.parsers.base.folders import ONLY_BELOW
from tpuprof.tui.cli.commands.agents.root import Root
from tpuprof.tui.cli.commands.agents.worker import SMALLER, Call, Said, internal

AT_ONCE = 4
"""Calls that are answered at a time; others wait for their turn."""

_PROGRAM = "from tpuprof.tui.cli.commands.agents.worker import main; main()"
_SECONDS_TO_END = 5.0  # that a killed process has until nobody waits for it any more


class Children:
    """The processes of a server. One more than is at work waits for the next call: it has imported everything.

    Args:
        root: the folder below which they read.
        seconds, memory_mib: what a call may take, of memory each of its processes.
        debug: whether they print tracebacks.
    """

    def __init__(self, root: Root, seconds: int, memory_mib: int, debug: bool) -> None:
        self._bounds = seconds, memory_mib
        self._turns = anyio.Semaphore(AT_ONCE)
        self._ready: list[Process] = []
        self._command = [sys.executable, "-c", _PROGRAM, *(["--debug"] if debug else [])]
        modules = os.pathsep.join(map(os.path.abspath, sys.path))  # they start elsewhere: where no modules are
        self._environ = {**os.environ, ONLY_BELOW: root.path, "PYTHONPATH": modules}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """While this is open, calls are answered; all processes end with it."""
        await self._make_ready()
        try:
            yield
        finally:
            for child in self._ready:
                await _end(child)

    async def answer(self, tool: str, arguments: dict[str, Any]) -> Said:
        """What a call is answered, once it is its turn. Who cancels this ends the process."""
        async with self._turns:
            await self._make_ready()
            if not self._ready:
                return Said("No process can be started. Try: the call again, once others have ended", True)
            child = self._ready.pop()
            try:
                return await _answered(child, Call(tool, arguments, *self._bounds))
            finally:
                await _end(child)
                with anyio.CancelScope(shield=True):
                    await self._make_ready()

    async def _make_ready(self) -> None:
        """Starts a process for the next call where none waits, if the system lets it."""
        self._ready = [child for child in self._ready if child.returncode is None]
        with suppress(OSError):
            while not self._ready:
                self._ready.append(
                    await anyio.open_process(
                        self._command, env=self._environ, cwd="/", stderr=None, start_new_session=True
                    )
                )


async def _answered(child: Process, call: Call) -> Said:
    stdin, stdout = cast(ByteSendStream, child.stdin), cast(ByteReceiveStream, child.stdout)
    answer = b""
    with anyio.move_on_after(call.seconds) as time:
        with suppress(anyio.BrokenResourceError):  # it is gone, as what it says tells
            await stdin.send(json.dumps(vars(call)).encode() + b"\n")
        async for piece in stdout:
            answer += piece
        await child.wait()
    if time.cancelled_caught:
        return Said(f"{call.tool} was ended after {call.seconds} s, the time limit of a call. Try: {SMALLER}", True)
    try:
        return Said(**json.loads(answer))
    except ValueError:
        return _gone(call.tool, child.returncode)


async def _end(child: Process) -> None:
    """Kills a process, and all that it has started, unless it is over."""
    with anyio.move_on_after(_SECONDS_TO_END, shield=True):
        if child.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        await child.aclose()


def _gone(tool: str, returncode: int | None) -> Said:
    """The answer of a process that has ended without one, by what the system says of its end."""
    if returncode == -signal.SIGKILL:
        why = "was ended from outside, as the system does where the machine's memory runs out"
        return Said(f"{tool} {why}. Try: {SMALLER}", True)
    return internal(f"{tool} ended without an answer, exit code {returncode}")
