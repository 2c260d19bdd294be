"""What each program is said to wait for, and where: the truth that its script planted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.insight.programs.captures import PROGRAMS, Program
from tests.insight.programs.scripts.harness import STEPS
from tests.support.build import present
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.pages.collectives.rows import rows_by
from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.findings.generic.on_cpu import LEAST, NOT_TRACED, TRACE_PYTHON
from tpuprof.parsers.pages.input.input import INPUT
from tpuprof.parsers.pages.input.model import FROM_SOURCE
from tpuprof.parsers.pages.overview.inference import INFERENCE
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.steps.generic.cpu import ASYNCHRONOUS

VERDICT = {
    "input": "input-bound",
    "compile": "compiling",
    "host": "host-bound",
    "other process": "waiting",
    "ops": "uncounted",
}
KIND = {"input": "input", "compile": "compilation", "host": "host", "other process": "straggler"}
TAB = {"input": "input", "compile": "timeline", "host": "timeline", "other process": "timeline"}

NEAR = 0.2
"""By how much a share may differ from that by the script's own clock: of other steps, on a machine that does more."""


def verdict(page: Overview) -> str:
    return present(page.account).verdict.kind


def first(page: Overview) -> Finding:
    return page.findings[0]


HEALTHY = ("prefetched", "of one shape", "waited for", "eight devices")
FAULTS = [name for name in PROGRAMS if name not in (*HEALTHY, "launched only", "serving")]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_function_and_what_it_is_worth(name: str, program: Callable[[str], Program]) -> None:
    of = program(name)
    truth, page = of.truth, of.overview("traced")
    finding = first(page)
    assert (verdict(page), finding.kind) == (VERDICT[truth.verdict], KIND[truth.verdict])
    named = of.function if truth.function else "PrefetchDatasetIterator.__next__"
    assert named in finding.title and any(named in words for words in finding.evidence)
    assert finding.place.tab == TAB[truth.verdict] and finding.place.target in {step.name for step in page.steps}
    worth = present(finding.worth_fraction)
    assert worth >= truth.fraction["traced"] - NEAR
    # what else the host does beside a function of the program's is its time too: more of it on a machine that is busy
    assert worth <= (1.0 if truth.verdict == "host" else truth.fraction["traced"] + NEAR)
    assert present(page.account).verdict.statement.startswith(finding.title)


UNTRACED: Mapping[str, tuple[str, ...]] = {
    "grain": ("input-bound", "input", "PrefetchDatasetIterator.__next__"),
    "recompiling": ("compiling", "compilation", "compiles forward"),
}
"""Of faults that the runtime or the library records itself: verdict, kind, and words of the title."""


@pytest.mark.parametrize("name", FAULTS)
def test_without_the_python_tracer_it_is_the_same_or_not_traced(name: str, program: Callable[[str], Program]) -> None:
    of = program(name)
    page = of.overview("untraced")
    kinds = UNTRACED.get(name, ("untraced", "idle", NOT_TRACED))
    finding = first(page)
    assert (verdict(page), finding.kind) == kinds[:2] and kinds[2] in finding.title
    assert present(finding.worth_fraction) >= of.truth.fraction["untraced"] - NEAR
    if name not in UNTRACED:
        assert finding.advice == TRACE_PYTHON and page.bottleneck.classification != "device"


@pytest.mark.parametrize("way", ["traced", "untraced"])
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_is_bound_by_its_ops(name: str, way: str, program: Callable[[str], Program]) -> None:
    page = program(name).overview(way)
    # on fewer cores than devices some wait for others in the all-reduce
    assert verdict(page) in ("uncounted", *["collective-bound"] * (name == "eight devices"))
    assert all((finding.worth_fraction or 0.0) < 0.4 for finding in page.findings if finding.kind != "collective")
    assert page.bottleneck.classification in ("device", "unknown")


@pytest.mark.parametrize("name", ["starved", "queue", "grain"])
def test_the_input_page_has_the_same_wait(name: str, program: Callable[[str], Program]) -> None:
    page = program(name).session("traced").page(INPUT)
    assert page.bottleneck.classification == "host"
    assert present(page.bottleneck.input_percent) == pytest.approx(
        100 * program(name).truth.fraction["traced"], abs=100 * NEAR
    )
    if name == "grain":
        assert not any("tf.data" in words for words in page.next_steps)
        kinds = {op.name: op.kind for op in page.ops}
        assert kinds["SourceMapDataset.__getitem__"] == FROM_SOURCE


