"""How the page of HLO ops is made, which the other pages of ops are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tpuprof.parsers.hosts.op_summary import OPS_OF_HOST
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def ops(session: Session, host: str | None) -> OpsPage:
    """All HLO ops."""
    found = session.reduced(OPS_OF_HOST, host)
    page = ops_page(found.summaries)
    return replace(page, warnings=(*page.warnings, *found.left_out, *session.problems))


def has_sparse_cores(session: Session, host: str | None) -> bool:
    """Whether a profile of one host, or of any, has SparseCores; reads what the pages of ops need."""
    return any(summary.sparse_core_count for summary in session.reduced(OPS_OF_HOST, host).summaries)
