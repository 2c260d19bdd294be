"""Work on hosts over a Dask cluster, for pods whose files outgrow one machine. Dask itself is an extra (``[dask]``).

Workers need this package and must see the files under the same paths. `pool.over_executor` does the work; this module
only makes the connection and handles its failures. Dask's client gives up after half a minute with a traceback, and
waits for ever where something else listens. So this module first checks the address and whether a
scheduler answers there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import struct
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import masked
from tpuprof.parsers.hosts.reduction import Result
from tpuprof.parsers.hosts.workers.pool import Task, over_executor

if TYPE_CHECKING:
    from concurrent.futures import Executor

KNOCK_SECONDS = 3
"""How long a machine may take to accept a connection."""

CONNECT_SECONDS = 10
"""How long a connected scheduler may take to answer."""

CLOSE_SECONDS = 2

_ADDRESS = re.compile(
    r"(?:(?P<scheme>tcp|tls|ucx|wss?)://)?(?P<host>\[[0-9A-Fa-f:.%\w-]+\]|[^\s:/@\[\]?#]+):(?P<port>[0-9]{1,5})"
    r"(?P<path>/[^\s?#]*)?"
)
_GREETING_BYTES = 1 << 20
_POLL_SECONDS = 0.1
_LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application")
_NO_ANSWER = (OSError, ValueError, TypeError, RuntimeError, EOFError, MemoryError, struct.error, asyncio.TimeoutError)
"""What Dask raises when there is no scheduler at an address, or one that speaks otherwise."""

_INSTALL = "pip install 'tpuprof-tui[dask]'"
_HINT = "give its address as HOST:PORT, which it prints when it starts (port 8786)"


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """Where a scheduler listens.

    Attributes:
        text: the address as Dask takes it.
        scheme: ``tcp`` where none was given.
        host: a name or a number, without brackets.
    """

    text: str
    scheme: str
    host: str
    port: int


def scheduler_address(text: str) -> SchedulerAddress:
    """The parts of ``tcp://10.0.0.1:8786``, ``10.0.0.1:8786`` or ``tls://[::1]:8786``.

    Raises:
        ProfileError: it has another form; exit code 2.
    """
    text = text.strip()
    plain = text if re.match("wss?://", text) else text.rstrip("/")
    match = _ADDRESS.fullmatch(plain)
    has_path = match is not None and match["path"] is not None and match["scheme"] not in ("ws", "wss")
    if match is None or has_path or not 0 < int(match["port"]) < 1 << 16:
        sentence = f"{_name(text)[:100] or 'Nothing'} is not an address of a Dask scheduler."
        raise ProfileError("usage", sentence, "HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT", EXIT_USAGE)
    return SchedulerAddress(plain, match["scheme"] or "tcp", match["host"].strip("[]"), int(match["port"]))


def over_dask(task: Task[Result], address: str) -> Iterator[tuple[int, Result | ProfileError]]:
    """Yields each host's index and outcome as the workers of a Dask scheduler finish them.

    Args:
        address: the scheduler's address, as ``tcp://10.0.0.1:8786`` or ``10.0.0.1:8786``.

    Raises:
        ProfileError: the address has another form, Dask is not installed, the scheduler does not answer, it has no
            workers, or these lack this package.
        Cancelled: `Task.poll` said so; workers still finish the hosts that they have begun.
    """
    where = scheduler_address(address)
    try:
        from distributed import Client, KilledWorker  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ProfileError("no_dask", "Dask is not installed here.", _INSTALL, EXIT_USAGE) from error
    _knock(where, lambda: task.poll(None))
    with _silence(), _connected(Client, where) as client:
        threads = sum(client.nthreads().values())
        if not threads:
            sentence = f"The scheduler {where.text} has no workers."
            raise ProfileError("scheduler", sentence, f"start one: dask worker {where.text}", EXIT_NOT_FOUND)
        executor: Executor = client.get_executor()
        task = replace(task, lost=(KilledWorker, CancelledError, OSError))
        try:
            yield from over_executor(task, executor, 2 * threads)
        except ImportError as error:
            sentence = f"The workers of {where.text} can't do the work: {printable(str(error))}."
            hint = "install the same version of tpuprof-tui where they run"
            raise ProfileError("scheduler", sentence, hint) from error


def _name(text: str) -> str:
    """Any address, fit to print: without login and query."""
    return printable(re.sub(r"\?.*", "?…", re.sub(r"(^|://).*@", r"\1…@", text)))


def _knock(where: SchedulerAddress, poll: Callable[[], None]) -> None:
    """Checks whether a scheduler listens: a scheduler speaks first, and begins with a length.

    Where the connection is encrypted or wrapped, it only checks that the machine accepts it.
    """
    if where.scheme == "ucx":  # no socket
        return
    try:
        with socket.create_connection((where.host, where.port), KNOCK_SECONDS) as connection:
            greeting = _greeting(connection, poll) if where.scheme == "tcp" else None
    except (OSError, UnicodeError) as error:  # a host's name that is too long
        reason = "it does not answer in time" if isinstance(error, TimeoutError) else _reason(error)
        raise _no_scheduler(where, reason) from error
    if greeting is None:
        return
    if len(greeting) < 8:
        raise _no_scheduler(where, "something listens there, but does not answer")
    if not 16 <= struct.unpack("<Q", greeting)[0] <= _GREETING_BYTES:
        raise _no_scheduler(where, "something else listens there")


def _greeting(connection: socket.socket, poll: Callable[[], None]) -> bytes:
    """Receives the first 8 bytes; fewer where they do not come in time.

    Raises:
        OSError: the other side ends the connection first.
    """
    connection.settimeout(_POLL_SECONDS)
    until = time.monotonic() + CONNECT_SECONDS
    greeting = b""
    while len(greeting) < 8 and time.monotonic() < until:
        poll()
        with contextlib.suppress(TimeoutError):
            data = connection.recv(8 - len(greeting))
            if not data:
                raise ConnectionError("it closes the connection")
            greeting += data
    return greeting


@contextlib.contextmanager
def _connected(client_class: Any, where: SchedulerAddress) -> Iterator[Any]:  # noqa: ANN401 - Dask has no types
    """Connects to a scheduler and closes the connection afterwards, also a failed one, which Dask leaves open."""
    client = client_class.__new__(client_class)
    try:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of versions that differ a little
                client.__init__(where.text, timeout=CONNECT_SECONDS, set_as_default=False)
        except ImportError as error:
            sentence = f"{where.text} refuses: {_reason(error)}."
            raise ProfileError("scheduler", sentence, _HINT, EXIT_NOT_FOUND) from error
        except (TypeError, RuntimeError) as error:  # of certificates: Dask's own words help
            raise _no_scheduler(where, _reason(error)) from error
        except _NO_ANSWER as error:
            raise _no_scheduler(where, "it does not answer like a scheduler") from error
        yield client
    finally:
        with contextlib.suppress(AttributeError, AssertionError, FutureTimeout, *_NO_ANSWER):
            client.close(timeout=CLOSE_SECONDS)
        client.status = "closed"  # or else it tries again, when Python ends


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keeps Dask's own log, which would be written across a screen, from standard error."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _reason(error: BaseException) -> str:
    system = getattr(error, "strerror", None)
    text = system.lower() if isinstance(system, str) else str(error) or type(error).__name__
    return printable(masked(text)[:200]).rstrip(". ")


def _no_scheduler(where: SchedulerAddress, reason: str) -> ProfileError:
    return ProfileError("scheduler", f"No Dask scheduler answers at {where.text}: {reason}.", _HINT, EXIT_NOT_FOUND)
