"""Compiles the demo's programs for a TPU and stores what the compiler says of them.

Run by hand, on any Linux machine, TPU or none; needs `pip install "jax[tpu]"` (made with jax 0.10.2 and libtpu 0.0.42)
and this project importable::

    python tests/demo/compile_modules.py

Writes `modules/<name>.hlo_proto.pb.gz` (the optimised module with its buffer assignment, schedule and the compiler's
cycle estimates) and `modules/<name>.json` (the compiler's own totals, which the tests hold the profile against).
"""

# mypy: ignore-errors
from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path

HERE = Path(__file__).parent
TOPOLOGY = "v5e:2x2"
PROGRAMS = ("train_step", "eval_step")
ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}


def load(name):
    """Imports one of the demo's source files under its bare name, so that the compiler records no local path."""
    module = sys.modules[name] = types.ModuleType(name)
    source = (HERE / "program" / f"{name}.py").read_text()
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


def lower(program):
    """Lowers a program for four chips, a mesh of 2 (data) × 2 (model)."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    model, train = load("model"), load("train")
    devices = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGY).devices
    mesh = Mesh(np.array(devices).reshape(2, 2), ("data", "model"))

    def argument(shape, spec, dtype):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

    config = model.CONFIG
    params = jax.tree.map(
        lambda leaf: argument(leaf[0], leaf[1], jnp.float32),
        model.shapes(config),
        is_leaf=lambda leaf: isinstance(leaf, tuple),
    )
    tokens = argument((config.batch, config.length), P("data", None), jnp.int32)
    batch = {"tokens": tokens, "targets": tokens}
    with jax.set_mesh(mesh):
        if program == "train_step":
            state = {"params": params, "mean": params, "square": params, "count": argument((), P(), jnp.float32)}
            return train.train_step.lower(state, batch)
        return train.eval_step.lower(params, batch)


def only(folder, ending):
    (found,) = (path for path in folder.iterdir() if path.name.endswith(ending))
    return found.read_bytes()


def join(folder):
    """The module with its buffer assignment, each instruction with the configuration that code generation left."""
    from tpuprof.parsers.proto import hlo_pb2

    proto = hlo_pb2.HloProto.FromString(only(folder, ".after_optimizations.hlo.pb"))
    codegen = hlo_pb2.HloProto.FromString(only(folder, ".after_codegen.hlo.pb")).hlo_module
    configs = {i.name: i.backend_config for c in codegen.computations for i in c.instructions}
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.backend_config = configs[instruction.name]
    return proto


def clean(proto):
    """Leaves the demo's own source lines alone: frames of this file go, and with them every path of this machine."""
    index = proto.hlo_module.stack_frame_index
    ours = [i + 1 for i, name in enumerate(index.file_names) if name in (b"model.py", b"train.py")]
    kept = {
        number + 1
        for number, frame in enumerate(index.stack_frames)
        if index.file_locations[frame.file_location_id - 1].file_name_id in ours
    }
    for frame in index.stack_frames:
        if frame.parent_frame_id not in kept:
            frame.parent_frame_id = 0
    for number in range(len(index.file_names)):
        if number + 1 not in ours:
            index.file_names[number] = b"launch.py"
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            if instruction.metadata.stack_frame_id not in kept:
                instruction.metadata.stack_frame_id = 0
            assert not instruction.metadata.source_file
    data = proto.SerializeToString(deterministic=True)
    for path in (HERE, Path(sys.prefix), Path.home(), Path(tempfile.gettempdir())):
        assert str(path).encode() not in data, path
    assert b"site-packages" not in data
    return data


def compile_one(program):
    """Compiles one program and writes its two files."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True}
        compiled = lower(program).compile(compiler_options=options)
        data = clean(join(Path(folder)))
    costs, memory = compiled.cost_analysis(), compiled.memory_analysis()
    facts = {
        "topology": TOPOLOGY,
        # Each loop body counts once in these two.
        "flops": costs["flops"],
        "bytes_accessed": costs["bytes accessed"],
        **{
            key: getattr(memory, key)
            for key in (
                "argument_size_in_bytes",
                "output_size_in_bytes",
                "alias_size_in_bytes",
                "temp_size_in_bytes",
                "generated_code_size_in_bytes",
                "peak_memory_in_bytes",
            )
        },
    }
    target = HERE / "modules" / f"jit_{program}"
    target.with_suffix(".hlo_proto.pb.gz").write_bytes(gzip.compress(data, 9, mtime=0))
    target.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")
    print(program, len(data), facts)


def main():
    """Each program in a process of its own: the compiler keeps state, and one process may hold libtpu at a time."""
    if len(sys.argv) > 1:
        compile_one(sys.argv[1])
        return
    for program in PROGRAMS:
        subprocess.run([sys.executable, __file__, program], check=True, env={**os.environ, **ENVIRONMENT})


if __name__ == "__main__":
    main()
