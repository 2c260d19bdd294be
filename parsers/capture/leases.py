"""Leases: which servers keep their last seconds for a watch, so that they can be told to stop when it is dead.

A lease is a record in the user's state folder, locked for as long as its watch lives. Whoever gets the lock knows that
the watch is dead: its watchdog, a process that outlives it, or the next watch, capture or doctor.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import LEASES, state_folder
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.capture import continuous
from tpuprof.parsers.capture.continuous import Switched
from tpuprof.parsers.capture.errors import failure
from tpuprof.parsers.capture.model import CaptureOptions
from tpuprof.parsers.files.places import reason

FOLDER = LEASES
LONGEST_SECONDS = 60
"""How long a watchdog tries to reach servers; what it can't reach is left to whoever finds the lease."""

_NAME = re.compile(r"[0-9]{1,10}-[0-9a-f]{8}\.json", re.ASCII)  # the number of the process stands in front
_PATIENCE = CaptureOptions(connect_seconds=2.0)
_GONE = ("no_server", "unknown_host")  # codes of servers whose program has ended, and its profiling with it
_READY = b"ready\n"
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST = 1 << 20
_HINT = "keep it elsewhere, in a folder of yours: XDG_STATE_HOME=DIR"


def state_path(*names: str) -> str:
    """A path below the user's state folder.

    Raises:
        ProfileError: `state_folder`: there is no home folder.
    """
    folder = state_folder()
    if not os.path.isabs(folder):
        raise failure("state_folder", f"Nothing can be kept in {folder}: there is no home folder.", _HINT)
    return os.path.join(folder, *names)


class Lease:
    """The lease of this process, with its watchdog.

    Args:
        addresses: of all servers where it may turn continuous profiling on.

    Raises:
        ProfileError: `state_folder`: there can be no lease; `no_watchdog`: the watchdog does not start.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        folder = state_path(FOLDER)
        self._path = os.path.join(folder, f"{os.getpid()}-{secrets.token_hex(4)}.json")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._lease = os.open(f"{self._path}.new", _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(self._lease, fcntl.LOCK_EX)
            self.note(addresses)
            os.rename(f"{self._path}.new", self._path)  # nobody else finds it before it is locked
        except OSError as error:
            sentence = f"Nothing can be kept in {printable(folder)}: {reason(error)}."
            raise failure("state_folder", sentence, _HINT) from error
        self._watchdog = begin_watchdog(self._path)

    def note(self, addresses: Iterable[str]) -> None:
        """Takes these servers alone as those where this process turned continuous profiling on, or is about to."""
        _note(self._lease, addresses)

    def end(self) -> None:
        """Turns continuous profiling off; what can't be reached now is left to the watchdog."""
        turn_off(self._lease, self._path)
        os.close(self._lease)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._watchdog.wait(1.0)


def turn_off(lease: int, path: str, only: Sequence[str] | None = None) -> list[Switched]:
    """Turns continuous profiling off at servers of a lease that this process has locked, and takes them out of it.

    Args:
        only: servers that may be contacted; None for all.

    Returns:
        Each server, with the problem where it stays in the lease.
    """
    if (held := _addresses(lease)) is None:
        return []
    wanted = [address for address in held if only is None or address in only]
    done = continuous.switch(wanted, False, _PATIENCE) if wanted else []
    done = [replace(each, problem=None) if each.problem and each.problem.code in _GONE else each for each in done]
    off = {str(each.address) for each in done if each.problem is None}
    _note(lease, left := [address for address in held if address not in off])
    if not left:
        with contextlib.suppress(OSError):
            os.unlink(path)
    return done


def clear(only: Sequence[str] | None = None) -> list[Switched]:
    """Turns continuous profiling off where a dead watch of this user, on this machine, left it on.

    Args:
        only: servers that may be contacted; None for all.
    """
    done: list[Switched] = []
    for lease, path, is_dead in _leases():
        with contextlib.suppress(ProfileError):  # without gRPC
            done += turn_off(lease, path, only) if is_dead else []
    return done


def sentence_on(server: Switched) -> str:
    """What there is to say of a server that `clear` found; without its address."""
    now = "it is off now" if server.problem is None else "it could not be turned off"
    return f"a watch that was killed had left continuous profiling on; {now}"


def holder(address: str) -> int | None:
    """The process of this user that keeps continuous profiling on at a server; None if none is known."""
    held = (path for lease, path, is_dead in _leases() if not is_dead and address in (_addresses(lease) or ()))
    return next((int(os.path.basename(path).partition("-")[0]) for path in held), None)


def _leases() -> Iterator[tuple[int, str, bool]]:
    """Each lease of this user: a descriptor, its path, and whether its watch is dead, whose lease is then locked."""
    folder = os.path.join(state_folder(), FOLDER)
    with contextlib.ExitStack() as opened:
        found = []
        with contextlib.suppress(OSError):
            for name in filter(_NAME.fullmatch, sorted(os.listdir(folder))):
                with contextlib.suppress(OSError):  # it has just ended
                    lease = os.open(path := os.path.join(folder, name), _FLAGS)
                    opened.callback(os.close, lease)
                    if os.fstat(lease).st_uid == os.geteuid():
                        found.append((lease, path, _is_locked(lease)))
        yield from found


def _is_locked(lease: int) -> bool:
    """Locks a lease, if nobody else has."""
    with contextlib.suppress(OSError):
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _note(lease: int, addresses: Iterable[str]) -> None:
    """Writes into the locked file itself, in one piece as long as what was there: another file would not be locked."""
    content = json.dumps({"machine": socket.gethostname(), "addresses": list(addresses)})
    os.pwrite(lease, content.encode().ljust(os.fstat(lease).st_size), 0)


def _addresses(lease: int) -> list[str] | None:
    """The servers of a lease, none of a damaged one; None for that of another machine, whose localhost is another."""
    with contextlib.suppress(ValueError, RecursionError):
        match json.loads(os.pread(lease, _LONGEST, 0)):
            case {"machine": machine, "addresses": [*addresses]}:
                return [str(address) for address in addresses] if machine == socket.gethostname() else None
    return []


# --- the watchdog


def begin_watchdog(path: str) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own, which nothing reaches that ends the terminal or the group of this one.

    Args:
        path: where the lease lies.

    Raises:
        ProfileError: `no_watchdog`.
    """
    command = [sys.executable, "-c", f"from {__name__} import watchdog; watchdog()", path]
    # Not in the working folder: Python would import modules from there.
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    process = subprocess.Popen(  # noqa: S603 - a fixed command
        command, stdin=nothing, stdout=pipe, stderr=nothing, cwd="/", start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout as stdout:
        if stdout.readline() == _READY:
            return process
    sentence = "The process that turns continuous profiling off, should this one be killed, does not start."
    raise failure("no_watchdog", sentence, "without --continuous")


def watchdog() -> None:
    """Waits for the watch to end, however it does, and for a minute tries to turn off what it left on."""
    path = sys.argv[1]
    lease = os.open(path, _FLAGS)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, _READY)
    fcntl.flock(lease, fcntl.LOCK_EX)
    signal.alarm(LONGEST_SECONDS)
    while any(each.problem is not None for each in turn_off(lease, path)):
        time.sleep(_PATIENCE.connect_seconds)
