"""How the ops are read."""

from __future__ import annotations

from functools import partial

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.ops.ops import with_offloaded
from tpuprof.parsers.session import pages
from tpuprof.parsers.session.makers.counters import kernels_of
from tpuprof.parsers.session.pages import Pages
from tpuprof.tui.pages import Publish, views_there
from tpuprof.tui.pages.ops.details.card_cache import OpPages


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Tells the HLO ops and which other pages are views; then the framework ops, which take the host threads' lines."""
    profile = session.page(pages.OP_PROFILE, host)
    op_pages = OpPages(
        profile=profile,
        profile_without_idle=session.page(pages.OP_PROFILE_WITHOUT_IDLE, host),
        roofline=session.page(pages.ROOFLINE, host),
        roofline_without_feeds=session.page(pages.ROOFLINE_WITHOUT_INFEED, host),
        modules=session.page(pages.MODULES, host),
        listed=with_offloaded(profile.ops),
        calls=partial(kernels_of, run.files(host), profile.ops) if session.page(pages.HAS_COUNTERS, host) else None,
    )
    publish("ops", op_pages)
    publish("views", views_there("op-profile", session, host))
    publish("framework_ops", session.page(pages.FRAMEWORK_OPS, host))
