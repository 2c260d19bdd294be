"""Comparisons of small runs whose every time is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.demo.make_profile import write_profile
from tests.demo.profile.hlo_module import Module
from tests.demo.profile.timeline import DemoSpec
from tests.parsers.session.diff.build import MS, US, Program, check_identity, diff_of, op, written
from tests.support.build import session_at
from tests.support.files.reading import later, own_cache, reads
from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.hosts import reader as reader_module
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.hosts.plan import WORKERS_VARIABLE
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.memory.model import HBM
from tpuprof.parsers.pages.memory.key import MEMORY
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.overview.model_use.page import MODEL
from tpuprof.parsers.session.diff.compare import compare
from tpuprof.parsers.session.diff.model import Diff

JITTER = (0, 3, -2, 1, -1, 2, -3, 0, 1, -1)
"""Microseconds around a step's time."""


def steady(*ops: tuple[str, int], jitter: Sequence[int] = JITTER) -> list[list[tuple[str, int]]]:
    """Steps of the same ops; the first one's time varies a little."""
    (first, time), *rest = ops
    return [[(first, time + by * US), *rest] for by in jitter]


BASE = Program(
    steps=steady(("fusion.1", 60 * MS), ("copy.2", 10 * MS), ("all-reduce.3", 20 * MS)),
    idle_ps=10 * MS,
    categories={"fusion.1": "convolution fusion", "copy.2": "copy", "all-reduce.3": "all-reduce"},
)


def test_lengths_and_cores_do_not_matter(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, BASE, replace(BASE, steps=[*BASE.steps, *BASE.steps, *BASE.steps], cores=3))
    assert diff.steps is not None and diff.steps.typical.delta == 0
    assert all(item.time.mark == "same" and item.time.delta == 0 for item in diff.ops)
    assert [item.count.after for item in diff.ops] == [1.0] * 3
    assert any("A has 1 core, B has 3 cores" in sentence for sentence in diff.warnings)
    check_identity(diff)


@pytest.mark.parametrize("late_ps", [0, 30 * MS])
def test_names_of_steps_that_repeat(tmp_path: Path, late_ps: int) -> None:
    """Steps are then placed by time on each core."""
    slower = replace(BASE, steps=steady(("fusion.1", 60 * MS), ("copy.2", 17 * MS), ("all-reduce.3", 20 * MS)))
    pair = [replace(part, names=["train"] * len(JITTER), cores=2, late_ps=late_ps) for part in (BASE, slower)]
    diff = diff_of(tmp_path, *pair)
    assert op(diff, "copy.2").time.delta == 7 * MS and op(diff, "fusion.1").time.delta == 0
    assert [item.count.after for item in diff.ops] == [1.0] * 3
    check_identity(diff)


def test_steps_by_periods_of_a_module(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, replace(BASE, marked=False), BASE)
    assert diff.steps is not None and diff.before.unit_name == "period of jit_step" and diff.after.unit_name == "step"
    assert any("a step is not the same thing in both" in sentence for sentence in diff.warnings)
    check_identity(diff)


def test_module_runs_where_steps_are_unknown(tmp_path: Path) -> None:
    twice = replace(BASE, marked=False, steps=BASE.steps[:2])
    diff = diff_of(tmp_path, twice, replace(BASE, steps=BASE.steps[:4]))
    assert diff.basis == "module run" and diff.steps is None
    assert diff.before.units == 2 and diff.after.units == 4 and diff.after.unit_name == "run of jit_step"
    copy = op(diff, "copy.2").time
    assert copy.before == copy.after == 10 * MS and copy.noise is None and copy.mark == "same"
    assert "steps" in diff.unknown and any("the steps of A are unknown" in sentence for sentence in diff.warnings)


def test_whole_captures_where_nothing_repeats(tmp_path: Path) -> None:
    bare = replace(BASE, marked=False, runs=False)
    diff = diff_of(tmp_path, bare, replace(bare, steps=BASE.steps[:5]))
    assert diff.basis == "capture" and op(diff, "copy.2").time.delta == -50 * MS
    assert op(diff, "copy.2").time.mark == "unknown" and diff.total.mark == "unknown"


def test_one_step_tells_nothing_of_noise(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, replace(BASE, steps=BASE.steps[:1]), replace(BASE, steps=BASE.steps[1:2]))
    assert diff.steps is not None and diff.steps.typical.noise is None and diff.steps.typical.mark == "unknown"
    assert any("A has 1 step and B has 1 step" in sentence for sentence in diff.warnings)
    few = diff_of(tmp_path / "few", replace(BASE, steps=BASE.steps[:3]), BASE)
    assert few.warnings == ("A has 3 steps: how much of a change is noise is a rough guess",)


