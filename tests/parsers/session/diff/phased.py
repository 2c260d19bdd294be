"""Runs of several programs a step, as of a server, and profiles that record versions and flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.parsers.session.diff.build import MS, US, Step
from tests.support.build import PlaneBuilder, session_at, write_run
from tpuprof.parsers.formats.proto.services_pb2 import ProfileOptions
from tpuprof.parsers.session.diff.compare import compare
from tpuprof.parsers.session.diff.model import Diff

Environment = Mapping[str, str | int | bytes]
"""Stats of the Task Environment plane."""

Run = tuple[str, Step]
"""The name of a module, and its ops."""


def serving(
    folder: Path,
    name: str,
    steps: Sequence[Sequence[Run]],
    environment: Environment | None = None,
    is_marked: bool = True,
) -> str:
    """The path of a run in which each step runs several modules, one after the other; the step is as long as these.

    In the time of an op ``idle`` none runs.
    """
    plane = PlaneBuilder.alone("/device:TPU:0")
    plane.stat("device_type_string", "TPU test")
    marks, modules, line = (plane.line(title) for title in ("Steps", "XLA Modules", "XLA Ops"))
    programs = {name: number for number, name in enumerate(dict.fromkeys(run[0] for step in steps for run in step), 7)}
    now = 5 * MS
    for number, step in enumerate(steps):
        begin = now
        for program, ops in step:
            first = now
            for title, duration in ops:
                stats = {"program_id": programs[program], "symbol_id": len(title) * 1000 + sum(title.encode())}
                category = title.partition(".")[0]
                text = f'%{title} = f32[8]{{0}} {category}(f32[8]{{0}} %p), custom_call_target="{title}"'
                text = text if category == "custom-call" else text.partition(", custom")[0]
                text += f", program_id={programs[program]}"  # ops of one text are one op of one program
                if title != "idle":
                    plane.event(line, plane.event_id(text, title, hlo_category=category, **stats), now, duration)
                now += duration
            plane.event(modules, plane.event_id(f"{program}({programs[program]})"), first, now - first)
        if is_marked:
            plane.event(marks, plane.event_id(str(number)), begin, now - begin)
    if environment is not None:
        told = PlaneBuilder(plane.space, "Task Environment", 99)
        for key, value in environment.items():
            told.stat(key, value)
    return str(write_run(folder / name, name, host0=plane.space))


def decode(by: int = 0) -> Run:
    return "jit_decode", [("fusion.1", 2 * MS + by * US), ("all-reduce.2", MS)]


def prefill(longer: int = 0, name: str = "jit_prefill") -> Run:
    return name, [("convolution.5", 20 * MS + longer), ("copy.6", 2 * MS)]


def mixed(count: int, every: int, longer: int = 0, name: str = "jit_prefill") -> list[list[Run]]:
    """Steps of four decodes each; before every so many there is a prefill."""
    return [
        [*([prefill(longer, name)] * (step % every == 0)), *(decode((step + at) % 3) for at in range(4))]
        for step in range(count)
    ]


ENVIRONMENT: Environment = {
    "profile_start_time": 17,
    "build_changelist": 812345678,
    "build_time": 1_760_000_000_000_000_000,
    "libtpu_version": "0.0.24",
    "command_line_args": "python train.py --xla_tpu_memory_space_assignment=fast --hf_token=hf_abc --api_key s3cret "
    "LIBTPU_INIT_ARGS='--xla_tpu_scoped_vmem_limit_kib=65536 --xla_jf_conv_input_fusion=true' --verbose",
    "profile_options": ProfileOptions(version=1, host_tracer_level=2, enable_hlo_proto=True).SerializeToString(),
}


def pair(
    folder: Path,
    before: Sequence[Sequence[Run]],
    after: Sequence[Sequence[Run]],
    told: tuple[Environment | None, Environment | None] = (None, None),
) -> Diff:
    """The comparison of two such runs."""
    paths = serving(folder, "a", before, told[0]), serving(folder, "b", after, told[1])
    return compare(session_at(paths[0]), session_at(paths[1]))


def served(folder: Path) -> Diff:
    """A server with another libtpu and other flags: prefill got slower, decode has a kernel instead of a fusion."""
    later = {
        **ENVIRONMENT,
        "libtpu_version": "0.0.25",
        "command_line_args": "python serve.py --xla_new=1 --hf_token=xyz",
    }
    kernel = ("jit_decode", [("custom-call.9", 3 * MS), ("all-reduce.2", MS)])
    after = [[*([prefill(2 * MS)] * (step % 2 == 0)), kernel, kernel] for step in range(40)]
    return pair(folder, mixed(40, 2), after, (ENVIRONMENT, later))
