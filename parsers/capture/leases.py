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

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import state_folder
from tpuprof.parsers.capture import continuous
from tpuprof.parsers.capture.continuous import Switched
from tpuprof.parsers.capture.errors import failure
from tpuprof.parsers.capture.model import CaptureOptions
from tpuprof.parsers.capture.state import open_record, read_record, records, write_record

FOLDER = "profilers"
LONGEST_SECONDS = 60
"""How long a watchdog tries to reach servers; what it can't reach is left to whoever finds the lease."""

_NAME = re.compile(r"[0-9]{1,10}-[0-9a-f]{8}\.json", re.ASCII)  # the number of the process stands in front
_PATIENCE = CaptureOptions(connect_seconds=2.0)
_GONE = ("no_server", "unknown_host")  # codes of servers whose program has ended, and its profiling with it
_READY = b"ready\n"


class Lease:
    """The lease of this process, with its watchdog.

    Args:
        addresses: of all servers where it may turn continuous profiling on.

    Raises:
        ProfileError: `state_folder`: there can be no lease; `no_watchdog`: the watchdog does not start.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}.json"
        with records(FOLDER) as folder:
            self._lease = write_record(folder, self._name, _record(addresses))
            fcntl.flock(self._lease, fcntl.LOCK_EX)
            waits = open_record(folder, self._name)
        self._watchdog = begin_watchdog(waits, self._name)
        os.close(waits)

    def note(self, addresses: Iterable[str]) -> None:
        """Takes these servers alone as those where this process turned continuous profiling on, or is about to."""
        _note(self._lease, addresses)

    def end(self) -> None:
        """Turns continuous profiling off; what can't be reached now is left to the watchdog."""
        turn_off(self._lease, self._name)
        os.close(self._lease)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._watchdog.wait(1.0)


def turn_off(lease: int, name: str, only: Sequence[str] | None = None) -> list[Switched]:
    """Turns continuous profiling off at servers of a lease that this process has locked, and takes them out of it.

    Args:
        only: servers that may be contacted; None for all.

    Returns:
        Each server, with the problem where it stays in the lease.
    """
    wanted = [address for address in _addresses(lease) if only is None or address in only]
    done = continuous.switch(wanted, False, _PATIENCE) if wanted else []
    is_gone = (each.problem is not None and each.problem.code in _GONE for each in done)
    done = [Switched(each.address, True, None) if gone else each for each, gone in zip(done, is_gone, strict=True)]
    off = {str(each.address) for each in done if each.problem is None}
    _note(lease, left := [address for address in _addresses(lease) if address not in off])
    if not left:
        with contextlib.suppress(OSError, ProfileError), records(FOLDER) as folder:
            os.unlink(name, dir_fd=folder)
    return done


def clear(only: Sequence[str] | None = None) -> list[Switched]:
    """Turns continuous profiling off where a dead watch of this user, on this machine, left it on.

    Args:
        only: servers that may be contacted; None for all.
    """
    done: list[Switched] = []
    for lease, name, is_dead in _leases():
        with contextlib.suppress(ProfileError):  # without gRPC
            done += turn_off(lease, name, only) if is_dead else []
    return done


def sentence_on(server: Switched) -> str:
    """What there is to say of a server that `clear` found; without its address."""
    now = "it is off now" if server.problem is None else "the server does not answer"
    return f"a watch that was killed had left continuous profiling on; {now}"


def holder(address: str) -> int | None:
    """The process of this user that keeps continuous profiling on at a server; None if none is known."""
    held = (name for lease, name, is_dead in _leases() if not is_dead and address in _addresses(lease))
    return next((int(name.partition("-")[0]) for name in held), None)


def _leases() -> Iterator[tuple[int, str, bool]]:
    """Each lease: a descriptor, its name, and whether its watch is dead, whose lease is then locked."""
    if not os.path.isdir(os.path.join(state_folder(), FOLDER)):
        return  # and nothing makes one
    with contextlib.ExitStack() as opened:
        found = []
        with contextlib.suppress(ProfileError), records(FOLDER) as folder:
            for name in filter(_NAME.fullmatch, sorted(os.listdir(folder))):
                with contextlib.suppress(FileNotFoundError):
                    lease = open_record(folder, name)
                    opened.callback(os.close, lease)
                    found.append((lease, name, _is_locked(lease)))
        yield from found


def _is_locked(lease: int) -> bool:
    """Locks a lease, if nobody else has."""
    with contextlib.suppress(OSError):
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _record(addresses: Iterable[str]) -> dict[str, object]:
    return {"machine": socket.gethostname(), "addresses": list(addresses)}


def _note(lease: int, addresses: Iterable[str]) -> None:
    """Writes into the locked file itself, in one piece as long as what was there: another file would not be locked."""
    os.pwrite(lease, json.dumps(_record(addresses)).encode().ljust(os.fstat(lease).st_size), 0)


def _addresses(lease: int) -> list[str]:
    """The servers of a lease; none of a damaged one, or one of another machine, whose localhost is not this one."""
    match read_record(lease):
        case {"machine": machine, "addresses": [*addresses]} if machine == socket.gethostname():
            return [str(address) for address in addresses]
    return []


# --- the watchdog


def begin_watchdog(lease: int, name: str) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own, which nothing reaches that ends the terminal or the group of this one.

    Args:
        lease, name: a descriptor of the lease, which has no lock of its own, and the name.

    Raises:
        ProfileError: `no_watchdog`.
    """
    command = [sys.executable, "-c", f"from {__name__} import watchdog; watchdog()", str(lease), name]
    # Not in the working folder: Python would import modules from there.
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    process = subprocess.Popen(  # noqa: S603 - a fixed command
        command, stdin=nothing, stdout=pipe, stderr=nothing, cwd="/", pass_fds=(lease,), start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout as stdout:
        if stdout.readline() == _READY:
            return process
    sentence = "The process that turns continuous profiling off, should this one be killed, does not start."
    raise failure("no_watchdog", sentence, "without --continuous")


def watchdog() -> None:
    """Waits for the watch to end, however it does, and turns off what it left on."""
    lease, name = int(sys.argv[1]), sys.argv[2]
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, _READY)
    fcntl.flock(lease, fcntl.LOCK_EX)
    signal.alarm(LONGEST_SECONDS)
    while any(each.problem is not None for each in turn_off(lease, name)):
        time.sleep(_PATIENCE.connect_seconds)
