"""Fingerprints of programs: what is left out of them, and what is not."""

from __future__ import annotations

import pytest

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.pages.program.fingerprint import Fingerprint, TextFingerprint, fingerprint
from tpuprof.parsers.pages.program.traffic import reads_of

A = "f32[8,128]{1,0:T(8,128)}"
INSIDE = f"%inside (p: {A}) -> {A} {{\n  %p = {A} parameter(0)\n  ROOT %n = {A} negate(%p)\n}}\n"
UNUSED = f"%unused (q: {A}) -> {A} {{\n  ROOT %q = {A} parameter(0)\n}}\n"
ENTRY = f"""ENTRY %main (a: {A}, b: {A}) -> {A} {{
  %a = {A} parameter(0), frontend_attributes={{x="}}", y={{z}}}}, metadata={{op_name="a" source_line=3}}
  %b = {A} parameter(1)
  %k = {A} constant({{...}})
  %f = {A} fusion(%a), kind=kLoop, calls=%inside, backend_config={{"tile":["8"],"used":[]}}
  %s = {A} add(%f, %b), metadata={{op_name="jit(f)/add"}}
  ROOT %r = {A} multiply(%s, %k)
}}
"""
HEAD = "HloModule jit_f, is_scheduled=true\n\n"
PROGRAM = HEAD + INSIDE + ENTRY
RENAMED = PROGRAM.replace("%f", "%fusion.7").replace("%inside", "%zz").replace("jit_f", "jit_g").replace('="a"', '="w"')

SUGARED = (
    f"HloModule m\nENTRY %e (a: {A}) -> {A} {{\n  %a = {A} parameter(0)\n  %s = ({A}) OPS\n  ROOT %d = {A} OPD\n}}\n"
)
APART = f"%w (p: {A}) -> {A} {{\n  %p = {A} parameter(0)\n  ROOT %i = {A} slice(%p), slice={{[0:4]}}\n}}\n"


def of_text(text: str) -> Fingerprint | None:
    reader = TextFingerprint()
    for line in text.splitlines(keepends=True):
        reader.take(line)
    return reader.result()


def of_proto(text: str) -> Fingerprint:
    return fingerprint(HloModule(read_module_text("", text.splitlines())))


@pytest.mark.parametrize(
    "same",
    [
        RENAMED,
        PROGRAM.replace("%f", "%kind").replace("%b", "%kLoop"),
        HEAD + UNUSED + INSIDE + ENTRY,
        PROGRAM.replace('"tile":["8"],"used":[]', '"used":[], "tile":["8"]'),
    ],
)
def test_what_is_left_out(same: str) -> None:
    """Names, metadata, computations that nothing calls, and the order of keys."""
    assert of_text(PROGRAM) == of_text(same)
    assert of_proto(PROGRAM) == of_proto(same)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("add(%f, %b)", "add(%b, %f)"),
        ("negate", "abs"),
        ("is_scheduled=true", "is_scheduled=true, input_output_alias={{}: (0, {}, may-alias)}"),
        ("multiply(%s, %k)", "multiply(%s, %k), channel_id=3"),
        (f"%b = {A}", f"%b = {A[:-1]}S(1)}}"),
    ],
)
def test_what_is_not(old: str, new: str) -> None:
    """Operands, opcodes inside of what is called, attributes, layouts; what the head says is a text's alone."""
    changed = PROGRAM.replace(old, new)
    before, after = of_text(PROGRAM), of_text(changed)
    assert before is not None
    assert after is not None
    assert before.structure != after.structure
    if "alias" not in new:
        assert of_proto(PROGRAM).structure != of_proto(changed).structure


def test_tiles_are_not_of_the_structure() -> None:
    """A configuration counts for the canonical fingerprint alone; a text without large constants says how many."""
    before, after = of_text(PROGRAM), of_text(PROGRAM.replace('["8"]', '["16"]'))
    assert before is not None
    assert after is not None
    assert before.canonical != after.canonical
    assert (before.structure, before.of, before.unseen_constants) == (after.structure, "text", 1)
    assert of_proto(PROGRAM).of == "proto"


def test_asynchronous_instructions_are_one_however_they_are_written() -> None:
    short = SUGARED.replace("OPS", "slice-start(%a), slice={[0:4]}").replace("OPD", "slice-done(%s)")
    apart = SUGARED.replace("OPS", "async-start(%a), calls=%w").replace("OPD", "async-done(%s)")
    assert of_text(short) == of_text(apart.replace("ENTRY", f"{APART}ENTRY"))
    assert of_text(short) != of_text(apart.replace("ENTRY", f"{APART.replace('0:4', '4:8')}ENTRY"))
    begun = short.replace(f"({A}) slice-start", f"(({A}), {A.replace('[8,', '[4,')}, u32[]) slice-start")
    module = HloModule(read_module_text("", begun.splitlines()))
    start = module.instruction_proto("s")
    assert start is not None and [read.bytes for read in reads_of(module, start)] == [8 * 128 * 4], "its part, padded"


def test_a_text_that_is_cut_has_none() -> None:
    assert of_text(PROGRAM[:-20]) is None
    assert of_text("no program") is None


def test_fields_that_are_not_known_here_count() -> None:
    """The value of a constant of floating point, field 8 of a literal; what shows statistics, 82, does not."""

    def changed(value: bytes, statistics: bytes) -> Fingerprint:
        proto = read_module_text("", PROGRAM.splitlines())
        constant = next(one for one in proto.hlo_module.computations[1].instructions if one.opcode == b"constant")
        constant.literal.MergeFromString(b"\x42\x04\x00\x00" + value)
        constant.MergeFromString(b"\x92\x05\x02" + statistics)
        return fingerprint(HloModule(proto))

    assert changed(b"\x80\x3f", b"ab") == changed(b"\x80\x3f", b"xy") != changed(b"\x80\x40", b"ab")
