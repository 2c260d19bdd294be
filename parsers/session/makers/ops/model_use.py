"""How the page on what of the peak a model uses is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.pages.common import device_of
from tpuprof.parsers.pages.overview.use.model_use import ModelUse
from tpuprof.parsers.pages.overview.use.model_use import model_use as use_of
from tpuprof.parsers.session.makers.summaries import read
from tpuprof.parsers.session.pages import OP_ACCOUNTS, OVERVIEW

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def model_use(session: Session, host: str | None) -> ModelUse:
    """What of the peak the program uses."""
    device = device_of(read(session, host).summaries)
    peak = None if device is None else device.peaks.flops_per_second
    return use_of(session.page(OVERVIEW, host).account, session.page(OP_ACCOUNTS, host), peak)
