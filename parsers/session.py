"""What a front end holds: one run, opened lazily, its pages computed on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tpuprof.parsers.logdir import Run
from tpuprof.parsers.pages.overview_page import Overview


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a page's decoding is.

    Attributes:
        host: name of the host file at work; host_index counts from 0, host_count is their number.
        bytes_done, bytes_total: of the lines that the page needs, over all hosts.
        events_done: events decoded so far.
    """

    host: str
    host_index: int
    host_count: int
    bytes_done: int
    bytes_total: int
    events_done: int


class Session:
    """One run of a logdir.

    Args:
        run: what `parsers.logdir` found.
        on_progress: called on the decoding thread, often; cheap and thread-safe, please.
        is_cancelled: polled between chunks; when it says True the work stops with `parsers.errors.Cancelled`.
    """

    def __init__(
        self,
        run: Run,
        on_progress: Callable[[Progress], None] = lambda _: None,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.run = run
        self._on_progress = on_progress
        self._is_cancelled = is_cancelled

    def overview(self, host: str | None = None) -> Overview:
        """The overview of one host, or of all hosts merged when `host` is None.

        A host that cannot be read is left out and named in `Overview.warnings`.

        Raises:
            ProfileError: no host of the run is readable (exit code 4), or `host` names none (exit code 3).
            Cancelled: `is_cancelled` said so.
        """
        raise NotImplementedError
