"""How the op profile is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.pages.ops.op_profile import OpProfilePage, op_profile_page
from tpuprof.parsers.session.pages import OPS

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def op_profile(session: Session, host: str | None) -> OpProfilePage:
    """The op profile's trees."""
    return op_profile_page(session.page(OPS, host))


def without_idle(session: Session, host: str | None) -> OpProfilePage:
    """The same without idle time."""
    return op_profile_page(session.page(OPS, host), with_idle=False)
