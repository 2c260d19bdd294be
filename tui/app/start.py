"""Starts the screen: settles what the terminal can do before Textual is imported, which reads its settings then."""

from __future__ import annotations

import contextlib
import faulthandler
from functools import partial

from tpuprof.tui.app.loader import find_hlo, open_hlo_session
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.terminal.detect import settle_terminal


def run_app(path: str, *, options: AppOptions) -> int:
    """Shows the profiles at `path` until the user leaves.

    Returns:
        The exit code: 0, 128 and the number of a signal that ended it, or 1 after an error in this program, whose
        traceback is on standard error then.
    """
    with contextlib.suppress(OSError, ValueError):  # a crash in compiled code says where it was
        faulthandler.enable(2)
    terminal = settle_terminal(options.color, options.ascii, options.mouse, options.theme)
    from tpuprof.tui.app.app import TpuprofApp  # noqa: PLC0415 - Textual

    if options.only_hlo:
        of_hlo = partial(open_hlo_session, device=options.device)
        find = partial(find_hlo, as_text=options.shows_program)
        app = TpuprofApp(path, options, terminal, find=find, open_session=of_hlo)
    else:
        app = TpuprofApp(path, options, terminal)
    return app.show(terminal.mouse)
