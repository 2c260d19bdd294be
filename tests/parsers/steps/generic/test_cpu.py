"""A host without a device: steps by its annotations, and what they were made of, as XProf 2.24.2 has them."""

from __future__ import annotations

import numpy as np

from tests.support.build import PlaneBuilder, present, summary_of
from tests.support.gpus import US, cpu_profile
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.ops.framework_ops import framework_ops_page
from tpuprof.parsers.pages.ops.ops import ops_page
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, owner_index


def test_steps_are_the_annotations_and_ops_come_first() -> None:
    inside = [("load", 5, 30), ("backend_compile", 30, 45), ("IteratorGetNext", 45, 60), ("PjitFunction(step)", 60, 90)]
    summary = summary_of(cpu_profile(3, inside, [("dot.1", 70, 85), ("add.2", 85, 95), ("copy", 110, 120)]))
    assert summary.generic is not None and summary.generic.device_count == 0
    assert [step.name for step in summary.generic.steps] == ["train 20", "train 21", "train 22"]
    for step in summary.generic.steps:
        spent = step.breakdown
        assert step.duration_ps == 100 * US
        assert [
            time / US
            for time in (
                *(spent.host_ops_ps, spent.input_ps, spent.compile_ps, spent.host_compute_ps),
                *(spent.kernel_launch_ps, spent.device_compute_ps, spent.all_other_ps),
            )
        ] == [25, 15, 15, 35, 0, 0, 10]


def test_the_ends_of_more_than_five_steps_are_left_out() -> None:
    generic = present(summary_of(cpu_profile(8, [("work", 0, 50)])).generic)
    assert ([step.name for step in generic.steps], generic.dropped) == ([f"train {n}" for n in range(21, 27)], 2)


def test_a_step_without_anything_but_its_annotation_is_one() -> None:
    generic = present(summary_of(cpu_profile(2, [])).generic)
    assert [(step.duration_ps, step.breakdown.all_other_ps) for step in generic.steps] == [(100 * US, 100 * US)] * 2


def test_a_dry_run_says_what_it_did() -> None:
    summary = summary_of(cpu_profile(3, [("load", 0, 40)], [("dot.1", 40, 90), ("add.2", 50, 60)]))
    page = overview([summary])
    assert (page.environment.device_type, page.environment.device_core_count) == ("CPU", 0)
    time = page.performance.step_time
    assert time is not None and (time.median_ps, time.count, time.source) == (100 * US, 3, "steps")
    assert "the steps are the host's own" in time.note
    assert [op.name for op in page.top_ops] == ["dot.1", "add.2"]
    assert page.performance.device_idle_percent is None
    assert "ran on the host's CPU" in page.unknown["performance.device_idle_percent"]
    assert any("the ops are those that XLA ran on the CPU of host0" in words for words in page.warnings)
    ops = ops_page([summary])
    assert (ops.runs_on, ops.core_count, ops.device_type) == ("host thread", 1, "CPU")
    assert dict(zip(ops.table.name, ops.table.self_ps.tolist(), strict=True)) == {"dot.1": 120 * US, "add.2": 30 * US}
    assert ops.unknown["ops[].gflops_per_second"] == "events of the host's CPU have no FLOPs or bytes"
    framework = framework_ops_page(ops, [summary.host_ops])
    assert framework.name == ("dot.1", "add.2") and np.isnan(framework.rates.flops_per_second).all()


def test_a_host_that_neither_steps_nor_runs_ops_says_why() -> None:
    host = PlaneBuilder.alone("/host:CPU")
    host.event(host.line("python"), host.event_id("Client::Compile"), 0, 5 * US)
    summary = summary_of(host.space)
    assert summary.generic is None and summary.thread_count == 0
    page = overview([summary])
    assert page.environment.device_type is None and page.performance.step_time is None


def test_annotations_without_ops_are_steps_of_a_host_whose_device_was_not_traced() -> None:
    page = overview([summary_of(cpu_profile(2, [("load", 0, 40)]))])
    assert page.environment.device_type is None and page.unknown["environment.device_type"]
    assert page.performance.step_time is not None and page.top_ops == ()
    assert any(words.startswith("no device plane on host0") for words in page.warnings)
    assert [finding.title for finding in page.findings] == ["Only the host was traced: no device plane"]


TRACED = (
    ("$train.py:9 step", 0, 100),
    ("$pipeline.py:30 load", 0, 40),
    ("$time sleep", 5, 38),
    ("PjitFunction(step)", 40, 60),
    ("backend_compile", 42, 55),
    ("$train.py:20 log", 80, 95),
    ("$json.py:4 dumps", 82, 94),
)


def test_the_account_says_whose_time_it_is_and_in_which_function() -> None:
    account = present(present(summary_of(cpu_profile(3, TRACED, [("dot.1", 58, 75)])).generic).account)
    mean = account.owner_ps.mean(axis=0) / US
    shares = {owner: mean[owner_index(owner)] for owner in OWNERS if mean[owner_index(owner)]}
    assert shares == {"input": 40, "compile": 13, "dispatch": 5, "uncounted": 17, "host": 25}
    assert (account.owner_ps.sum(axis=1) == account.step_ps).all() and not account.untraced_ps.any()
    named = {(each.owner, each.name): (each.time_ps / 3 / US, each.inside) for each in account.functions}
    assert named["input", "load (pipeline.py:30)"] == (40, "time sleep")
    assert named["host", "log (train.py:20)"] == (15, "json.py:4 dumps")
    assert named["compile", "step (train.py:9)"][0] == 13 and account.compiled == ("step",)


def test_what_is_not_traced_is_no_input_and_no_host() -> None:
    page = overview([summary_of(cpu_profile(3, [("PjitFunction(step)", 70, 72)], [("dot.1", 72, 90)]))])
    verdict = present(page.account).verdict
    assert verdict.kind == "untraced" and "not traced" in verdict.statement
    assert page.bottleneck.classification == "unknown" and page.bottleneck.input_percent is None
    assert [finding.kind for finding in page.findings] == ["idle"]


def test_a_starved_step_is_the_loaders() -> None:
    inside = [("$train.py:9 step", 0, 100), ("$pipeline.py:30 load", 0, 85), ("PjitFunction(step)", 85, 87)]
    page = overview([summary_of(cpu_profile(3, inside, [("dot.1", 87, 98)]))])
    first = page.findings[0]
    assert (first.kind, first.place.tab) == ("input", "input") and "load (pipeline.py:30)" in first.title
    assert present(page.account).verdict.kind == "input-bound" and page.bottleneck.classification == "host"


def test_time_between_the_ops_of_one_run_is_the_programs() -> None:
    inside, ops = [("$train.py:9 step", 0, 100)], [("dot.1", 10, 40), ("add.2", 60, 90)]
    assert mean_of("between_ops", summary_of(cpu_profile(3, inside, ops))) == 0  # nobody says that these are one run
    summary = summary_of(cpu_profile(3, inside, ops, has_runs=True))
    assert mean_of("between_ops", summary) == 20 and mean_of("uncounted", summary) == 60
    assert mean_of("host", summary) == 20


def mean_of(owner: Owner, summary: HostSummary) -> float:
    """Time of an owner in the mean step, in microseconds."""
    account = present(present(summary.generic).account)
    return float(account.owner_ps.mean(axis=0)[owner_index(owner)]) / US
