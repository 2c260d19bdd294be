"""A host without a device: steps by its annotations, and what they were made of, as XProf 2.24.2 has them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import PlaneBuilder, StatInput, present, summary_of
from tests.support.gpus import POOL, US, cpu_profile, hlo_plane
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.findings.generic.on_cpu import LEAST
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.pages.shared.groups import groups_of
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


def test_a_host_that_neither_steps_nor_runs_ops_says_why() -> None:
    host = PlaneBuilder.alone("/host:CPU")
    host.event(host.line("python"), host.event_id("Client::Compile"), 0, 5 * US)
    summary = summary_of(host.space)
    assert summary.generic is None and summary.thread_count == 0
    page = overview([summary])
    assert page.environment.device_type is None and page.performance.step_time is None


@pytest.mark.parametrize("count", [1, 2, 5, 6, 8, 11])
def test_the_ends_of_more_than_five_steps_are_left_out_and_counted(count: int) -> None:
    generic = present(summary_of(cpu_profile(count, [("work", 0, 50)])).generic)
    names, dropped = [step.name for step in generic.steps], 2 if count > 5 else 0
    assert generic.dropped == dropped and len(names) == count - dropped
    assert names == [f"train {20 + dropped // 2 + n}" for n in range(len(names))]


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


def test_time_between_the_ops_of_one_run_is_the_programs() -> None:
    inside, ops = [("$train.py:9 step", 0, 100)], [("dot.1", 10, 40), ("add.2", 60, 90)]
    assert mean_of("between_ops", summary_of(cpu_profile(3, inside, ops))) == 0  # nobody says that these are one run
    summary = summary_of(cpu_profile(3, inside, ops, has_runs=True))
    assert mean_of("between_ops", summary) == 20 and mean_of("uncounted", summary) == 60
    assert mean_of("host", summary) == 20
    unknown = summary_of(cpu_profile(3, inside, ops, has_runs=True, numbers_runs=False))
    assert mean_of("between_ops", unknown) == 0 and mean_of("host", unknown) == 40


OF_TENSORFLOW = (
    ("EagerKernelExecute", 0, 80),
    ("IteratorGetNextOp::DoCompute", 5, 75),
    ("Iterator::Root::Prefetch", 6, 74),
)


def test_a_step_of_tensorflow_waits_for_input_on_its_own_thread() -> None:
    page = overview([summary_of(cpu_profile(3, OF_TENSORFLOW, [("dot.1", 80, 98)], has_runs=True, numbers_runs=False))])
    verdict = present(page.account).verdict
    assert verdict.kind == "input-bound" and verdict.fraction == pytest.approx(70 / 150)
    assert "in IteratorGetNextOp::DoCompute" in page.findings[0].title
    assert any("most of it in Iterator::Root::Prefetch" in words for words in page.findings[0].evidence)


NAMES = {
    "$train.py:9 step": "step (train.py:9)",
    "$train.py:20 log": "log (train.py:20)",
    "$json.py:4 dumps": "dumps (json.py:4)",
    "$time sleep": "time.sleep",
    "PjitFunction(step)": "",
}
"""What events are called in a sentence where they count as functions."""


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 40), st.sampled_from(tuple(NAMES))), max_size=12))
@settings(max_examples=EXAMPLES)
def test_what_most_of_a_function_is_in_lies_inside_of_it(spans: list[tuple[int, int, str]]) -> None:
    nested: list[tuple[str, int, int]] = []
    for start, length, name in spans:
        end = min(start + length, 95)
        if all(end <= a or b <= start or (a <= start and end <= b) for _, a, b in nested):
            nested.append((name, start, end))
    account = present(present(summary_of(cpu_profile(3, nested, [("dot.1", 95, 100)])).generic).account)
    for each in account.functions:
        if each.inside:
            functions = [span for span in nested if NAMES[span[0]] == each.name]
            inner = [span for span in nested if span[0].removeprefix("$") == each.inside]
            assert any(a <= c and d <= b for _, a, b in functions for _, c, d in inner)


def test_the_numbered_steps_of_keras_count_before_the_groups_of_tensorflow() -> None:
    host = PlaneBuilder.alone("/host:CPU")
    python, data, made = host.line("python"), host.line("tf_data_iterator_get_next"), host.line("tf_data_iterator")
    pool = host.line("tf_Compute")
    for step in range(4):
        begin = 112 * step
        host.event(python, host.event_id("Profiled batch"), begin * US, 100 * US, step_num=step + 8)
        host.event(python, host.event_id("FunctionRun"), (begin + 2) * US, US, _r=1, id=step)
        host.event(data, host.event_id("IteratorGetNextOp::DoCompute"), (begin + 5) * US, 70 * US, id=step, iter_num=0)
        host.event(pool, host.event_id("dense/MatMul:MatMul"), (begin + 80) * US, 15 * US)
        host.event(made, host.event_id("InstantiatedCapturedFunction::Run"), begin * US, 110 * US, id=50 + step)
        host.event(made, host.event_id("FunctionRun"), (begin + 1) * US, 100 * US, _r=1, id=50 + step)
        host.event(made, host.event_id("Iterator::Root::ParallelMapV2::Map"), begin * US, 112 * US, id=1)
    page = overview([summary_of(host.space)])
    assert [step.name for step in page.steps] == [f"Profiled batch {step}" for step in range(8, 12)]
    assert present(page.performance.step_time).median_ps == 100 * US
    assert page.bottleneck.input_percent == pytest.approx(100 * 70 / 112)
    assert [of.title for of in page.findings] == ["Steps wait for input in IteratorGetNextOp::DoCompute"]
    assert any(words.startswith("Thread tf_data_iterator_get_next is in") for words in page.findings[0].evidence)


@given(st.lists(st.integers(40, 400), min_size=4, max_size=12), st.booleans())
@settings(max_examples=EXAMPLES)
def test_without_annotations_a_step_is_the_period_of_the_busiest_program(gaps: list[int], has_ids: bool) -> None:
    host = PlaneBuilder.alone("/host:CPU")
    python, pool = host.line("python"), host.line("tf_XLAEigen/1")
    begin, ends = 0, []
    for run, gap in enumerate(gaps):
        host.event(python, host.event_id("PjitFunction(step)"), begin * US, 2 * US)
        for name, at, program in (
            ("dot.1", 4, 7),
            ("add.2", 12, 7),
            ("add.2", 20, 7),
            ("tanh.3", 30, 7),
            ("dot.1", 33, 8),
        ):
            stats: dict[str, StatInput] = {"hlo_op": name, "program_id": program, "hlo_module": f"jit_{program}"}
            stats |= {"run_id": 2 * run + program - 7 if has_ids else -1, "device_ordinal": 0}
            host.event(pool, host.event_id(name), (begin + at) * US, (5 if program == 7 else 1) * US, **stats)
        ends.append(begin + 35)
        begin += gap
    page = overview([summary_of(host.space)])
    time = present(page.performance.step_time)
    assert time.source in ("modules", "cycle")  # the same programs in turn are a cycle, which ends with the busiest
    assert [step.duration_ps for step in page.steps] == [(b - a) * US for a, b in pairwise(ends)]
    assert present(page.account).period_ps == pytest.approx((ends[-1] - ends[0]) * US / (len(gaps) - 1))


@given(st.lists(st.booleans(), min_size=2, max_size=5), st.integers(1, 9), st.booleans())
@settings(max_examples=EXAMPLES)
def test_devices_are_groups_unless_they_share_runs_or_the_thread_that_launches(
    train: list[bool], length: int, is_one_thread: bool
) -> None:
    host = PlaneBuilder.alone("/host:CPU")
    python, pools = host.line("python"), [host.line(f"tf_XLAEigen/{device}") for device in range(len(train))]
    rollout = python if is_one_thread else host.line("rollout")
    for step in range(4):
        begin = 100 * step
        host.event(python, host.event_id("train"), begin * US, 99 * US, _r=1, step_num=step)
        host.event(rollout, host.event_id("PjitFunction(act)"), begin * US, US)
        host.event(python, host.event_id("PjitFunction(update)"), (begin + 50) * US, US)
        for device, (pool, trains) in enumerate(zip(pools, train, strict=True)):
            stats: dict[str, StatInput] = {"hlo_op": "dot.1", "hlo_module": "jit_update" if trains else "jit_act"}
            stats |= {"program_id": 7 + trains, "run_id": 2 * step + trains, "device_ordinal": device}
            at, took = (begin + 60, length) if trains else (begin + 2, 95)
            host.event(pool, host.event_id("dot.1"), at * US, took * US, **stats)
    summary = summary_of(host.space)
    cores = [set(group.core_names) for group in groups_of([summary])]
    parts = [{f"host0:{device}" for device, of in enumerate(train) if of == trains} for trains in (True, False)]
    are_apart = all(parts) and not is_one_thread
    assert sorted(map(sorted, cores)) == (sorted(map(sorted, parts)) if are_apart else [])
    if are_apart:
        assert mean_of("uncounted", summary) == length


@pytest.mark.parametrize("period", [7, 11, 17])
def test_annotations_mark_the_steps_of_devices_that_keep_step_with_them(period: int) -> None:
    """No event says who launches the programs of the two devices."""
    host = PlaneBuilder.alone("/host:CPU")
    host.threads([[("train", 25 * step, 25 * step + 24, {"_r": 1, "step_num": step}) for step in range(20)]], US)
    for device, every, took in ((0, 25, 20), (1, period, 5)):
        stats: dict[str, StatInput] = {"hlo_op": "dot.1", "hlo_module": f"jit_{device}", "program_id": device}
        stats |= {"device_ordinal": device}
        runs = [("dot.1", at, at + took, {**stats, "run_id": 999 * device + at}) for at in range(1, 490, every)]
        host.spans(f"tf_XLAEigen/{device}", runs, US)
    summary = summary_of(host.space)
    assert [group.core_names for group in groups_of([summary])] == [("host0:0",), ("host0:1",)]
    for of, length in ((summary.generic, 24), (summary.groups[1].generic, period)):
        assert {step.duration_ps // US for step in present(of).steps} == {length}


def test_a_callback_is_the_hosts_time_with_the_users_function() -> None:
    called = [("$callback.py:69 __call__", 11, 89), ("$data.py:7 lookup", 12, 88), ("$time sleep", 13, 87)]
    ops = [("dot.1", 2, 10), ("pure_callback.1", 10, 90)]
    space = cpu_profile(3, [("$train.py:9 step", 0, 98)], ops, beside={POOL: called})
    summary = summary_of(space)
    assert (mean_of("uncounted", summary), mean_of("host", summary)) == (8, 92)
    page = overview([summary])
    verdict = present(page.account).verdict
    assert verdict.kind == "host-bound" and verdict.fraction == pytest.approx(80 / 150)
    assert page.findings[0].title == "The program calls back to the host's Python: lookup (data.py:7)"
    assert "pure_callback.1 calls Python for 80.0 us a step (53.3%)." in page.findings[0].evidence[0].replace("µ", "u")
    assert "most of it in time sleep" in page.findings[0].evidence[1]
    assert present(page.account).ops["host"].largest[0].name == "pure_callback.1"


@pytest.mark.parametrize(
    ("inside", "title"),
    [
        ([("$time sleep", 5, 75)], "waits in time.sleep"),
        ([("$socket.py:292 accept", 5, 75), ("$socket accept", 6, 74)], "waits in accept (socket.py:292)"),
        ([("$serve.py:9 next_request", 5, 75), ("$time sleep", 6, 74)], "waits in next_request (serve.py:9)"),
        ([("$serve.py:9 tokenize", 5, 75)], "is in tokenize (serve.py:9)"),
        ([("$json.py:4 dumps", 5, 75)], "is in dumps (json.py:4)"),
    ],
)
def test_a_host_that_waits_is_told_from_one_that_works(inside: list[tuple[str, int, int]], title: str) -> None:
    finding = overview([summary_of(cpu_profile(3, inside, [("dot.1", 80, 95)]))]).findings[0]
    assert finding.title == f"No op runs: the host {title}"
    assert finding.is_estimate == title.startswith("waits") == finding.advice.startswith("Find what it waits for")


@pytest.mark.parametrize("inner", ["", "$time sleep", "$threading.py:323 wait", "$numpy dot"])
def test_another_thread_holds_the_interpreter_unless_it_waits_or_runs_compiled_code(inner: str) -> None:
    events = [("$text.py:3 tokenize", 0, 150), *[(inner, 0, 150)] * bool(inner)]
    inside = [("$train.py:9 step", 0, 100)]
    page = overview([summary_of(cpu_profile(3, inside, [("dot.1", 80, 95)], beside={"worker": events}))])
    held = [of for of in page.findings if "holds the interpreter, in tokenize (text.py:3)" in of.title]
    assert len(held) == (not inner)
    if held:
        assert held[0].is_estimate and held[0].worth_fraction == pytest.approx(135 / 150)
        assert any(words.startswith("Thread worker is in tokenize") for words in held[0].evidence)


@given(st.lists(st.integers(5, 300), min_size=2, max_size=6), st.booleans())
@settings(max_examples=EXAMPLES)
def test_a_device_that_all_others_wait_for_is_named(computes: list[int], has_hlo: bool) -> None:
    host, step_us, last = PlaneBuilder.alone("/host:CPU"), 400, max(computes)
    if has_hlo:
        hlo_plane(host.space)
    python, pools = host.line("python"), [host.line(f"tf_XLAEigen/{device}") for device in range(len(computes))]
    for step in range(3):
        host.event(python, host.event_id("train"), step * step_us * US, step_us * US, _r=1, step_num=step)
        for device, (pool, length) in enumerate(zip(pools, computes, strict=True)):
            for name, start, end in (("dot.1", 1, 1 + length), ("all-reduce.3", 1 + length, 6 + last)):
                stats: dict[str, StatInput] = {
                    "hlo_op": name,
                    "program_id": 7,
                    "run_id": step,
                    "device_ordinal": device,
                }
                at = step * step_us + start
                host.event(pool, host.event_id(name), at * US, (end - start) * US, **stats)
    late = computes.index(last)
    others = [length for device, length in enumerate(computes) if device != late]
    worth = min(last - sum(others) / len(others), last - float(np.median(others)))
    page = overview([summary_of(host.space)])
    found = [of for of in page.findings if of.title.endswith(f"wait{'s' * (len(others) == 1)} for device {late}")]
    assert len(found) == (worth > LEAST * step_us + 1) or abs(worth - LEAST * step_us) <= 1
    if found:
        assert present(found[0].worth_ps) == pytest.approx(worth * US)


def mean_of(owner: Owner, summary: HostSummary) -> float:
    """Time of an owner in the mean step, in microseconds."""
    account = present(present(summary.generic).account)
    return float(account.owner_ps.mean(axis=0)[owner_index(owner)]) / US
