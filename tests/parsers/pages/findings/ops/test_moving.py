"""Layout copies, host transfers, debug prints and rearranged data: what must be found, and what must not."""

from __future__ import annotations

import pytest

from tests.parsers.pages.findings.build import US, Op, evidence, found, grid, modules, the, with_
from tests.support.build import OpSpec, PlaneBuilder, summary_of, tpu_plane
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.device import op_class
from tpuprof.parsers.pages.findings.finding import Evidence, JumpTarget
from tpuprof.parsers.pages.overview.overview import overview

TRANSPOSED = "%copy.8 = f32[4096,8]{1,0:T(8,128)} copy(f32[4096,8]{0,1:T(8,128)} %p.1)"
"""Padded 16 times."""

SAME = "%copy.9 = f32[4096,1024]{1,0:T(8,128)} copy(f32[4096,1024]{1,0:T(8,128)} %p.1)"
OFFLOADED = (
    "%copy-done.4 = f32[5,1024]{1,0:T(8,128)} copy-done((f32[5,1024]{1,0:T(8,128)}, f32[5,1024]{1,0:T(8,128)S(5)}, "
    "u32[]{:S(2)}) %copy-start.4)"
)
PREFETCHED = OFFLOADED.replace("S(5)", "S(1)")


def copies(text: str, share: float, *more: Op, category: str = "copy") -> Evidence:
    """A tenth of the copying is no layout copy; two cores, ten steps of 100 microseconds."""
    ops = [Op("copy.8", category, 18 * share, text=text), Op("slice.1", "dynamic-slice", 2 * share), *more]
    return evidence(grid({"compute": 100 - share, "copy": share}), ops)


def test_a_copy_that_keeps_the_layout_is_not_called_a_layout_copy() -> None:
    for category in ("copy", "data formatting"):
        finding = the("copy", copies(SAME.replace("copy.9", "copy.8"), 10, category=category))
        assert finding.title == "Copies that keep the layout: copy.8"
        assert finding.evidence[-1].startswith("It copies f32[4096,1024]{1,0:T(8,128)} unchanged")
        assert "donate_argnums" in finding.advice


def test_a_transpose_that_has_the_layout_of_what_it_turns_is_none_of_them() -> None:
    turned = "%copy.8 = f32[512,512]{1,0:T(8,128)} transpose(f32[512,512]{1,0:T(8,128)} %p.1)"
    finding = the("copy", copies(turned, 10, category="data formatting"))
    assert finding.title == "Layout copies: copy.8"
    assert "the same layout" in finding.advice


def test_most_of_the_copying_says_which_copies_are_meant() -> None:
    same = Op("copy.9", "copy", 60, text=SAME)
    finding = the("copy", copies(TRANSPOSED, 10, same))
    assert finding.title == "Layout copies: copy.8 (padded 16x) and 1 more"
    assert "2.31 µs a step (2.3%) of this time is copies into the same layout." in finding.evidence
    many = [Op(f"copy.{number}", "copy", 100, text=SAME.replace("copy.9", f"copy.{number}")) for number in (9, 10)]
    finding = the("copy", copies(TRANSPOSED, 10, *many))
    assert finding.title == "Copies that keep the layout: copy.9 and 2 more"
    assert finding.evidence[2].startswith("The largest of these is copy.9")


ARGUMENT = """HloModule jit_step
ENTRY %main (p: f32[4096,1024]) -> f32[4096,1024] {
  %p = f32[4096,1024]{1,0} parameter(0)
  ROOT %copy.8 = f32[4096,1024]{1,0} copy(%p)
}
"""


@pytest.mark.parametrize("donated", [False, True])
def test_an_argument_that_is_copied_was_not_donated(donated: bool) -> None:
    proto = read_module_text("jit_step", ARGUMENT.splitlines())
    if donated:
        proto.hlo_module.input_output_alias.entries.add(parameter_number=0)
    of = with_(copies(SAME.replace("copy.9", "copy.8"), 10), modules=(modules(proto.SerializeToString()),))
    title = the("copy", of).title
    assert (
        title == ("Copies that keep the layout" if donated else "Copies of arguments that are not donated") + ": copy.8"
    )