def test_other_programs_and_devices_are_told(tmp_path: Path) -> None:
    other = Program(steps=steady(("dot.9", 5 * MS)), program="jit_other", texts={"dot.9": "f32[2] dot()"})
    diff = diff_of(tmp_path, BASE, replace(other, device="TPU other"))
    assert "no op of A was found in B: these are different programs" in diff.warnings
    assert "the devices differ: A ran on TPU test, B on TPU other" in diff.warnings
    assert {item.time.mark for item in diff.ops} == {"new", "gone"}
    check_identity(diff)


def test_nothing_to_compare(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, replace(BASE, steps=[], marked=False, runs=False), BASE)
    assert diff.steps is None and diff.basis == "capture"
    assert [item.time.mark for item in diff.ops] == ["new"] * 3 and "ops" in diff.unknown


def test_the_demo_against_itself_in_other_lengths(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.xplane.pb" for name in "ab"]
    write_profile(paths[0], DemoSpec(steps=6, cores=2, seed=1, slow_step=None))
    write_profile(paths[1], DemoSpec(steps=8, cores=1, seed=2, slow_step=None))
    before, after = (session_at(str(path)) for path in paths)
    diff = compare(before, after)
    check_identity(diff)
    assert diff.steps is not None and abs(diff.steps.typical.relative or 1.0) < 0.01
    assert {item.matched_by for item in diff.ops} == {"name"}
    (module,) = diff.modules
    assert module.name == "jit_train_step" and module.peak.mark == "same" and module.problem == ""
    assert module.peak.before == before.page(MEMORY).peaks(before.page(MEMORY).find("jit_train_step")).peaks[0]
    # the owners are those of the account that the overview shows
    account = before.page(OVERVIEW).account
    assert account is not None and diff.steps.mean.before == pytest.approx(account.step_ps)
    of_account = {each.owner: each.time_ps for each in account.owners if each.time_ps}
    assert {item.owner: item.mean.before for item in diff.owners if item.mean.before} == pytest.approx(of_account)
    blocks = before.page(MODEL).blocks
    assert diff.traffic.before == pytest.approx(sum(block.hbm_bytes or 0 for block in blocks) / 2)
    figures = {figure.key: figure.change.before for figure in diff.figures}
    assert figures["flops_utilization_percent"] == before.page(OVERVIEW).performance.flops_utilization_percent


def test_memory_of_the_main_programs(tmp_path: Path) -> None:
    """The compiled program has changed; HBM figures are those of the memory page."""
    protos = [Module(name).proto_bytes for name in ("jit_train_step", "jit_eval_step")]
    pair = [replace(BASE, hlo=proto) for proto in protos]
    (module,) = diff_of(tmp_path, *pair).modules
    pages = [session_at(str(tmp_path / name)).page(MEMORY) for name in ("run_a", "run_b")]
    spaces = [page.space(page.find("jit_step"), HBM) for page in pages]
    for change, attribute in (
        (module.peak, "peak_bytes"),
        (module.arguments, "arguments_bytes"),
        (module.temporaries, "temporaries_bytes"),
    ):
        assert [change.before, change.after] == [getattr(space, attribute) for space in spaces]
    assert module.peak.mark == "less" and module.problem == ""
    (missing,) = diff_of(tmp_path / "half", pair[0], BASE).modules
    assert missing.peak.before and missing.peak.after is None and missing.peak.mark == "unknown"
    assert missing.problem == "The compiled HLO of jit_step(7) is not in its profile."


def test_sessions_progress_and_cancelling(tmp_path: Path) -> None:
    paths = written(tmp_path, "a", BASE, BASE), written(tmp_path, "b", BASE)
    seen: list[Progress] = []
    one, other = (session_at(path, on_progress=seen.append) for path in paths)
    compare(one, other)
    assert {item.host for item in seen} == {"host0", "host1"}
    assert all(0 <= item.bytes_done <= item.bytes_total for item in seen)
    with pytest.raises(Cancelled):
        compare(session_at(paths[0], is_cancelled=lambda: True), other)
    with pytest.raises(ProfileError, match="no host nowhere"):
        compare(one, other, "nowhere")
    assert compare(one, other, "host0").warnings == ()


def test_each_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = reads(monkeypatch, lambda reduction, file: f"{reduction.name} {file.host}")
    assert diff_of(tmp_path, BASE, BASE).basis == "step"
    assert done == ["steps host0"] * 2


def test_the_same_in_processes_and_out_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_cache(monkeypatch, tmp_path)
    monkeypatch.setenv(WORKERS_VARIABLE, "1")
    paths = [written(tmp_path, name, BASE, BASE) for name in "ab"]

    def compared(**options: Any) -> Diff:
        return compare(session_at(paths[0], **options), session_at(paths[1], **options))

    alone = compared()
    monkeypatch.setenv(WORKERS_VARIABLE, "2")
    pooled = compared(cache=HostCache(later))
    monkeypatch.setattr(reader_module, "reduce_host", None)
    recalled = compared(cache=HostCache(later))
    assert repr(alone) == repr(pooled) == repr(recalled)
