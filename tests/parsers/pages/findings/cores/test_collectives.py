"""Collectives that nothing hides, uneven work and pipelines: what must be found, and what must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.parsers.pages.findings.build import US, Op, evidence, findings, found, grid, the
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.pages.findings.finding import Evidence, JumpTarget

COLLECTIVES = [
    Op("all-gather-done.3", "async-done", 300),
    Op("all-reduce.1", "all-reduce fusion", 100),
    Op("fusion.1", "loop fusion", 1600),
]

ONLY = Op("all-reduce.1", "all-reduce fusion", 400)


def test_exposed_collectives_are_found() -> None:
    finding = the("collective", evidence(grid({"vector": 80, "collective": 20}), COLLECTIVES))
    assert finding.title == "Exposed collectives: all-gather-done.3 and others"
    assert (finding.worth_ps, finding.worth_fraction, finding.is_estimate) == (20 * US, 0.2, False)
    assert finding.place == JumpTarget("timeline", "all-gather-done.3")
    assert finding.evidence == (
        "Collectives not hidden by compute cost 20.0 µs a step (20.0%).",
        "Most of it: all-gather-done.3 15.0 µs a step (15.0%), all-reduce.1 5.00 µs a step (5.0%).",
        "The only one is all-gather-done.3 (jit(step)/all-gather-done.3, model.py:1), 15.0 µs a step (15.0%).",
        "all-gather-done.3 waits for an asynchronous transfer: too little compute runs beside it.",
    )


def test_less_of_an_asynchronous_collective_counts_which_was_meant_to_be_hidden() -> None:
    steps = grid({"vector": 96, "collective": 4})
    assert the("collective", evidence(steps, COLLECTIVES)).worth_ps == 4 * US
    assert found("collective", evidence(steps, COLLECTIVES[1:])) is None


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        ("all-gather.3", True),
        ("all-to-all.3", True),
        ("ragged-all-to-all.3", True),
        ("collective-permute.3", True),
        ("all-reduce.3", False),
        ("reduce-scatter.3", False),
    ],
)
def test_less_of_what_is_there_before_it_is_needed_counts(name: str, is_told: bool) -> None:
    ops = [Op(name, name.partition(".")[0], 80), Op("all-reduce.1", "all-reduce", 20), COLLECTIVES[2]]
    assert (found("collective", evidence(grid({"vector": 96, "collective": 4}), ops)) is not None) == is_told
    assert found("collective", evidence(grid({"vector": 97.2, "collective": 2.8}), ops)) is None


@pytest.mark.parametrize(
    ("other", "title"),
    [(4, "all-gather.3 is not hidden by compute"), (40, "Exposed collectives: all-gather.3 and others")],
)
def test_other_collectives_are_more_where_they_take_any_time_to_speak_of(other: float, title: str) -> None:
    ops = [Op("all-gather.3", "all-gather", 300), Op("all-reduce.1", "all-reduce", other), COLLECTIVES[2]]
    assert the("collective", evidence(grid({"vector": 80, "collective": 20}), ops)).title == title


def all_reduces(first: int, second: int) -> Evidence:
    """Two cores whose all-reduce takes so many microseconds each, in every step."""
    times = np.array([[first], [second]], np.float64)
    of = {"all-reduce.1": times}
    return evidence(grid({"vector": 80, "collective": times.mean()}, collectives=of), [ONLY])


def test_waiting_for_the_last_core_is_told_from_the_transfer() -> None:
    finding = the("collective", all_reduces(36, 4))
    assert finding.title == "Cores wait for each other in all-reduce.1"
    words = "Cores wait 16.0 µs for the last core; the transfer, timed on the core that waits least, "
    assert f"{words}takes 4.00 µs." in finding.evidence


def test_nobody_says_that_cores_arrive_together_whose_partners_are_not_shown() -> None:
    proof = all_reduces(20, 20)
    text = "%all-reduce.1 = f32[8]{0} all-reduce(f32[8]{0} %x), replica_groups={{0,1,2,3},{4,5,6,7}}"
    finding = the("collective", evidence(proof.grid, [replace(ONLY, text=text)]))
    assert finding.evidence[-1].startswith("The collectives run over 4 devices, of which 2 are shown: waiting for")
    whole = text.replace("{0,1,2,3},{4,5,6,7}", "{0,1},{2,3}")
    assert "arrive together" in the("collective", evidence(proof.grid, [replace(ONLY, text=whole)])).evidence[-1]


# --- causes --------------------------------------------------------------------------------------------------------

TO_ALL = Op("all-to-all.3", "all-to-all", 760)


def experts(extra: float) -> Evidence:
    """Four cores; in each step another one has more to compute, and the others wait in an all-to-all."""
    busy = np.full((4, 10), 80.0)
    for step in range(10):
        busy[step % 4, step] += extra
    waits = busy.max(axis=0) - busy + 4
    classes = {"compute": busy, "collective": waits}
    return evidence(grid(classes, cores=4, collectives={"all-to-all.3": waits}), [TO_ALL])  # type: ignore[arg-type]


def test_uneven_experts_are_told_by_who_waits_in_all_to_alls() -> None:
    finding = the("imbalance", experts(20))
    assert finding.title == "Cores wait for the busiest in all-to-all.3: work is uneven"
    assert finding.worth_ps == 15 * US  # three of four cores wait 20 in each step
    assert finding.evidence[1].startswith("The busiest core of a step computes for 100 µs, the mean core for 85.0 µs")
    assert found("collective", experts(20)) is None  # the transfer alone is little


def behind(idle: float) -> Evidence:
    """The same, where one core waits for the busiest behind the end of its program in place of the collective."""
    busy = np.full((4, 10), 80.0)
    busy[2] += 20
    waits = busy.max(axis=0) - busy
    waits[3] = 0
    at_end = np.zeros((4, 10))
    at_end[3] = 20
    others = np.zeros((4, 10))
    others[3] = idle - 20
    classes = {"compute": busy, "collective": waits + 1, "idle": at_end + others}
    return evidence(grid(classes, cores=4, collectives={"all-to-all.3": waits + 1}, barriers=at_end), [TO_ALL])  # type: ignore[arg-type]


def test_cores_that_are_done_before_the_busiest_wait_for_it_too() -> None:
    finding = the("imbalance", behind(20))
    assert finding.worth_ps == pytest.approx(15 * US)  # two cores wait 20 in the collective, one behind its end
    assert "10.0 µs is waiting for the last core" in finding.evidence[0]
    assert finding.evidence[1] == "For another 5.00 µs, cores have finished and idle until the busiest one has."
    assert the("imbalance", behind(60)).worth_ps == pytest.approx(15 * US)  # the rest of its idle time is another's


def test_even_experts_are_none() -> None:
    assert found("imbalance", experts(1)) is None


def test_stages_of_a_pipeline_that_wait_for_each_other_are_found() -> None:
    waits = np.repeat([[30.0], [30.0], [30.0], [30.0]], 10, axis=1)
    permute = Op("collective-permute-done.1", "collective-permute-done", 1200, occurrences=400)
    classes = {"compute": 70.0, "collective": waits}
    steps = grid(classes, cores=4, collectives={permute.name: waits})  # type: ignore[arg-type]
    for shortest in (3.0, 0.1):  # of ten sends a step
        steps.hops[:, :, 0] = shortest * US, 10 * shortest * US, 64
        finding = found("pipeline", evidence(steps, [permute]))
        assert (finding is None) == (shortest == 3.0)  # all of its events are alike: that may be the transfer
    assert finding is not None
    assert finding.title == "Pipeline stages wait for each other in collective-permute-done.1"
    assert finding.worth_ps == pytest.approx((30 - 10 * 0.1) * US)


def test_collectives_that_take_longer_at_a_rhythm_are_told_with_it() -> None:
    times = np.where(np.arange(12) % 4 == 3, 60.0, 2.0)
    finding = the("collective", evidence(grid({"vector": 80, "collective": times}, steps=12), [ONLY]))
    assert finding.title == "all-reduce.1 is not hidden by compute every 4th step"
    assert finding.evidence[1] == (
        "Every 4th step they exceed those of the fastest step by 58.0 µs, in the other steps 0."
    )


def test_a_group_of_collectives_is_named_by_kind_and_pass() -> None:
    ops = [Op(f"reduce-scatter.{n}", "reduce-scatter", 40, scope=f"transpose(jvp(layer_{n}))/dot") for n in range(10)]
    finding = the("collective", evidence(grid({"vector": 80, "collective": 20}), ops))
    assert finding.title == "10 reduce-scatters of the backward pass are not hidden by compute"


_HOST = OP_CLASSES.index("host")
SEND = '%recv-done.1 = bf16[8] recv-done(%recv), frontend_attributes={_xla_host_transfer_handler_name="{}"}'

MEGASCALE = SEND.replace("{}", "xla_megascale_runtime")


@pytest.mark.parametrize(
    ("text", "scope", "kind"),
    [
        (SEND.replace("{}", "xla_megascale_runtime"), "grads/add", "dcn"),
        ("", "shard_map/psum", "dcn"),
        ("", "debug_callback/io_callback", "debug-print"),
    ],
)
def test_collectives_between_slices_are_told_from_callbacks(text: str, scope: str, kind: str) -> None:
    op = Op("recv-done.1", "host recv-done", 200, text=text, scope=scope)
    steps = grid({"compute": 90, "host": 10}, host_transfer=10)
    assert [finding.kind for finding in findings(evidence(steps, [op]))] == [kind]


def test_what_other_slices_wait_for_a_late_core_is_the_late_cores() -> None:
    ops = [Op("fusion.1", "loop fusion", 8120), Op("recv-done.1", "host recv-done", 3240, text=MEGASCALE)]
    busy = np.full((8, 10), 100.0)
    busy[3] += 12
    steps = grid({"vector": busy, "host": 142 - busy}, cores=8)
    steps = replace(steps, collective_names=("recv-done.1",), collective_ps=steps.class_ps[:, :, [_HOST]])
    proof = evidence(steps, ops, cores=8)
    assert the("straggler", proof).worth_ps == pytest.approx(12 * US)
    exchange = the("dcn", proof)
    assert exchange.worth_ps == pytest.approx(30 * US)
    assert exchange.basis.endswith("; 10.5 µs of waiting counted by other findings is left out.")
    assert "(DCN) take 40.5 µs a step (28.5%), 10.5 µs of it waiting for late cores: " in exchange.evidence[0]
