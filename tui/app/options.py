"""What the command line asks of the screen."""

from __future__ import annotations

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.terminal.detect import ColorChoice, Theme


@dataclass(frozen=True, slots=True)
class AppOptions:
    """How the screen is to look and what it opens first.

    Attributes:
        ascii, color, mouse: draw with ASCII characters only, how many colours to use, follow the mouse; None and `auto`
            leave it to locale and terminal.
        run: name of the run to open, or the beginning of one; `None` for the newest.
        host: the one host to show; `None` for all of them.
        core: the one core or chip to show, ``host:2``; `None` for all of them.
        tab: index of the tab that is shown first.
        only_hlo: the path leads to compiled modules without a profile.
        shows_program: what each of these takes and moves is shown first.
        device: type of the TPU that these are for, where the user said so.
        latest: the newest run is to be opened whenever one comes.
        jobs: how many cores reading may keep busy, None for all.
        cache, cache_bytes: whether what is read of hosts is kept for the next time, and how much at most, None for as
            much as is usual.
    """

    ascii: bool | None = None
    color: ColorChoice = "auto"
    mouse: bool | None = None
    run: str | None = None
    host: str | None = None
    core: str | None = None
    demo: bool = False
    tab: int = 0
    only_hlo: bool = False
    shows_program: bool = False
    device: str | None = None
    latest: bool = False
    jobs: int | None = None
    cache: bool = True
    cache_bytes: int | None = None
    theme: Theme = "auto"
