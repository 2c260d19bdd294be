"""What the ops tab needs, made of an ops page alone."""

from __future__ import annotations

from tpuprof.parsers.pages.ops.op_profile import op_profile_page
from tpuprof.parsers.pages.ops.ops import OpsPage, with_offloaded
from tpuprof.parsers.pages.ops.roofline import roofline_page
from tpuprof.tui.pages.ops.details.card_cache import OpPages


def pages_of(ops: OpsPage) -> OpPages:
    """All views of some ops, without steps and without HLO modules."""
    profile = op_profile_page(ops)
    return OpPages(
        profile=profile,
        profile_without_idle=op_profile_page(ops, with_idle=False),
        roofline=roofline_page(ops, []),
        roofline_without_feeds=roofline_page(ops, [], with_infeed=False),
        modules=(),
        listed=with_offloaded(ops),
    )
