"""How the ops are read."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from tpuprof.tui.pages import views_there
from tpuprof.tui.pages.ops.shelf import OpPages

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Tell


def load(session: Pages, run: Run, host: str | None, tell: Tell) -> None:
    """Tells the HLO ops and which other pages are views; then the framework ops, which take the host threads' lines."""
    for module in (
        "parsers.ops.filter",
        "parsers.pages.ops.details",
        "tui.pages.ops.fields.framework_ops",
        "tui.draw.source_lines",
    ):
        import_module(f"tpuprof.{module}")  # what keys need later is read here, and not on the screen's thread
    from tpuprof.parsers.pages.ops.ops import with_offloaded  # noqa: PLC0415 - numpy, not at start
    from tpuprof.parsers.session.counters import kernels_of  # noqa: PLC0415

    profile = session.op_profile(host)
    pages = OpPages(
        profile=profile,
        profile_without_idle=session.op_profile(host, with_idle=False),
        roofline=session.roofline(host),
        roofline_without_feeds=session.roofline(host, with_infeed=False),
        modules=session.modules(host),
        listed=with_offloaded(profile.ops),
        calls=partial(kernels_of, run.files(host)) if session.has_counters(host) else None,
    )
    tell("ops", pages)
    tell("views", views_there("op-profile", session, host))
    tell("framework_ops", session.framework_ops(host))
