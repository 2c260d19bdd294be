"""Leases: which servers keep their last seconds for a watch that runs, so that a dead one's can be turned off.

A lease is a record in the user's state folder (`tpuprof.parsers.capture.state`), locked for as long as its watch lives.
Whoever gets the lock knows that the watch is dead: its watchdog, or the next watch, capture or doctor.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import state_folder
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.capture import continuous, watchdog
from tpuprof.parsers.capture.continuous import Switched
from tpuprof.parsers.capture.model import Address, CaptureOptions
from tpuprof.parsers.capture.state import open_record, read_record, records, write_record

FOLDER = "profilers"
_NAME = re.compile(r"[0-9]{1,10}-[0-9a-f]{8}\.json", re.ASCII)  # the number of the process stands in front
CLEARED = "a watch that was killed had left continuous profiling on; it is off now"
"""What there is to say of a server that `clear` turned off."""

_PATIENCE = CaptureOptions(connect_seconds=2.0)
_GONE = ("no_server", "unknown_host")
"""Codes of servers whose program has ended, and continuous profiling with it."""


class Lease:
    """The lease of this process, and its watchdog.

    Args:
        addresses: of all servers where it may turn continuous profiling on.

    Raises:
        ProfileError: `state_folder` or `no_watchdog`.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}.json"
        with records(FOLDER) as folder:
            self._descriptor = write_record(folder, self._name, _record(addresses))
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            waits = open_record(folder, self._name)
        try:
            self._watchdog = watchdog.begin(waits, self._name)
        except ProfileError:
            self._forget()
            raise
        finally:
            os.close(waits)

    def note(self, addresses: Iterable[str]) -> None:
        """Takes these servers alone as those where this process turned continuous profiling on, or is about to."""
        _note(self._descriptor, addresses)

    def end(self) -> None:
        """Turns continuous profiling off. What can't be turned off now is left to the watchdog."""
        with contextlib.suppress(ProfileError):
            turn_off(self._descriptor, self._name)
        os.close(self._descriptor)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._watchdog.wait(1.0)

    def _forget(self) -> None:
        _remove(self._name)
        os.close(self._descriptor)


def turn_off(lease: int, name: str, only: Sequence[Address] | None = None) -> list[Switched]:
    """Turns continuous profiling off at the servers of a lease that this process has locked; removes a lease without
    further servers.

    Args:
        only: servers to look at; None for all.

    Returns:
        The servers that did not do so.
    """
    left = [address for address in _addresses(lease) if only is None or address in map(str, only)]
    done = continuous.switch(left, False, _PATIENCE) if left else []
    failed = [each for each in done if each.problem is not None and each.problem.code not in _GONE]
    kept = {str(each.address) for each in failed}
    rest = [address for address in _addresses(lease) if address not in left or address in kept]
    _note(lease, rest)
    if not rest:
        _remove(name)
    return failed


@dataclass(frozen=True, slots=True)
class Found:
    """Servers that dead watches had turned continuous profiling on at: where it is off now, and where that failed."""

    off: tuple[str, ...]
    failed: tuple[Switched, ...]


def clear(only: Sequence[Address] | None = None) -> Found:
    """Turns continuous profiling off where a dead watch of this user, on this machine, left it on.

    Args:
        only: servers that may be contacted; None for all.
    """
    off: list[str] = []
    failed: list[Switched] = []
    for lease, name, is_dead in _leases():
        wanted = [address for address in _addresses(lease) if only is None or address in map(str, only)]
        if is_dead and wanted:
            with contextlib.suppress(ProfileError):  # without gRPC
                refused = turn_off(lease, name, only)
                failed += refused
                off += [address for address in wanted if address not in {str(each.address) for each in refused}]
    return Found(tuple(off), tuple(failed))


def holder(address: Address) -> int | None:
    """The process of this user that keeps continuous profiling on at a server; None if none is known."""
    held = (name for lease, name, is_dead in _leases() if not is_dead and str(address) in _addresses(lease))
    return next((int(name.partition("-")[0]) for name in held), None)


def _leases() -> Iterator[tuple[int, str, bool]]:
    """Each lease of this machine: a descriptor, its name, and whether its watch is dead; a dead one's is locked."""
    if not os.path.isdir(os.path.join(state_folder(), FOLDER)):
        return  # and a capture makes none
    with contextlib.ExitStack() as opened:
        found = []
        with contextlib.suppress(ProfileError), records(FOLDER) as folder:
            for name in filter(_NAME.fullmatch, sorted(os.listdir(folder))):
                with contextlib.suppress(OSError):
                    lease = open_record(folder, name)
                    opened.callback(os.close, lease)
                    found.append((lease, name, _is_dead(lease)))
        yield from found


def _is_dead(lease: int) -> bool:
    try:
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _record(addresses: Iterable[str]) -> dict[str, object]:
    return {"machine": socket.gethostname(), "addresses": list(addresses)}


def _note(lease: int, addresses: Iterable[str]) -> None:
    """Writes into the locked file itself, in one piece as long as what was there: another file would not be locked."""
    os.pwrite(lease, json.dumps(_record(addresses)).encode().ljust(os.fstat(lease).st_size), 0)


def _addresses(lease: int) -> list[str]:
    """The servers of a lease; none of a damaged one, or one of another machine, whose localhost is not this one."""
    match read_record(lease):
        case {"machine": machine, "addresses": [*addresses]} if machine == socket.gethostname():
            return [address for address in addresses if isinstance(address, str)]
    return []


def _remove(name: str) -> None:
    with contextlib.suppress(OSError, ProfileError), records(FOLDER) as folder:
        os.unlink(name, dir_fd=folder)
