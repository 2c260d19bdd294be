"""Pages over those of a run's hosts that are read so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Generic

from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.pages.shared.key import OnPartial, Page

PARTIAL_AFTER_SECONDS = 0.15
"""After this time it makes a page over the hosts that are read so far, unless all are."""

PARTIAL_EVERY_SECONDS = 0.5
"""Pages over some hosts are at least this far apart; making them takes at most a tenth of the time."""

_PARTIAL_REST = 9


class Partials(Generic[Page]):
    """Makes pages over the hosts that are read so far, so rarely that it hardly delays the whole."""

    def __init__(
        self,
        page: Callable[[Sequence[HostFile], int], Page | None],
        files: Sequence[HostFile],
        on_partial: OnPartial[Page],
    ) -> None:
        self._page = page
        self._files = files
        self._on_partial = on_partial
        self._due = time.monotonic() + PARTIAL_AFTER_SECONDS

    def __call__(self, done: int) -> None:
        """Makes a page when one is due; `done` hosts are known."""
        begun = time.monotonic()
        if done >= len(self._files) or begun < self._due:
            return
        page = self._page(self._files, done)
        if page is None:
            return
        self._on_partial(page, done, len(self._files))
        now = time.monotonic()
        self._due = now + max(PARTIAL_EVERY_SECONDS, _PARTIAL_REST * (now - begun))
