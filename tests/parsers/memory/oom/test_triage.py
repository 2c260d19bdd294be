"""What a front end gets of an error and of a module that is nearly full."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.parsers.memory.modules.build import training_space
from tests.parsers.memory.oom.read.texts import ALL
from tests.support.made.oom import REPORT
from tpuprof.parsers.memory.oom.triage import space_words, triage_of_memory, triage_of_report, trial


def test_an_error_has_its_place_its_advice_and_what_can_be_tried() -> None:
    triage = triage_of_report(REPORT, "train.log")
    assert (triage.where, triage.space, triage.count) == ("train.log:41822", "HBM", 3)
    assert triage.over_bytes == REPORT.exceeded_bytes and triage.limit_bytes == REPORT.capacity_bytes
    assert triage.advice and triage.toggles
    everything = range(len(triage.need.buffers))
    assert all(at in everything for advice in triage.advice for at in advice.buffers)
    assert all(at in everything for toggle in triage.toggles for at in toggle.buffers)


def test_toggles_stand_in_the_order_of_their_numbers() -> None:
    triage = triage_of_report(REPORT, "train.log")
    numbers = triage.toggle_numbers
    assert numbers == tuple(sorted(numbers)) and len(set(numbers)) == len(numbers)
    for number, toggle in zip(numbers, triage.toggles, strict=True):
        if number <= len(triage.advice):
            assert set(triage.advice[number - 1].buffers) & set(toggle.buffers)


def test_names_of_memories_are_those_of_the_memory_page() -> None:
    names = ("hbm", "VMEM", "sflag", "Host", "sparsecore", "odd", "something")
    assert [space_words(name) for name in names] == ["HBM", "VMEM", "SFlag", "host", "SparseCore", "ODD", "something"]


def test_trying_nothing_saves_nothing_and_more_saves_no_less() -> None:
    triage = triage_of_report(REPORT, "train.log")
    nothing = trial(triage, ())
    assert nothing.estimate.used_bytes == triage.need.used_bytes and nothing.estimate.saved_bytes == 0
    assert set(nothing.alone) == {toggle.key for toggle in triage.toggles}
    for key, saved in nothing.alone.items():
        assert trial(triage, {key}).estimate.saved_bytes == saved > 0
    assert trial(triage, nothing.alone).estimate.saved_bytes >= max(nothing.alone.values())


def test_the_parts_of_a_module_add_up_to_its_peak() -> None:
    page = training_space()
    triage = triage_of_memory(page)
    assert (triage.kind, triage.wanted_bytes) == ("module", page.peak_bytes)
    assert sum(part.size_bytes for part in triage.parts) == pytest.approx(page.peak_bytes, rel=0.01)
    assert triage.over_bytes == -(page.headroom_bytes or 0)
    assert triage.title == str(page.module)


def test_an_error_inside_a_kernel_leads_to_the_page_that_shows_its_blocks() -> None:
    _, report = ALL["stack"]
    (note,) = triage_of_report(report, "train.log").notes
    assert note.startswith("tpuprof-tui report kernels LOGDIR --op body.2 ")
    assert triage_of_report(replace(report, memory_space="hbm"), "train.log").notes == ()
    assert triage_of_report(replace(report, buffers=()), "train.log").notes == ()