@pytest.mark.parametrize(
    "ops",
    [
        [Op("copy.8", "copy", 38, text=TRANSPOSED), Op("slice.1", "dynamic-slice", 362)],
        [Op("dus.1", "dynamic-update-slice", 200), Op("copy-done.4", "copy-done", 200, text=PREFETCHED)],
        [Op("copy.8", "copy", 500, occurrences=1), Op("slice.1", "dynamic-slice", 200)],
    ],
    ids=["few", "slices and prefetches", "once before the steps"],
)
def test_what_is_no_layout_copy(ops: list[Op]) -> None:
    proof = evidence(grid({"compute": 80, "copy": 20}), ops)
    assert found("copy", proof) is None and found("host-offload", proof) is None


def test_offloading_that_runs_beside_the_computation_is_none() -> None:
    ops = [Op("copy-done.4", "copy-done", 50, text=OFFLOADED), Op("fusion.1", "loop fusion", 1900)]
    assert found("host-offload", evidence(grid({"vector": 97.5, "copy": 2.5}), ops)) is None


def test_a_callback_that_the_device_waits_for_is_named() -> None:
    space = XSpace()
    ops: list[OpSpec] = [("recv-done.5", "host recv-done", at, 40) for at in range(60, 1200, 100)]
    ops += [("dot.1", "convolution fusion", at, 60) for at in range(0, 1200, 100)]
    tpu_plane(space, 0, ops, steps=[(str(at), 100 * at, 100 * at + 100) for at in range(12)])
    calls = [("write_metrics", at, at + 38) for at in range(60, 1200, 100)]
    PlaneBuilder(space, "/host:CPU", 9).threads([calls, [("serve", 100 * at, 100 * at + 99) for at in range(12)]], 1)
    finding = next(each for each in overview([summary_of(space)]).findings if each.kind == "host-offload")
    assert finding.title == "Host transfers stall the device while the host runs write_metrics"
    assert finding.advice.startswith("Do less in write_metrics")


def printing(scope: str, share: float = 5) -> Evidence:
    """Steps of 100 microseconds, so many of them in a transfer to the host from this scope."""
    steps = grid({"compute": 100 - share, "host": share}, host_transfer=share)
    return evidence(steps, [Op("recv-done.4", "host recv-done", 20 * share, scope=scope)])


@pytest.mark.parametrize("scope", ["loss/debug_callback", "debug_print", "while/body/debug_print[fmt=loss]"])
def test_debug_prints_are_told_from_other_transfers(scope: str) -> None:
    finding = the("debug-print", printing(scope))
    assert finding.title.startswith("Debug prints delay the step: ")
    assert finding.worth_ps == pytest.approx(5 * US) and finding.place == JumpTarget("timeline", "recv-done.4")
    assert finding.basis.endswith("Untested on hardware: such ops are recognised as XProf's source does.")
    assert found("host-offload", printing(scope)) is None


@pytest.mark.parametrize("scope", ["metrics/io_callback", "debug_print_head/mul", "my_debug_callback/pure_callback"])
def test_other_callbacks_are_no_debug_prints(scope: str) -> None:
    assert found("debug-print", printing(scope)) is None
    assert the("host-offload", printing(scope)).worth_ps == pytest.approx(5 * US)


def test_a_short_print_is_none() -> None:
    assert found("debug-print", printing("debug_print", 0.9)) is None


def moving(category: str, share: float = 6) -> Evidence:
    """Steps of 100 microseconds, so many of them in an op of this category at a third of HBM's peak."""
    op = Op("op.4", category, 20 * share, hbm=round(share * US * 1000e9 / 1e12 / 3))
    return evidence(grid({"compute": 100 - share, op_class(category): share}), [op])


@pytest.mark.parametrize("category", ["concatenate", "pad", "reverse", "slice", "sort"])
def test_data_that_is_only_put_elsewhere(category: str) -> None:
    finding = the("shuffle", moving(category))
    assert finding.title == "Rearranging data takes 6.0%, mostly op.4"
    assert finding.worth_ps == pytest.approx(6 * US) and not finding.is_estimate


@pytest.mark.parametrize("category", ["loop fusion", "gather", "dynamic-slice", "dynamic-update-slice", "reduce"])
def test_what_computes_or_loops_need_is_no_shuffle(category: str) -> None:
    assert found("shuffle", moving(category)) is None


def test_a_little_of_it_is_none() -> None:
    assert found("shuffle", moving("pad", 2.9)) is None
