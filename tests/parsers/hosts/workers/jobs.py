"""Work that tests have done in other processes, which need not import the tests for it: that would take far longer."""

from __future__ import annotations

import os
import signal
import time

from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.hosts.progress import ProgressReceiver


def ends_itself(file: HostFile, given: None, watch: ProgressReceiver, threads: int) -> int:
    """Work whose process is killed on one host, and that has no memory for another."""
    if file.host == "host1":
        os.kill(os.getpid(), signal.SIGKILL)
    if file.host == "host2":
        raise MemoryError
    watch.opened(10)
    watch.chunk(10, 1)
    return threads


def never_begins(file: HostFile, given: None, watch: ProgressReceiver, threads: int) -> int:
    raise AssertionError


def takes_forever(file: HostFile, given: None, watch: ProgressReceiver, threads: int) -> int:
    """Work that never looks up."""
    watch.opened(1000)
    watch.chunk(100, 7)
    time.sleep(60)
    return 0


def looks_up(file: HostFile, given: None, watch: ProgressReceiver, threads: int) -> int:
    """Work that never ends, and asks now and then whether it should."""
    watch.opened(1000)
    while True:
        time.sleep(0.01)
        watch.chunk(0, 0)


def fails(file: HostFile, given: None, watch: ProgressReceiver, threads: int) -> int:
    """Work with an error of its own, which is no fault of the file."""
    raise ZeroDivisionError
