"""How the page of inference is made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tpuprof.parsers.pages import inference as pages
from tpuprof.parsers.pages.common import why_no_ops
from tpuprof.parsers.pages.inference import InferencePage
from tpuprof.parsers.session.makers.ops.modules import modules_in
from tpuprof.parsers.session.makers.summaries import read
from tpuprof.parsers.session.pages import OVERVIEW

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def inference(session: Session, host: str | None) -> InferencePage:
    """Latencies of requests, or of module runs."""
    page = session.page(OVERVIEW, host)
    if page.inference is not None:
        return replace(page.inference, warnings=page.warnings)
    found = read(session, host)
    parts, programs = [summary.requests for summary in found.summaries], modules_in(session, found.files)
    is_training = page.environment.is_training
    return pages.inference(parts, page.hosts, is_training, why_no_ops(found.summaries), page.warnings, programs)
