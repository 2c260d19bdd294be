"""Padded matrix products and memory-bound ops: what must be found, and what must not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.parsers.pages.findings.build import US, Op, evidence, found, grid, modules, product, the, with_
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.pages.findings.finding import Evidence


def matmul(n: int, share: float = 40, speed: float | None = None, hbm: int = 0, device: str = "TPU v5p") -> Evidence:
    """A product whose ``n`` pads to 128, ``share`` percent of the time, at a fraction ``speed`` of the peak FLOP/s.

    By default the unit works all the time, on padding too.
    """
    rate = (n / 128 if n < 128 else 1.0) if speed is None else speed
    ops = [Op("dot.1", "convolution fusion", 20 * share, flops=round(share * 1e-6 * rate * 100e12), hbm=hbm)]
    proof = evidence(grid({"compute": share, "vector": 100 - share}), ops)
    return with_(proof, modules=[modules(product(512, 256, n))], device_type=device)


@pytest.mark.parametrize(
    "proof",
    [
        matmul(32, share=1.3),
        matmul(32, speed=0.4),  # faster than its shape allows: the compiler laid it out otherwise
        matmul(32, hbm=40_000_000),  # it waits for HBM, at its peak: 40 microseconds a time, a terabyte a second
        with_(matmul(32), modules=[]),
        matmul(32, device="GPU"),
    ],
    ids=["short", "fast", "waits for memory", "no program", "no device"],
)
def test_products_that_lose_nothing_known_by_padding(proof: Evidence) -> None:
    assert found("padding", proof) is None


# --- streamed operands ---------------------------------------------------------------------------------------------


def streamed(text: str, took: float, device: str = "TPU v6 Lite", name: str = "dot.1") -> Evidence:
    """A program of one product that takes so many microseconds."""
    proto = read_module_text("jit_step", text.splitlines(keepends=True)).SerializeToString()
    ops = [Op(name, "convolution fusion", 20 * took, flops=round(0.4 * took * 1e-6 * 100e12))]
    proof = evidence(grid({"compute": took, "vector": 100}), ops)
    return with_(proof, modules=[modules(proto)], device_type=device)


def windows(side: int) -> str:
    """8192 x 4096 by 4096 x 8192, in square windows."""
    sizes, bounds = [str(size // side) for size in (8192, 8192, 4096)], [str(side // 8), str(side // 128)]
    config = {"iteration_bounds": sizes} | {f"{of}_window_bounds": bounds for of in ("input", "kernel", "output")}
    said = json.dumps({"window_config": config, "used_scoped_memory_configs": []})
    left, right, out = (f"bf16[{dims}]{{1,0:T(8,128)(2,1)}}" for dims in ("8192,4096", "4096,8192", "8192,8192"))
    text = f"ENTRY %m () -> () {{\n %a = {left} parameter(0)\n %b = {right} parameter(1)\n"
    return f"{text} ROOT %dot.1 = {out} convolution(%a, %b), dim_labels=bf_io->bf, backend_config={said}\n}}\n"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("program", "op", "took", "most"),
    [
        ("gemm@16384", "fusion", 7240, 2740),
        ("gemm", "fusion", 5190, 690),
        ("gemm@49152", "fusion", 4780, 0),
        ("gemm@65536", "fusion", 4500, 0),
        ("flex_attention", "add_select_fusion", 9780, 0),
    ],
)
def test_products_that_were_measured(program: str, op: str, took: float, most: float, shared: Path) -> None:
    """What is said to be won at most is near what the best limit of scoped VMEM won.

    The last one streams 2 % more than its arrays, so that larger windows would win nothing.
    """
    text = gzip.decompress((shared / f"program/hlo/{program}.hlo.gz").read_bytes()).decode()
    finding = found("memory-bound", streamed(text, took, name=op))
    assert (finding is not None) == (most > 0)
    assert finding is None or finding.worth_ps == pytest.approx(most * US, abs=200 * US)


@pytest.mark.parametrize(
    "proof",
    [
        streamed(windows(2048), 1600),
        streamed(windows(512), 4000),
        streamed(windows(512), 1600, device="TPU v5p"),
        with_(streamed(windows(512), 1600), modules=[]),
    ],
    ids=["large windows", "slow for another reason", "multiplying takes longer", "no program"],
)
def test_products_that_do_not_wait_for_streams(proof: Evidence) -> None:
    assert found("memory-bound", proof) is None


# --- memory bound --------------------------------------------------------------------------------------------------

FLOATS = "%fusion.1 = f32[1024,1024]{1,0:T(8,128)} fusion(f32[1024,1024]{1,0:T(8,128)} %p.0), kind=kLoop"
HALVES = FLOATS.replace("f32", "bf16").replace("T(8,128)", "T(8,128)(2,1)")


def fusion(share: float, speed: float, text: str = HALVES, category: str = "loop fusion") -> Evidence:
    """A fusion that takes ``share`` percent of the time, at a fraction ``speed`` of HBM's peak."""
    op = Op("fusion.1", category, 20 * share, flops=1000, hbm=round(share * 1e-6 * speed * 1000e9), text=text)
    return evidence(grid({"vector": share, "compute": 100 - share}), [op])