@pytest.mark.parametrize("way", ["traced", "untraced"])
def test_steps_that_only_launch_their_ops_are_periods_of_the_program(
    way: str, program: Callable[[str], Program]
) -> None:
    of = program("launched only")
    for page in (of.overview(way), Session(open_logdir(str(of.trace(way))).find_run(None)).page(OVERVIEW)):
        time = present(page.performance.step_time)
        assert time.source == "modules" and time.note.startswith(ASYNCHRONOUS) and "successive runs of" in time.note
        assert verdict(page) == "uncounted" and page.steps


def test_a_program_without_annotations_has_the_periods_of_its_program(program: Callable[[str], Program]) -> None:
    page = program("serving").overview("traced")
    time = present(page.performance.step_time)
    assert (time.source, time.count) == ("modules", 3 * STEPS - 1) and "StepTraceAnnotation" in time.note
    for way in ("traced", "untraced"):
        offers = program("serving").session(way).page(INFERENCE).offers
        assert [(offer.subject, offer.sessions) for offer in offers] == [("request", 3 * STEPS)]


def test_one_of_two_processes_waits_for_the_other(processes: tuple[Program, Program]) -> None:
    waiting, late = processes
    for way in ("traced", "untraced"):
        page = waiting.overview(way)
        finding = first(page)
        assert (verdict(page), finding.kind, finding.is_estimate) == ("waiting", "straggler", True)
        assert any("runs on 2 devices, and 1 of them" in words for words in page.warnings)
        assert "another process" in finding.title and "2 devices, of which this profile has 1" in finding.evidence[0]
        assert present(finding.worth_fraction) == pytest.approx(late.truth.fraction[way], abs=NEAR)
    page = late.overview("traced")
    assert verdict(page) == "host-bound" and late.function in first(page).title
    assert verdict(late.overview("untraced")) == "untraced"


@pytest.mark.parametrize("way", ["traced", "untraced"])
def test_collectives_of_devices_on_the_cpu(
    way: str, program: Callable[[str], Program], processes: tuple[Program, Program]
) -> None:
    page = program("eight devices").session(way).page(COLLECTIVES)
    rows = rows_by(page, "all")
    assert (len(page.cores), rows.kind, rows.groups, rows.count.tolist()) == (8, ("all-reduce",), ("1×8",), [9.0])
    assert present(page.exposed_ps) > 0 and present(page.waiting_ps) > 0 and " exposed; " in page.statement
    exposed = present(program("eight devices").overview(way).account).fraction("collective_transfer")
    reasons = [of for of in program("eight devices").overview(way).findings if of.kind == "collective"]
    assert len(reasons) == (exposed >= LEAST) and all("psum_invariant" in reason.title for reason in reasons)
    page = processes[0].session(way).page(COLLECTIVES)
    assert page.lacks_partners and page.waiting_ps is None and present(page.exposed_share) > 0.5
    assert np.isnan(rows_by(page, "all").waiting_ps).all()


@pytest.mark.parametrize("way", ["traced", "untraced"])
def test_beside_each_other_the_late_process_is_named(
    way: str, processes: tuple[Program, Program], tmp_path: Path
) -> None:
    run = tmp_path / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    for name, each in zip(("first", "second"), processes, strict=True):
        (profile,) = (each.folder / way).rglob("*.xplane.pb")
        shutil.copy(profile, run / f"{name}.xplane.pb")
    page = Session(open_logdir(str(tmp_path)).find_run(None)).page(OVERVIEW)
    finding = first(page)
    assert (verdict(page), finding.kind) == ("waiting", "straggler") and not finding.is_estimate
    assert not any("devices" in words for words in page.warnings)
    where = processes[1].function if way == "traced" else NOT_TRACED
    assert finding.title == f"first waits for second, which is {'in ' * (way == 'traced')}{where}"
    assert present(finding.worth_fraction) == pytest.approx(processes[1].truth.fraction[way], abs=NEAR)
    collectives = Session(open_logdir(str(tmp_path)).find_run(None)).page(COLLECTIVES)
    assert "waits for second, " in collectives.statement and not collectives.lacks_partners
    assert present(page.account).step_ps == pytest.approx(
        sum(step.duration_ps for step in page.steps) / len(page.steps)
    )
