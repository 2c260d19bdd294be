"""Captures profiles of running programs; only this module loads gRPC."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tpuprof.parsers.capture.model import CaptureOptions
from tpuprof.parsers.capture.session import capture as ask_servers
from tpuprof.tui.api.opening import open_profile
from tpuprof.tui.api.profile import Profile


def capture(
    address: str | Sequence[str],
    logdir: str | os.PathLike[str] = ".",
    *,
    ms: int = CaptureOptions().duration_ms,
    options: CaptureOptions | None = None,
) -> Profile:
    """Asks running programs for a profile, writes it below a logdir, and opens it.

    Args:
        address: of the profiler server, ``host:port``, or several of them; ``@workers:port`` for all of a slice.
        logdir: the run is written to ``LOGDIR/plugins/profile/YYYY_MM_DD_HH_MM_SS``.
        ms: how long to trace.
        options: all options of a capture, instead of `ms`.

    Raises:
        ProfileError: no server gave a profile, or the folder can't be written (exit code 7).
    """
    addresses = [address] if isinstance(address, str) else list(address)
    result = ask_servers(addresses, options or CaptureOptions(duration_ms=ms), os.fspath(logdir))
    return open_profile(result.run_path)
