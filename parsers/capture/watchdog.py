"""A process that outlives a watch which is killed, and then turns continuous profiling off where the watch had it on.

It waits for the lock on the watch's lease (`tpuprof.parsers.capture.leases`), which the system releases however the
watch ends. It imports little until then, because it waits for days.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from importlib import import_module

from tpuprof.parsers.capture.errors import failure

LONGEST_SECONDS = 60
"""How long it tries to reach the servers; what it can't turn off then is left to whoever finds the lease."""

_PAUSE_SECONDS = 2.0
_READY = b"ready\n"
_PROGRAM = f"from {__name__} import main; main()"


def begin(lease: int, name: str) -> subprocess.Popen[bytes]:
    """Starts the process, in a session of its own: what ends the terminal or the group of this one does not reach it.

    Args:
        lease, name: a descriptor of the lease that no lock was taken with, and its name.

    Raises:
        ProfileError: `no_watchdog`: it does not start.
    """
    # Not in the working folder: Python would import modules from there.
    process = subprocess.Popen(  # noqa: S603 - a fixed command
        [sys.executable, "-c", _PROGRAM, str(lease), name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        pass_fds=(lease,),
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout as stdout:
        if stdout.readline() == _READY:
            return process
    process.wait()
    sentence = "The process that turns continuous profiling off, if this one is killed, does not start."
    raise failure("no_watchdog", sentence, "without --continuous")


def main() -> None:
    """Runs the process."""
    lease, name = int(sys.argv[1]), sys.argv[2]
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, _READY)
    fcntl.flock(lease, fcntl.LOCK_EX)
    if os.fstat(lease).st_nlink == 0:
        return  # the watch turned it off itself, or whoever found the lease before
    signal.alarm(LONGEST_SECONDS)
    leases = import_module("tpuprof.parsers.capture.leases")
    while leases.turn_off(lease, name):
        time.sleep(_PAUSE_SECONDS)
