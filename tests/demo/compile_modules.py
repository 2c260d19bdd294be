"""Compiles the demo's programs, and others for tests, for TPUs and stores what the compiler says of them.

Run by hand, on any Linux machine, TPU or none; needs `pip install "jax[tpu]"` (made with jax 0.10.2 and libtpu 0.0.42)
and this project importable::

    python tests/demo/compile_modules.py            # all of them
    python tests/demo/compile_modules.py NAME …     # those of `MODULES`

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
from collections.abc import Container
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
V5E, V6E = "v5e:2x2", "v6e:2x2"
MODULES = {
    # file name: program, topology; the demo is composed of the first two
    "jit_train_step": ("train_step", V5E),
    "jit_eval_step": ("eval_step", V5E),
    "jit_train_step_v6e": ("small_train_step", V6E),
    "jit_conv_step_v5e": ("conv_step", V5E),
    "jit_conv_step_v6e": ("conv_step", V6E),
    "jit_mlp_step_v5e": ("mlp_step", V5E),
    "jit_mlp_step_v6e": ("mlp_step", V6E),
    "jit_decode_step_v5e": ("decode_step", V5E),
    "jit_decode_step_v6e": ("decode_step", V6E),
}
SOURCES = (b"model.py", b"train.py", b"conv.py", b"mlp.py", b"decode.py")
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


def lower(program, topology):
    """Lowers a program for four chips, a mesh of 2 (data) × 2 (model)."""
    import jax
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding

    devices = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    mesh = Mesh(np.array(devices).reshape(2, 2), ("data", "model"))

    def argument(shape, spec, dtype):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

    lower_it = {"conv_step": lower_conv, "mlp_step": lower_mlp, "decode_step": lower_decode}
    with jax.set_mesh(mesh):
        return lower_it[program](argument) if program in lower_it else lower_transformer(program, argument)


def lower_transformer(program, argument):
    """The demo's transformer; a small one of sizes that no tile divides for `small_train_step`."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    model, train = load("model"), load("train")
    config = model.CONFIG
    if program == "small_train_step":
        config = model.Config(2, 1200, 12, 5000, 50258, 8, 1000)
    params = jax.tree.map(
        lambda leaf: argument(leaf[0], leaf[1], jnp.float32),
        model.shapes(config),
        is_leaf=lambda leaf: isinstance(leaf, tuple),
    )
    tokens = argument((config.batch, config.length), P("data", None), jnp.int32)
    batch = {"tokens": tokens, "targets": tokens}
    given = () if config == model.CONFIG else (config,)
    if program == "eval_step":
        return train.eval_step.lower(params, batch, *given)
    state = {"params": params, "mean": params, "square": params, "count": argument((), P(), jnp.float32)}
    return train.train_step.lower(state, batch, *given)


def lower_conv(argument):
    """The convolution net: pictures spread over all chips, weights on each."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    conv = load("conv")
    config = conv.CONFIG
    params = jax.tree.map(
        lambda shape: argument(shape, P(), jnp.float32), conv.shapes(config), is_leaf=lambda x: isinstance(x, tuple)
    )
    everywhere = ("data", "model")
    pictures = argument((config.batch, config.pixels, config.pixels, 3), P(everywhere), jnp.uint8)
    labels = argument((config.batch,), P(everywhere), jnp.int32)
    return conv.conv_step.lower(params, params, pictures, labels, argument((), P(), jnp.float32))


def lower_mlp(argument):
    """The perceptron: rows spread over all chips, weights on each."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mlp = load("mlp")
    params = jax.tree.map(
        lambda shape: argument(shape, P(), jnp.float32),
        mlp.shapes(),
        is_leaf=lambda x: isinstance(x, tuple) and isinstance(x[0], int),
    )
    rows = P(("data", "model"))
    return mlp.mlp_step.lower(
        params,
        argument((mlp.BATCH, mlp.FIELDS), rows, jnp.int32),
        argument((mlp.BATCH, 1), rows, jnp.bfloat16),
        argument((mlp.BATCH, mlp.WIDTHS[-1]), rows, jnp.float32),
        argument((mlp.BATCH, 1), rows, jnp.bool_),
    )


def lower_decode(argument):
    """The decoder: sequences spread over all chips, weights on each."""
    from jax import numpy as jnp
    from jax.sharding import PartitionSpec as P

    decode = load("decode")
    weights, cache = decode.shapes(decode.CONFIG)
    everywhere = ("data", "model")
    return decode.decode_step.lower(
        {name: argument(shape, P(), dtype) for name, (shape, dtype) in weights.items()},
        {name: argument(shape, P(None, everywhere), dtype) for name, (shape, dtype) in cache.items()},
        argument((decode.CONFIG.batch,), P(everywhere), jnp.int32),
        argument((), P(), jnp.int32),
    )


def only(folder, ending):
    (found,) = (path for path in folder.iterdir() if path.name.endswith(ending))
    return found.read_bytes()


def join(folder):
    """The module with its buffer assignment, each instruction with the configuration that code generation left."""
    from tpuprof.parsers.formats.proto import hlo_pb2

    proto = hlo_pb2.HloProto.FromString(only(folder, ".after_optimizations.hlo.pb"))
    codegen = hlo_pb2.HloProto.FromString(only(folder, ".after_codegen.hlo.pb")).hlo_module
    configs = {i.name: i.backend_config for c in codegen.computations for i in c.instructions}
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.backend_config = configs[instruction.name]
    return proto


def without_other_sources(proto: Any, sources: Container[bytes]) -> None:
    """Leaves lines of some source files alone: the frames of others go, and with them every path of this machine."""
    index = proto.hlo_module.stack_frame_index
    ours = [i + 1 for i, name in enumerate(index.file_names) if name in sources]
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


def clean(proto):
    """The module's bytes, with the demo's own source lines alone."""
    without_other_sources(proto, SOURCES)
    assert not any(each.metadata.source_file for body in proto.hlo_module.computations for each in body.instructions)
    data = proto.SerializeToString(deterministic=True)
    for path in (HERE, Path(sys.prefix), Path.home(), Path(tempfile.gettempdir())):
        assert str(path).encode() not in data, path
    assert b"site-packages" not in data
    return data


def compile_one(name):
    """Compiles one module and writes its two files."""
    program, topology = MODULES[name]
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True}
        compiled = lower(program, topology).compile(compiler_options=options)
        data = clean(join(Path(folder)))
    costs, memory = compiled.cost_analysis(), compiled.memory_analysis()
    facts = {
        "topology": topology,
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
    target = Path(os.environ.get("MODULES_FOLDER", HERE / "modules")) / name
    target.with_suffix(".hlo_proto.pb.gz").write_bytes(gzip.compress(data, 9, mtime=0))
    target.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")
    print(name, len(data), facts)


def main():
    """Each program in a process of its own: the compiler keeps state, and one process may hold libtpu at a time."""
    if os.environ.items() >= ENVIRONMENT.items():
        compile_one(sys.argv[1])
        return
    for name in sys.argv[1:] or MODULES:
        subprocess.run([sys.executable, __file__, name], check=True, env={**os.environ, **ENVIRONMENT})


if __name__ == "__main__":
    main()
