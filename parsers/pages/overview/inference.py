"""The page of inference: the latencies of requests, or of module runs."""

from __future__ import annotations

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.common import why_no_ops
from tpuprof.parsers.pages.shared.key import PageKey, PageSession
from tpuprof.parsers.pages.shared.latencies import InferencePage, latencies
from tpuprof.parsers.pages.shared.modules import modules_in
from tpuprof.parsers.pages.shared.summaries import read


def inference_of_run(session: PageSession, host: str | None) -> InferencePage:
    """Latencies of requests, or of module runs."""
    page = session.page(OVERVIEW, host)
    if page.inference is not None:
        return replace(page.inference, warnings=page.warnings)
    found = read(session, host)
    parts, programs = [summary.requests for summary in found.summaries], modules_in(session, found.files)
    is_training = page.environment.is_training
    return latencies(parts, page.hosts, is_training, why_no_ops(found.summaries), page.warnings, programs)


INFERENCE = PageKey(inference_of_run)
