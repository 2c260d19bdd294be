"""Programs apart, and what profiles record of versions and flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parsers.session.diff.build import MS, op
from tests.parsers.session.diff.phased import ENVIRONMENT, Environment, decode, mixed, pair, prefill, serving
from tests.support.build import session_at
from tpuprof.parsers.session.diff.compare import compare
from tpuprof.parsers.session.diff.model import Diff, Phase


def phase(diff: Diff, name: str) -> Phase:
    (found,) = (one for one in diff.phases if one.name == name)
    return found


def test_more_prefills_are_no_slower_decode(tmp_path: Path) -> None:
    diff = pair(tmp_path, mixed(40, 4), mixed(40, 2))
    assert diff.steps is not None and diff.steps.mean.mark == "more"  # the mixture got slower
    decoding, filling = phase(diff, "jit_decode"), phase(diff, "jit_prefill")
    assert decoding.time.mark == filling.time.mark == "same"
    assert filling.time.after == 22 * MS and filling.in_steps
    assert (filling.runs.before, filling.runs.after) == (10, 20)
    assert {one.time.mark for one in (*decoding.ops.ops, *filling.ops.ops)} == {"same"}
    assert op(diff, "convolution.5").time.mark == "more"  # a step has more of it, a run has not


def test_periods_of_two_programs_are_no_step_that_can_be_compared(tmp_path: Path) -> None:
    slow, fast = ([[prefill(), *[decode(by)] * 8] for _ in range(6)] for by in (1000, -1000))
    paths = [serving(tmp_path, name, of, is_marked=False) for name, of in (("slow", slow), ("fast", fast))]
    diff = compare(session_at(paths[0]), session_at(paths[1]))
    assert diff.steps is None and diff.basis == "module run" and diff.different == ""
    assert {side.unit_name for side in (diff.before, diff.after)} == {"run of jit_decode"}
    assert diff.total.delta == pytest.approx(-2 * MS, rel=0.05)
    assert diff.unknown["steps"] == "A: a step is a period of jit_decode; B: a step is a period of jit_prefill"


def test_a_slower_prefill_shows_in_its_own_ops(tmp_path: Path) -> None:
    diff = pair(tmp_path, mixed(40, 2), mixed(40, 2, longer=2 * MS))
    filling = phase(diff, "jit_prefill")
    assert filling.time.mark == "more" and filling.time.delta == 2 * MS
    assert phase(diff, "jit_decode").time.mark == "same"
    change = op(filling.ops, "convolution.5").time
    assert change.delta == pytest.approx(2 * MS, rel=1e-6) and change.mark == "more"
    assert sum(one.time.after or 0 for one in filling.ops.classes) == pytest.approx(24 * MS, rel=1e-6)


def test_a_renamed_program_finds_its_counterpart(tmp_path: Path) -> None:
    diff = pair(tmp_path, mixed(20, 2), mixed(20, 2, name="jit_prompt"))
    renamed = phase(diff, "jit_prompt")
    assert renamed.old_name == "jit_prefill" and renamed.time.mark == "same"
    assert {one.name for one in diff.phases} == {"jit_prompt", "jit_decode"}


def test_a_program_of_one_run_alone(tmp_path: Path) -> None:
    diff = pair(tmp_path, mixed(20, 100), mixed(20, 2))
    assert phase(diff, "jit_prefill").runs.before == 1
    diff = pair(tmp_path / "other", [[decode()] for _ in range(20)], mixed(20, 2))
    alone = phase(diff, "jit_prefill")
    assert (alone.time.mark, alone.runs.mark, alone.time.before) == ("new", "new", None)
    assert {one.time.mark for one in alone.ops.ops} == {"new"}


def test_versions_and_flags(tmp_path: Path) -> None:
    later = {
        **ENVIRONMENT,
        "libtpu_version": "0.0.25",
        "command_line_args": "python train.py --xla_new=1 --hf_token=hf_xyz",
    }
    diff = pair(tmp_path, mixed(4, 2), mixed(4, 2), (ENVIRONMENT, later))
    found = {(one.kind, one.name): (one.before, one.after, one.mark) for one in diff.settings}
    assert found["version", "libtpu_version"] == ("0.0.24", "0.0.25", "other")
    assert found["version", "build_time"][0] == "2025-10-09 08:53:20 UTC"
    assert found["flag", "xla_tpu_scoped_vmem_limit_kib"] == ("65536", None, "gone")
    assert found["flag", "xla_tpu_memory_space_assignment"][0] == "fast"  # sounds like a signature, is none
    assert found["flag", "verbose"][0] == "true" and found["flag", "xla_new"] == (None, "1", "new")
    assert found["flag", "hf_token"] == ("…", "…", "same") and found["flag", "api_key"][0] == "…"
    assert found["other", "command_line_args"] == ("python train.py", "python train.py", "same")
    assert found["profiler", "host_tracer_level"] == ("2", "2", "same")
    assert not any("profile_start" in name for _, name in found)
    assert "hf_abc" not in repr(diff.settings) and "s3cret" not in repr(diff.settings)
    assert "settings" not in diff.unknown
    assert any(sentence.startswith("the software differs: 1 setting") for sentence in diff.warnings)


def test_what_nobody_tells_has_a_reason(tmp_path: Path) -> None:
    diff = pair(tmp_path, mixed(4, 2), mixed(4, 2), (ENVIRONMENT, None))
    assert diff.unknown["settings"].startswith("B: the profile names no version of JAX")
    assert {one.mark for one in diff.settings} == {"gone"}
    assert not any("software" in sentence for sentence in diff.warnings)


@pytest.mark.parametrize(
    "value", ["--a 'b", "\0--x=1\0", "=", "--", "-", "--=", b"\xff", -(2**63), "A_FLAGS=A_FLAGS=--x=1"]
)
def test_settings_of_any_bytes(tmp_path: Path, value: str | int | bytes) -> None:
    told: Environment = {"command_line_args": value, "profile_options": value, "build_time": value}
    diff = pair(tmp_path, mixed(4, 2), mixed(4, 2), (told, told))
    assert {one.mark for one in diff.settings} <= {"same"}
