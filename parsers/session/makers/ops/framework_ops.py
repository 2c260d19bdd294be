"""How the page of framework ops is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.hosts.framework_summary import FRAMEWORK_OPS_OF_HOST
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage, framework_ops_page
from tpuprof.parsers.session.pages import OPS

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def framework_ops(session: Session, host: str | None) -> FrameworkOpsPage:
    """Framework ops, on the device and on the host."""
    summaries = session.reduced(FRAMEWORK_OPS_OF_HOST, host).summaries  # the ops are made of them
    return framework_ops_page(session.page(OPS, host), [summary.host_ops for summary in summaries])
