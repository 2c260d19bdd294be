"""Which runs are of different programs, and which are not for all that has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.parsers.session.diff.build import MS, Program, diff_of
from tests.parsers.session.diff.test_compare import JITTER, steady
from tests.support.build import session_at
from tpuprof.parsers.session.diff.cautions import LEAST_AKIN
from tpuprof.parsers.session.diff.compare import compare
from tpuprof.parsers.session.diff.regression import regression
from tpuprof.tui.pages.commands.diff.verdict import headline_mark, verdict

TRAINING = Program(
    steps=steady(("fusion.1", 60 * MS), ("fusion.2", 20 * MS), ("copy.3", 20 * MS)),
    categories={"fusion.1": "convolution fusion", "copy.3": "copy"},
    texts={"fusion.1": "f32[8,512] fusion(f32[8] %p.1)", "fusion.2": "f32[8,64] fusion()", "copy.3": "f32[8,4] copy()"},
    framework={"fusion.1": "jit(train)/mlp/dot_general", "fusion.2": "jit(train)/norm/mul"},
    program="jit_train",
)
INFERENCE = Program(
    steps=steady(("fusion.1", 300 * MS), ("copy.3", 100 * MS)),
    categories={"copy.3": "copy"},
    texts={"fusion.1": "bf16[1,32] fusion()", "copy.3": "bf16[77] copy()"},
    framework={"fusion.1": "jit(serve)/attend/exp"},
    program="jit_serve",
)


def bigger_batch(program: Program, name: str) -> Program:
    """Compiled anew under another name with other shapes; every op takes twice the time and has another number."""
    new = {op: f"{op.partition('.')[0]}.{number}" for number, op in enumerate(program.texts, 90)}
    return replace(
        program,
        steps=[[(new[op], 2 * time) for op, time in step] for step in program.steps],
        texts={new[op]: text.replace("[8", "[16") for op, text in program.texts.items()},
        categories={new[op]: category for op, category in program.categories.items()},
        framework={new[op]: origin.replace("jit(train)", f"jit({name})") for op, origin in program.framework.items()},
        program=f"jit_{name}",
    )


def test_different_programs_are_no_comparison(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, TRAINING, INFERENCE)
    assert diff.different == (
        "these are different programs: A ran mostly jit_train, B mostly jit_serve, and less than 20% of the time of "
        "each is in ops that the other has"
    )
    assert diff.steps is not None and diff.steps.typical.mark == "more" and len(diff.ops) == 5
    assert headline_mark(diff) == "unknown" and verdict(diff) == (
        "These are different programs: A ran mostly jit_train, B mostly jit_serve, and less than 20% of the time of "
        "each is in ops that the other has, so their times can't be compared: 100.0 ms a step in A and 400.0 ms a step "
        "in B."
    )
    for allowed in (0.0, 5.0):
        found = regression(diff, allowed)
        assert found.outcome == "unknown" and found.sentence.startswith("Nothing can be said about a regression: these")
    swapped = compare(session_at(str(tmp_path / "run_b")), session_at(str(tmp_path / "run_a")))
    assert swapped.different and regression(swapped, 0.05).outcome == "unknown"


def test_without_steps_either(tmp_path: Path) -> None:
    short = [replace(part, steps=part.steps[:2], marked=False) for part in (TRAINING, INFERENCE)]
    diff = diff_of(tmp_path / "runs", *short)
    assert diff.basis == "module run" and diff.different
    assert verdict(diff).endswith(": 100.0 ms a run of jit_train in A and 400.0 ms a run of jit_serve in B.")
    nameless = diff_of(tmp_path / "capture", *(replace(part, runs=False) for part in short))
    assert nameless.basis == "capture" and nameless.different == ""


@pytest.mark.parametrize(
    "after",
    [
        bigger_batch(TRAINING, "train"),
        bigger_batch(TRAINING, "train_step"),
        replace(TRAINING, program="jit_renamed"),
        replace(INFERENCE, program="jit_train"),
        replace(INFERENCE, program="program"),
    ],
    ids=["another batch", "renamed, another batch", "renamed", "rewritten under its name", "without a name"],
)
def test_a_program_that_changed_is_still_compared(tmp_path: Path, after: Program) -> None:
    diff = diff_of(tmp_path, TRAINING, after)
    assert diff.different == "" and headline_mark(diff) != "unknown"
    assert not any("different programs" in sentence for sentence in diff.warnings)


def test_a_program_of_which_no_op_is_left(tmp_path: Path) -> None:
    texts = {"dot.9": "f32[2] dot()"}
    diff = diff_of(tmp_path, TRAINING, Program(steady(("dot.9", 5 * MS)), program="jit_train", texts=texts))
    assert "no op of A was found in B: every op is new or gone" in diff.warnings
    assert diff.different == "" and regression(diff, 0.05).outcome == "passed"


def test_without_framework_ops_names_tell(tmp_path: Path) -> None:
    bare = replace(TRAINING, framework={})
    other = replace(
        bare, program="jit_renamed", texts={name: text.replace("[8", "[16") for name, text in bare.texts.items()}
    )
    assert diff_of(tmp_path, bare, other).different == ""


@pytest.mark.parametrize(("kept", "is_different"), [(0.25, False), (0.15, True)])
def test_the_least_share_that_must_be_left(tmp_path: Path, kept: float, is_different: bool) -> None:
    """A program renamed and rewritten but for one layer."""
    assert abs(kept - LEAST_AKIN) == pytest.approx(0.05)
    times = round(100 * MS * kept), round(100 * MS * (1 - kept))

    def part(program: str, layers: Sequence[str]) -> Program:
        names = ("fusion.1", "fusion.2")
        return Program(
            steps=steady((names[0], times[0]), (names[1], times[1])),
            texts={name: f"f32[{len(layer)}] {program}()" for name, layer in zip(names, layers, strict=True)},
            framework={name: f"jit({program})/{layer}" for name, layer in zip(names, layers, strict=True)},
            program=f"jit_{program}",
        )

    diff = diff_of(tmp_path, part("one", ["norm/mul", "mlp/dot"]), part("other", ["norm/mul", "attend/exp"]))
    assert bool(diff.different) is is_different and len(JITTER) == diff.before.units


def test_a_run_of_one_program_among_others(tmp_path: Path) -> None:
    """All that A does is in B, though B does far more besides."""
    assert diff_of(tmp_path, TRAINING, [TRAINING, INFERENCE]).different == ""


def test_runs_without_ops_are_not_called_different(tmp_path: Path) -> None:
    empty = replace(TRAINING, steps=[], marked=False, runs=False)
    assert diff_of(tmp_path / "one", empty, INFERENCE).different == ""
    assert diff_of(tmp_path / "both", empty, empty).different == ""


def test_names_of_programs_are_fit_to_print(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, TRAINING, replace(INFERENCE, program="jit_\x1b[31m"))
    assert diff.different and diff.different.isprintable()
