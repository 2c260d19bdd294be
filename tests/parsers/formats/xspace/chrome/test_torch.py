"""A trace of PyTorch's profiler: its devices, streams, threads and steps are those of a profile."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.files.chrome import Event, events_of, trace_of
from tpuprof.parsers.files.file_kinds import known
from tpuprof.parsers.files.folder_search import BEGIN_BYTES
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session

STEPS, KERNELS, STEP, KERNEL = 5, 4, 10_000, 1_500
"""How many steps, and kernels in each; how long each of them lasts, in microseconds."""


def written(by_calls: bool) -> list[Event]:
    """A program of some steps on one stream.

    Args:
        by_calls: whether the runtime's calls that start kernels are in it; else only the ops are.
    """
    events: list[Event] = []
    for pid, label in ((41, "CPU"), (0, "GPU 0")):
        events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "python"}})
        events.append({"ph": "M", "name": "process_labels", "pid": pid, "args": {"labels": label}})

    def put(category: str, name: str, at: int, dur: int, **args: object) -> None:
        place = (0, 7) if "device" in args else (41, 43)
        where = {"pid": place[0], "tid": place[1], "ts": at, "dur": dur}
        events.append({"ph": "X", "cat": category, "name": name, "args": args, **where})

    for step in range(STEPS):
        put("user_annotation", f"ProfilerStep#{step + 3}", step * STEP, STEP)
        put("gpu_user_annotation", f"ProfilerStep#{step + 3}", step * STEP + 100, KERNELS * 2_000, device=0)
        put(
            "user_annotation",
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
            step * STEP + 8_000,
            1_500,
        )
        for kernel in range(KERNELS):
            at, number = step * STEP + kernel * 2_000, step * KERNELS + kernel
            link = {"correlation": number + 9} if by_calls else {}
            put("cpu_op", "aten::mm", at, 50, **{"External id": number, "Input Dims": [[8, 8]]})
            if by_calls:
                put("cuda_runtime", "cudaLaunchKernel", at + 10, 20, **{"External id": number, **link})
            size: dict[str, object] = {"grid": [4, 2, 1], "block": [128, 1, 1], "registers per thread": 38}
            size |= {"External id": number, **link}
            put("kernel", "gemm_kernel", at + 100, KERNEL, device=0, stream=7, **size)
    return events


@pytest.mark.parametrize("by_calls", [True, False])
def test_steps_streams_and_kernels(tmp_path: Path, by_calls: bool) -> None:
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": written(by_calls)}, indent=2))
    (run,) = open_logdir(str(path)).runs
    session = Session(run)
    page = session.page(OVERVIEW)
    assert page.performance.step_time is not None
    assert [step.duration_ps for step in page.steps] == [STEP * 10**6] * len(page.steps) and len(page.steps) >= 3
    assert page.steps[0].name.startswith("ProfilerStep")
    assert page.bottleneck.input_percent == pytest.approx(15) and page.performance.bits32_percent is None
    ops = session.page(OPS)
    assert (ops.runs_on, ops.table.name) == ("GPU", ("gemm_kernel",))
    assert ops.table.self_ps.tolist() == [STEPS * KERNELS * KERNEL * 10**6]
    (kernel,) = ops.kernels
    assert (kernel.grid, kernel.block, kernel.registers) == ("4,2,1", "128,1,1", 38)
    assert any("PyTorch's profiler" in problem for problem in page.warnings) and not any(
        "TPU" in text for text in (*page.warnings, *page.unknown.values())
    )


def test_its_planes_and_lines_have_their_names() -> None:
    host, gpu = sorted(trace_of(*written(True)).planes, key=lambda plane: plane.name, reverse=True)
    assert (host.name, [line.name for line in host.lines]) == ("/host:CPU", ["thread 43"])
    assert gpu.name == "/device:GPU:0"
    assert sorted(line.name for line in gpu.lines) == ["Steps", "annotations", "stream 7"]
    numbers = [stats["step_num"] for _, name, _, _, stats in events_of(host) if name == "ProfilerStep"]
    assert numbers == list(range(3, 3 + STEPS))


@pytest.mark.parametrize("indent", [None, 2])
def test_json_that_begins_with_a_blank_line_is_no_compiled_module(indent: int | None) -> None:
    """The length of a message may be a brace, and its first field a line feed."""
    content = f"\n{json.dumps({'traceEvents': written(False)}, indent=indent)}".encode()
    assert known("rank0.json", content[:BEGIN_BYTES]) is None
    assert known("rank0.json.gz", gzip.compress(content)[:BEGIN_BYTES]) is None
