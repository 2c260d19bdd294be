"""Compiles small models of several code bases for a TPU, and notes which block each instruction is written in.

Run by hand, on any Linux machine, TPU or none; needs ``pip install "jax[tpu]" flax dm-haiku equinox optax`` (made with
jax 0.10.2, libtpu 0.0.42, flax 0.12, haiku 0.0, equinox 0.13) and this project importable::

    python -m tests.parsers.pages.overview.model_use.compile_programs NAME …

A program is a text in `programs`, whose lines say their block: ``# @attention``. The truth of an instruction is the
innermost line with a block in its call stack; of a fusion that of its product, else of most of what is in it. Names of
scopes have no part in it. Writes ``compiled/NAME.pb.xz``, without stacks and buffers, and ``compiled/NAME.json``: block
and simulated time of each instruction that runs.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import lzma
import os
import re
import sys
import tempfile
import types
from collections import Counter
from pathlib import Path

from tests.demo.profile import schedule
from tests.insight.simulator.code import Built
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2

HERE = Path(__file__).parent
ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}
WHOLE_MODELS = re.compile(r"model\.apply|nnx\.merge|eqx\.combine")
"""Lines that call a whole model, and are of no block."""


def lower(name):
    """Lowers a program for one core of a v5e; its source keeps its bare name, so that no path of a machine is left."""
    import jax
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    device = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices[0]
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile((HERE / "programs" / f"{name}.txt").read_text(), f"{name}.py", "exec"), module.__dict__)
    place = SingleDeviceSharding(device)
    given = jax.tree.map(lambda of: jax.ShapeDtypeStruct(of.shape, of.dtype, sharding=place), module.args())
    return jax.jit(module.train_step, donate_argnums=tuple(range(len(given) - 1))).lower(*given)


def truth(hlo, name):
    """A function that gives the block of an instruction."""
    lines = (HERE / "programs" / f"{name}.txt").read_text().splitlines()
    marks = {
        number: found[1]
        for number, line in enumerate(lines, 1)
        if (found := re.search(r"# @(\w+)", line)) and not WHOLE_MODELS.search(line)
    }

    def of(proto):
        for call in hlo.stack(proto):
            place = re.match(rf"(?:.*/)?{name}\.py:(\d+)", call)
            if place and int(place[1]) in marks:
                return marks[int(place[1])]
        return None

    def block(proto):
        inside = hlo.wrapped(proto)
        inner = [] if inside is None else list(inside.instructions)
        products = [each for each in inner if each.opcode in (b"dot", b"convolution")]
        if products:
            return of(products[-1]) or of(proto)
        votes = Counter(filter(None, map(of, inner)))
        return of(proto) or (votes.most_common(1)[0][0] if votes else None)

    return block


def times(proto, name):
    """Simulated time of each instruction that runs, in picoseconds: the compiler's estimate, or by FLOPs and bytes."""
    transfer = schedule._transfer_ps

    def safe(*given):
        try:
            return transfer(*given)
        except IndexError:  # a transfer that moves nothing
            return 0

    schedule._transfer_ps = safe
    plan = schedule.template(Built(name, proto.hlo_module))
    found = Counter()
    for at in plan.event_ops:
        op = plan.ops[at]
        if op.instruction.opcode not in (b"while", b"conditional"):
            found[op.instruction.name.decode()] += max(op.duration_ps, op.floor_ps)
    return found


def compile_one(name):
    """Compiles a program and writes its two files."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = lower(name).compile(compiler_options={"xla_dump_to": folder, "xla_dump_hlo_as_proto": True})
        (dump,) = (path for path in Path(folder).iterdir() if path.name.endswith(".after_optimizations.hlo.pb"))
        proto = hlo_pb2.HloProto.FromString(dump.read_bytes())
    codegen = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    configs = {
        i.name: i.backend_config
        for c in hlo_pb2.HloModuleProto.FromString(codegen).computations
        for i in c.instructions
    }
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.backend_config = configs.get(instruction.name, b"")
    pack(proto, name)


def pack(proto, name):
    """Notes the truth and the times, and keeps of the module what the classification reads."""
    hlo = HloModule(proto)
    block = truth(hlo, name)
    noted = {op: [block(hlo.instruction_proto(op)), ps] for op, ps in sorted(times(proto, name).items())}
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            named = instruction.metadata.op_name
            instruction.ClearField("metadata")
            instruction.metadata.op_name = named
            for field in ("backend_config", "backend_config_payload", "frontend_attributes"):
                instruction.ClearField(field)
    for field in ("stack_frame_index", "schedule", "payloads"):
        proto.hlo_module.ClearField(field)
    proto.ClearField("buffer_assignment")
    proto.DiscardUnknownFields()
    data = proto.SerializeToString(deterministic=True)
    assert b"site-packages" not in data
    (HERE / "compiled" / f"{name}.pb.xz").write_bytes(lzma.compress(data, preset=9))
    (HERE / "compiled" / f"{name}.json").write_text(json.dumps(noted, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    os.environ.update(ENVIRONMENT)
    for wanted in sys.argv[1:]:
        compile_one(wanted)
        print(wanted)
