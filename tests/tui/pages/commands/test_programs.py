"""Verdicts on two compiles, the facts by which they differ, and what is expected of one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.parsers.pages.program.test_fingerprint import PROGRAM, RENAMED, A
from tests.support.imports import ROOT
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_REGRESSION, EXIT_UNREADABLE, EXIT_USAGE, ProfileError
from tpuprof.parsers.formats.hlo.files import program_files
from tpuprof.parsers.pages.program.changes import CHANGED, SAME, TEXT_ONLY, TILES_ONLY, compare_programs
from tpuprof.parsers.pages.program.expected import check_expectation
from tpuprof.parsers.pages.program.programs import CompiledProgram, read_program

SHARED = ROOT.parent / "shared" / "program" / "hlo"
CONFIG = '"window_config":{"iteration_bounds":["TILES"],"output_window_bounds":["8"]},"used_scoped_memory_configs":[]'
TILED = PROGRAM.replace('"tile":["8"]', CONFIG)
SOURCE = 'metadata={source_file="f.py" source_line=7}'
GATHER = f"%s = {A[:-1]}S(1)}} all-gather(%f), {SOURCE}\n  %s2 = {A} add(%f, %b)"
"""An instruction more than `PROGRAM` has."""


def dumped(folder: Path, text: str, kib: int = -1, number: int = 1) -> Path:
    """A dump of a program; of a stage without tiles as well, which does not count."""
    stem = f"module_{number:04}.jit_f.cl_9"
    folder.mkdir(exist_ok=True)
    (folder / f"{stem}.after_codegen.txt").write_text(text)
    (folder / f"{stem}.after_optimizations.txt").write_text(PROGRAM)
    (folder / f"{stem}.flagfile").write_text("--xla_tpu_scoped_vmem_limit_kib=1\n--xla_dump_to=/x\n")
    (folder / f"{stem}.tpu_comp_env.txt").write_text(f"xla_tpu_scoped_vmem_limit_kib: {kib}\nspec {{\n  on: true\n}}\n")
    return folder


def programs(path: Path) -> list[CompiledProgram]:
    return [read_program(file) for file in program_files(str(path))]


@pytest.mark.parametrize(
    ("before", "after", "verdict", "changes"),
    [
        (PROGRAM, RENAMED, SAME, []),
        (PROGRAM, PROGRAM.replace("add(%f, %b)", "add(%b, %f)"), TEXT_ONLY, []),
        (TILED, TILED.replace("TILES", "4"), TILES_ONLY, [("tiles", "f", "{2} steps of {8}", "{4} steps of {8}")]),
        (
            PROGRAM,
            PROGRAM.replace(f"%s = {A} add(%f, %b)", GATHER),
            CHANGED,
            [
                ("collective", "all-gather = f32[8,128], 0.0 MB", "0", "1", "f.py:7"),
                ("array", "f32[8,128], 0.0 MB of VMEM", "0", "1", "f.py:7"),
            ],
        ),
        (PROGRAM, PROGRAM.replace("constant({...})", "constant({1})"), CHANGED, [("constant",)]),
    ],
)
def test_verdicts(tmp_path: Path, before: str, after: str, verdict: str, changes: list[tuple[str, ...]]) -> None:
    sides = programs(dumped(tmp_path / "a", before.replace("TILES", "2"))), programs(dumped(tmp_path / "b", after))
    made = compare_programs(("a", "b"), *sides)
    assert made.verdict == verdict
    shown = [(each.kind, each.what, each.before, each.after, each.source or "") for each in made.changes]
    assert [one[: len(other)] for one, other in zip(shown, changes, strict=True)] == changes


def test_a_flag_that_changed_is_named_though_nothing_else_did(tmp_path: Path, call: Call) -> None:
    before, after = dumped(tmp_path / "a", PROGRAM), dumped(tmp_path / "b", PROGRAM, kib=32768)
    out = call("diff", str(before), str(after)).out
    assert "SAME PROGRAM" in out and "xla_tpu_scoped_vmem_limit_kib: -1" in out and "xla_dump_to" not in out
    made = json.loads(call("diff", str(before), str(after), "--program", "--json").out)
    assert (made["verdict"], made["changes"][0]["kind"], made["changes"][0]["after"]) == (SAME, "flag", "32768")


def test_texts_protos_and_other_places(tmp_path: Path, call: Call) -> None:
    """Of one form only do fingerprints compare; a program that one side has came; a text may be gzipped, or cut."""
    text, proto, cut = tmp_path / "t.hlo.gz", tmp_path / "p.hlo.pb", tmp_path / "cut.hlo"
    text.write_bytes(gzip.compress(RENAMED.encode()))
    cut.write_text(PROGRAM[:-20])
    proto.write_bytes(programs(text)[0].module.proto.SerializeToString())
    folder = dumped(dumped(tmp_path / "d", PROGRAM), PROGRAM.replace("HloModule jit_f", "HloModule jit_g"), number=2)
    assert "UNKNOWN" in call("diff", str(text), str(proto), code=EXIT_UNREADABLE).out
    assert call("diff", str(proto), str(proto)).out.count("SAME PROGRAM") == 1
    dumped(tmp_path / "both", PROGRAM)
    (tmp_path / "both" / "module_0001.jit_f.cl_9.after_codegen.hlo.pb").write_bytes(proto.read_bytes())
    assert "SAME PROGRAM" in call("diff", str(text), str(tmp_path / "both")).out, "the dump has the text as well"
    assert "has no fingerprint" in call("diff", str(cut), str(text), "--md", code=8).out
    cut.write_text(PROGRAM.replace("add(%f, %b)", "while(%f), body=%inside"))
    assert "could not compare" in call("diff", str(cut), str(text), code=EXIT_UNREADABLE).out
    assert "jit_f" in call("diff", str(text), str(folder), code=8).out
    early = tmp_path / "module_0001.jit_g.cl_9.after_optimizations.txt"
    early.write_text(PROGRAM.replace('"tile":["8"],', ""))
    assert "which has no tiles" in " ".join(call("diff", str(text), str(early), code=EXIT_UNREADABLE).out.split())
    assert "is_kept" in call("verify", str(text), "--expect", "add", "--json").out
    call("diff", str(text), "--program", code=EXIT_USAGE)
    call("diff", str(text), str(folder), "--format", "csv", code=EXIT_USAGE)
    call("diff", str(text), str(tmp_path / "none"), "--program", code=EXIT_NOT_FOUND)


@pytest.mark.parametrize(
    ("expected", "count", "is_kept"),
    [
        ("no f32[8192,*]", 0, True),
        ("f32[8,*]", 8, True),
        ("no f32[8,128]", 8, False),
        ("add = 1", 1, True),
        ("while > 0", 0, False),
        ("custom-call splash*", 0, False),
        ("parameter a", 1, True),
        ("constant != 2", 1, True),
        ("add f32*", 1, True),
        ("k.*", 0, False),
        ("donated = 0", 0, True),
        ("no remat", 0, True),
    ],
)
def test_expectations(tmp_path: Path, expected: str, count: int, is_kept: bool, call: Call) -> None:
    folder = dumped(tmp_path / "a", PROGRAM)
    made = check_expectation(programs(folder), expected)
    assert (made.count, made.is_kept) == (count, is_kept)
    out = call("verify", str(folder), str(folder), "--expect", expected, code=0 if is_kept else EXIT_REGRESSION).out
    assert expected in out


@pytest.mark.parametrize("expected", ["no while = 3", "no transpoze", "no f23[8]", "at most 4 all-gather"])
def test_an_expectation_that_is_none(tmp_path: Path, expected: str) -> None:
    """Of what no program can have there is always none."""
    with pytest.raises(ProfileError, match="is no expectation") as raised:
        check_expectation(programs(dumped(tmp_path / "a", PROGRAM)), expected)
    assert "an opcode" in raised.value.hint


def test_donated_arguments_and_products(tmp_path: Path) -> None:
    """TPU compilers write dots as convolutions."""
    head = "is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }"
    product = f"%s = {A} convolution(%f, %b), window={{size=1}}, dim_labels=bf_io->bf"
    text = PROGRAM.replace("is_scheduled=true", head).replace(f"%s = {A} add(%f, %b)", product)
    made = programs(dumped(tmp_path / "a", text))
    counts = {expected: check_expectation(made, expected).count for expected in ("donated", "dot f32*", "dot bf16*")}
    assert counts == {"donated": 1, "dot f32*": 1, "dot bf16*": 0}


def test_the_most_expensive_change_comes_first(tmp_path: Path) -> None:
    """What takes longer, told or at least, whatever its place in the program; what is not known has its reason."""
    small, large = A, A.replace("[8,128]", "[8192,1280]")
    more = f"%s = {small} add(%f, %b)\n  %c = {small} copy(%b)\n  %d = {large} broadcast(%b), dimensions={{0,1}}"
    more += f"\n  %e = {large} copy(%d)"
    before = programs(dumped(tmp_path / "a", PROGRAM))
    after = programs(dumped(tmp_path / "b", PROGRAM.replace(f"%s = {small} add(%f, %b)", more)))
    made = compare_programs(("", ""), before, after, device="TPU v6e")
    copies = [change for change in made.changes if change.kind == "copy"]
    assert [change.name for change in copies] == ["e", "c"]
    assert all(change.cost.bound_ps for change in copies)
    assert copies[0].cost.told_ps is not None and copies[0].cost.told_ps.low >= (copies[0].cost.bound_ps or 0)
    unknown = compare_programs(("", ""), before, after).changes
    assert {(change.cost.bound_ps, change.cost.told_ps) for change in unknown} == {(None, None)}
    assert all(change.dearer.reason for change in unknown)


def test_what_lies_between_the_halves_of_a_collective(tmp_path: Path) -> None:
    """FLOPs, in the order of the schedule; what a SparseCore does is named by what it stands for."""
    start, done = f"%g = ({A}, {A}) all-gather-start(%f), dimensions={{0}}", f"%s = {A} all-gather-done(%g)"
    product = f"%d = {A} dot(%f, %b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}"
    handed = f'%reduce-scatter.1 = (({A}), {A}) async-start(%f), async_execution_thread="sparsecore", calls=%inside'
    parts = ((start, product, done), (product, start, done), (handed, f"%s = {A} async-done(%reduce-scatter.1)"))
    texts = [PROGRAM.replace(f"%s = {A} add(%f, %b)", "\n  ".join(lines)) for lines in parts]
    one, other, last = (programs(dumped(tmp_path / str(at), text)) for at, text in enumerate(texts))
    (overlap,) = [change for change in compare_programs(("", ""), one, other).changes if change.kind == "overlap"]
    assert (overlap.before, overlap.after) == (f"{2 * 8 * 8 * 128:,}", "0")
    changes = {change.what: change.after for change in compare_programs(("", ""), one, last).changes}
    assert changes["reduce-scatter = f32[8,128], 0.0 MB, on a SparseCore"] == "1"


def test_memory_of_dumps(tmp_path: Path) -> None:
    """The peak, by the buffers in another file of the dump; nothing where a side has none."""
    sides = [dumped(tmp_path / name, PROGRAM.replace("add(", f"{name}(")) for name in ("subtract", "maximum")]
    for folder, size in zip(sides, (4_000_000, 8_000_000), strict=True):
        before, after = map(programs, sides)
        assert "memory" not in {change.kind for change in compare_programs(("", ""), before, after).changes}
        value = f" value: <1 f @0> (size={size},offset=0): f32[{size // 4}]{{0}}"
        text = f"allocation 0: size {size}, parameter 0, shape |f32[{size // 4}]| at ShapeIndex {{}}:\n{value}\n"
        (folder / "module_0001.jit_f.cl_9.after_optimizations-buffer-assignment.txt").write_text(text)
    peak, *others = compare_programs(("", ""), programs(sides[0]), programs(sides[1])).changes
    assert (peak.kind, peak.before, peak.after) == ("memory", "4.0 MB", "8.0 MB")
    assert {(one.before, one.after) for one in others if one.kind == "buffer"} == {("1", "0"), ("0", "1")}


@pytest.mark.shared
def test_other_tiles_alone() -> None:
    """A product under another limit of scoped VMEM."""
    before, after = (programs(SHARED / f"{name}.hlo.gz") for name in ("gemm", "gemm@65536"))
    made = compare_programs(("", ""), before, after)
    assert made.verdict == TILES_ONLY
    assert [change.kind for change in made.changes] == ["tiles"]
