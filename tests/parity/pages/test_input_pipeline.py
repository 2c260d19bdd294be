"""The input pipeline page against XProf 2.24.2's answers for the golden profiles: every field of its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.parity.oracle.fields import Agrees, Difference, Value, compare
from tests.parity.oracle.golden import RUNS, golden_answer
from tests.parity.oracle.op_fields import summaries_of, table_fields
from tests.parity.pages import test_overview as overviews
from tests.parity.pages.test_overview import SPECIFIC as OVERVIEW
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.input.input import input_pipeline_page
from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.pages.shared.steps import common_steps
from tpuprof.parsers.steps.times import INFEED

NOT_READ = "XProf calls a breakdown of nothing 0; without input ops on the host it is unknown"
TIED = "several cores wait as long: ours is the first, XProf's the first in its hash map"
NO_DETAILS = "the plane says nothing of its core: XProf writes localhost and the plane's id, we host and plane number"
GENERAL = "XProf prints the same advice for every profile; ours is about this one's largest part"
PARTS = ("enqueue", "demanded_file_read", "advanced_file_read", "preprocessing", "unclassified")


def xprof_fields(tables: Any) -> dict[str, Value]:
    """Flattens XProf's five tables: ``max.3`` worst core of a step, ``step.3.tcIdleTimeMs``, ``op.0.opName``."""
    cores, steps, host, advice, diagnostics = tables
    fields: dict[str, Value] = {}
    names, worst = ([cell["v"] for cell in row["c"]][1:] for row in cores["rows"])
    fields |= {f"max.{name}": core for name, core in zip(names, worst, strict=True)}
    fields |= table_fields(steps, "step") | table_fields(host, "op") | table_fields(diagnostics, "diagnostic")
    fields |= {f"advice.{at}": row["c"][0]["v"] for at, row in enumerate(advice["rows"])}
    fields["diagnostics"] = len(diagnostics["rows"])
    return fields


def our_fields(page: InputPipelinePage, first: Overview) -> dict[str, Value]:
    """The same fields out of our page."""
    marked = page.step_time is not None and page.step_time.source == "steps"
    fields = overviews.step_fields(first)
    # the two pages agree on what both show
    if marked and page.infeed_percent is not None:
        fields |= {
            "infeed_percent_average": page.infeed_percent.average,
            "infeed_percent_standard_deviation": page.infeed_percent.standard_deviation,
            "infeed_percent_maximum": page.infeed_percent.maximum,
            "infeed_percent_minimum": page.infeed_percent.minimum,
        }
    for at, step in enumerate(page.steps if marked else ()):
        fields[f"max.{at}"] = step.core or "unknown"
    fields |= {
        "input_conclusion": page.bottleneck.statement,
        "output_conclusion": "",
        "summary_nextstep": " ".join(page.next_steps),
        "diagnostics": 0 if marked else 1,
    }
    for part in PARTS:
        name = "unclassified_nonequeue_us" if part == "unclassified" else f"{part}_us"
        fields[name] = None if page.breakdown is None else getattr(page.breakdown, f"{part}_ps") / 1e6
    for at, op in enumerate(op for op in page.ops if op.group == "input_op"):
        fields |= {
            f"op.{at}.opName": op.name,
            f"op.{at}.count": float(op.occurrences),
            f"op.{at}.timeInMs": op.total_ps / 1e9,
            f"op.{at}.timeInPercent": op.total_percent / 100,
            f"op.{at}.selfTimeInMs": op.self_ps / 1e9,
            f"op.{at}.selfTimeInPercent": op.self_percent / 100,
            f"op.{at}.category": op.category,
        }
    fields |= {f"advice.{at}": " ".join(page.next_steps) for at in range(5)}
    return fields


def different(page: InputPipelinePage) -> dict[str, Difference]:
    """In what our page differs from XProf's for any profile, and what it must say instead."""
    advice = " ".join(page.next_steps)
    found = {
        "input_conclusion": Difference(page.bottleneck.statement, overviews.WORDS),
        "summary_nextstep": Difference(advice, GENERAL),
        **{f"advice.{at}": Difference(advice, GENERAL) for at in range(5)},
    }
    if page.breakdown is None:
        for part in (*(f"{part}_us" for part in PARTS[:-1]), "unclassified_nonequeue_us"):
            found[part] = Difference(None, NOT_READ)
    return found


def worst(page: InputPipelinePage, summaries: Sequence[HostSummary]) -> dict[str, Difference]:
    """The core that waits most, where several wait as long, or where the host's waiting counts."""
    grid = common_steps(summaries).grid
    if grid is None or grid.source != "steps":
        return {}
    waits = grid.part_ps[:, :, INFEED]
    why = TIED if grid.input_source == "infeed" else overviews.HOST_INPUT
    alike = (waits == waits.max(axis=0)).sum(axis=0) > 1
    rows = np.flatnonzero(alike | (grid.input_source == "host")).tolist()
    return {f"max.{at}": Difference(page.steps[at].core, why) for at in rows}


STEPS = ("infeed_percent", "tc_idle", "step.")
SPECIFIC: dict[str, dict[str, Difference]] = {
    name: {key: value for key, value in OVERVIEW[name].items() if key.startswith(STEPS)} for name in RUNS
}
SPECIFIC["synthetic-a"] |= {"max.4": Difference("host0:1", overviews.TOUCHING)}
for name in ("synthetic-b", "synthetic-c"):
    SPECIFIC[name] |= {f"max.{at}": Difference("host0:0", NO_DETAILS) for at in range(5)}


def answer(shared: Path, name: str) -> tuple[InputPipelinePage, Overview]:
    summaries = summaries_of(shared, name)
    first = overview(summaries)
    return input_pipeline_page(summaries, first), first


@pytest.mark.shared
@pytest.mark.parametrize("name", RUNS)
def test_every_field_is_xprofs_or_differs_for_a_reason(shared: Path, name: str, agrees: Agrees) -> None:
    theirs = xprof_fields(golden_answer(shared, name, "input_pipeline_analyzer"))
    page, first = answer(shared, name)
    sparse, stated = overviews.of_sparse_cores(shared, name, theirs)
    ours, summaries = our_fields(page, first) | sparse, summaries_of(shared, name)
    stated |= different(page) | overviews.printed(theirs, ours)
    stated |= overviews.waits_of_host(first, summaries) | worst(page, summaries)
    result = compare(theirs, ours, stated | SPECIFIC[name])
    assert result.unused_specific(SPECIFIC[name]) == []
    assert result.compared == len(theirs) >= 31
    agrees(result, "input pipeline")
