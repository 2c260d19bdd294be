"""How the roofline is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.pages.ops.roofline import RooflinePage, roofline_page
from tpuprof.parsers.session.makers.summaries import read
from tpuprof.parsers.session.pages import OPS

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def roofline(session: Session, host: str | None) -> RooflinePage:
    """The roofline."""
    return _roofline(session, host, with_infeed=True)


def without_infeed(session: Session, host: str | None) -> RooflinePage:
    """The same without infeed and outfeed ops."""
    return _roofline(session, host, with_infeed=False)


def _roofline(session: Session, host: str | None, with_infeed: bool) -> RooflinePage:
    summaries = read(session, host).summaries  # before the ops: what can't be read any more is in neither
    return roofline_page(session.page(OPS, host), summaries, with_infeed)
