"""How the ops are read."""

from __future__ import annotations

from functools import partial

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.ops.framework_ops import FRAMEWORK_OPS
from tpuprof.parsers.pages.ops.kernels.call_units import HAS_COUNTERS, call_units_in
from tpuprof.parsers.pages.ops.op_profile import OP_PROFILE, OP_PROFILE_WITHOUT_IDLE
from tpuprof.parsers.pages.ops.ops import with_offloaded
from tpuprof.parsers.pages.ops.roofline import ROOFLINE, ROOFLINE_WITHOUT_INFEED
from tpuprof.parsers.pages.shared.key import MODULES
from tpuprof.parsers.session.pages import Pages
from tpuprof.tui.pages import Publish, views_there
from tpuprof.tui.pages.ops.details.card_cache import OpPages


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Tells the HLO ops and which other pages are views; then the framework ops, which take the host threads' lines."""
    profile = session.page(OP_PROFILE, host)
    op_pages = OpPages(
        profile=profile,
        profile_without_idle=session.page(OP_PROFILE_WITHOUT_IDLE, host),
        roofline=session.page(ROOFLINE, host),
        roofline_without_feeds=session.page(ROOFLINE_WITHOUT_INFEED, host),
        modules=session.page(MODULES, host),
        listed=with_offloaded(profile.ops),
        calls=partial(call_units_in, run.files(host), profile.ops) if session.page(HAS_COUNTERS, host) else None,
    )
    publish("ops", op_pages)
    publish("views", views_there("op-profile", session, host))
    publish("framework_ops", session.page(FRAMEWORK_OPS, host))
