"""How the compiled modules are had as graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.pages.graph.programs import Programs
from tpuprof.parsers.session.pages import MEMORY, OPS

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def graphs(session: Session, host: str | None) -> Programs:
    """The compiled modules as graphs with the times of their ops, none parsed yet."""
    return Programs(session.page(MEMORY, host), session.page(OPS, host))
