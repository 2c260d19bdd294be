"""Compiles one program as it is told to, ahead of time for chips that are not here, and says what came of it.

Run by the bench in a process of its own, with an interpreter that has `jax[tpu]`::

    python tests/bench/oom_proof/worker.py '{"program": "decoder", "chip": "v5e", "knobs": {…}}' FOLDER

Prints one line of JSON: whether it compiled, the compiler's error, its own figures; its dump is in the folder.
"""

# mypy: ignore-errors
import json
import os
import sys
import types
from pathlib import Path

ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
TOPOLOGIES = {"v5e": "v5e:2x4", "v5p": "v5p:2x2x1", "v6e": "v6e:2x4", "7x": "tpu7x:2x2x1"}
FIGURES = ("argument", "output", "alias", "temp", "generated_code", "peak")


def load(name):
    """A program's source under its bare name, so that the compiler records no path of this machine."""
    module = sys.modules[name] = types.ModuleType(name)
    source = (Path(__file__).parent / "programs" / f"{name}.py").read_text()
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


def compiled(program, chip, knobs, folder):
    """What the compiler answers."""
    import jax
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding

    devices = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[chip]).devices
    data, model = knobs.get("replicas", 1), knobs.get("tensor") or 1
    mesh = Mesh(np.array(devices[: data * model]).reshape(data, model), ("data", "model"))

    def array(shape, spec, dtype):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

    with jax.set_mesh(mesh):
        function, arguments, options = load(program).build(knobs, array)
        lowered = jax.jit(function, **options).lower(*arguments)
    wanted = {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True}
    try:
        memory = lowered.compile(compiler_options=wanted).memory_analysis()
    except jax.errors.JaxRuntimeError as error:
        return {"fits": False, "error": str(error)}
    names = [f"{name}_size_in_bytes" if name != "peak" else "peak_memory_in_bytes" for name in FIGURES]
    return {"fits": True, "error": "", **{name: getattr(memory, name) for name in names}}


if __name__ == "__main__":
    os.environ.update(ENVIRONMENT)
    told = json.loads(sys.argv[1])
    print(json.dumps(compiled(told["program"], told["chip"], told["knobs"], sys.argv[2])))
