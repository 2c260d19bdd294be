"""How the commands open runs: with the workers that were asked for, and with what the user has set of the cache."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.session.opening import open_run
from tpuprof.parsers.session.session import Session
from tpuprof.tui.terminal.custom import Config


def session_of(run: Run, args: argparse.Namespace, config: Config, on_progress: Callable[[Progress], None]) -> Session:
    """What reads a run."""
    return open_run(
        run,
        on_progress,
        lambda: False,
        scheduler=args.scheduler,
        cache=args.cache and config.cache,
        cache_bytes=config.cache_bytes,
    )
