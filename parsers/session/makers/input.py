"""How the page of the input pipeline is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.pages.input.input import input_pipeline_page
from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.parsers.session.makers.summaries import read
from tpuprof.parsers.session.pages import OVERVIEW

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def input_pipeline(session: Session, host: str | None) -> InputPipelinePage:
    """The input pipeline."""
    page = session.page(OVERVIEW, host)
    return input_pipeline_page(read(session, host).summaries, page)