def test_floats_at_the_peak_could_be_halves() -> None:
    finding = the("memory-bound", fusion(30, 0.96, FLOATS))
    assert finding.worth_ps == pytest.approx(30 / 2 * US, rel=1e-5)
    assert finding.basis == (
        "Half of the time that HBM needs for the f32 bytes of these ops, at the rate that they reach. "
        "13.8 µs of the saving is time at the roof: it needs less work or fewer bytes."
    )
    assert (
        "Much of these ops' data is f32: bf16 would halve those bytes and save 15.0 µs a step (15.0%)."
    ) in finding.evidence


@pytest.mark.parametrize(
    "proof",
    [
        fusion(30, 0.97),
        fusion(9.9, 0.6),
        fusion(30, 0.3),
        fusion(30, 0.6, category="convolution fusion"),
        with_(fusion(30, 0.6), peaks=Peaks()),
    ],
    ids=["halves at the peak", "short", "slow for another reason", "matrix product", "no peak"],
)
def test_fusions_that_memory_does_not_hold_up(proof: Evidence) -> None:
    assert found("memory-bound", proof) is None


# --- random bits ---------------------------------------------------------------------------------------------------

BITS, MASK, DATA = "u32[4096,4096]{1,0}", "pred[4096,4096]{1,0}", "bf16[4096,4096]{1,0}"
SIZE = 4096 * 4096 * 4
WRITTEN = SIZE / 1000e9 / 0.75 * 1e6
"""Microseconds that HBM needs for the bits."""


def mixes(rounds: int, us: float = 300, kind: str = BITS, out: str = "", xor: str = "xor") -> Evidence:
    """A fusion that mixes counters in so many rounds, and ends in them, in a mask, or in data that it masks."""
    lines = [f"%p = {kind} parameter(0)", f"%x0 = {kind} add(%p, %p)"]
    for turn in range(rounds):
        lines.append(f"%l{turn} = {kind} shift-left(%x{turn}, %p)")
        lines.append(f"%r{turn} = {kind} shift-right-logical(%x{turn}, %p)")
        lines.append(f"%o{turn} = {kind} or(%l{turn}, %r{turn})")
        lines.append(f"%x{turn + 1} = {kind} {xor}(%o{turn}, %p)")
    result, last = kind, f"ROOT %done = {kind} add(%x{rounds}, %p)"
    if out:
        lines.append(f"%less = {MASK} compare(%x{rounds}, %p), direction=LT")
        last = f"ROOT %done = {MASK} not(%less)" if out == MASK else f"ROOT %done = {DATA} select(%less, %d, %d)"
        result = out
    reads = f"p: {kind}" + (f", d: {DATA}" if out == DATA else "")
    lines += [f"%d = {DATA} parameter(1)"] if out == DATA else []
    more = ", %b" if out == DATA else ""
    text = [
        *("HloModule jit_step", f"%mix ({reads}) -> {result} {{", *(f"  {line}" for line in (*lines, last)), "}"),
        *(f"ENTRY %main (a: {kind}, b: {DATA}) -> {result} {{", f"  %a = {kind} parameter(0)"),
        *(f"  %b = {DATA} parameter(1)", f"  ROOT %f.1 = {result} fusion(%a{more}), kind=kLoop, calls=%mix", "}"),
    ]
    proto = read_module_text("jit_step", text).SerializeToString()
    ops = [Op("f.1", "loop fusion", us * 20, hbm=2 * SIZE, scope="Dropout_0/_bernoulli/threefry2x32")]
    return with_(evidence(grid({"vector": us, "compute": 1000}), ops), modules=(modules(proto),))


@pytest.mark.parametrize(("out", "moved"), [(MASK, 2.25), (DATA, 3.0)])
def test_what_is_made_of_random_bits_would_read_them(out: str, moved: float) -> None:
    finding = the("vector-work", mixes(20, 900, out=out))
    assert finding.worth_ps == pytest.approx((900 - moved * WRITTEN) * US, rel=1e-5)


@pytest.mark.parametrize(
    "proof",
    [
        mixes(4),  # a hash of keys
        mixes(20, xor="multiply"),
        mixes(20, kind="s32[4096,4096]{1,0}"),  # packs numbers, as integers of 4 bits are
        mixes(20, 70),  # it takes no longer than writing the bits
        with_(mixes(20), peaks=Peaks()),
        with_(mixes(20), modules=()),
    ],
    ids=["hash", "multiplies", "signed", "fast", "no peak", "no program"],
)
def test_what_makes_no_random_bits_or_makes_them_fast_is_none(proof: Evidence) -> None:
    assert found("vector-work", proof) is None
