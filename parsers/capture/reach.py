"""Whether a profiler server listens at an address; it is asked for nothing that it would trace."""

from __future__ import annotations

import time
from contextlib import closing

from tpuprof.parsers.capture import errors
from tpuprof.parsers.capture.client import Server
from tpuprof.parsers.capture.model import Address

_NO_SESSION = "tpuprof-reach"
"""A session that no server has: it confirms that there is nothing to end."""

_SECONDS = 5.0


def reach(address: Address, seconds: float = _SECONDS) -> float:
    """Calls a profiler server; how many seconds its answer took, the connection included.

    Args:
        seconds: how long it may take to answer at all.

    Raises:
        ProfileError: `no_grpc`, or why nobody answers, or that what does is no profiler server.
    """
    with closing(Server(address)) as server:
        began = time.monotonic()
        call = server.ping(seconds)
        call.wait(seconds + 1)
        took = time.monotonic() - began
        status = call.status()
        if status.name not in ("UNIMPLEMENTED", "OK"):
            raise errors.unreachable(address, status.name, status.details, seconds)
        call = server.terminate(_NO_SESSION, seconds)
        call.wait(seconds + 1)
        status = call.status()
    if status.name != "OK":
        raise errors.refused(address, status.name, status.details)
    return took
