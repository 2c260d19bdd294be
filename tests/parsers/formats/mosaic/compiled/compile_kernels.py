"""Compiles the kernels of `kernels.py` for TPUs and stores what the compiler writes of them.

Run by hand, on any Linux machine, TPU or none; needs `pip install "jax[tpu]"` (made with jax 0.10.2, libtpu 0.0.42)::

    python tests/parsers/formats/mosaic/compiled/compile_kernels.py

Writes `kernels.zip`. For each kernel `NAME.hlo.pb`, the program compiled for a v5e. For those of `SCHEDULES` also their
schedule, `CHIP-NAME.llo_module.pb`, and `CHIP-NAME.json`, what the compiler's own texts say: sums and slots of the
units, and the bytes that it allocates.
"""

# mypy: ignore-errors
from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
CHIPS = {"v5e": "v5e:2x2", "v6e": "v6e:2x2"}
SCHEDULES = {"v5e": ("matmul", "attention", "gather", "spill", "wait"), "v6e": ("matmul",)}
ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
FLAGS = "--xla_jf_dump_llo_proto=true --xla_jf_dump_llo_text=true --xla_xprof_register_llo_debug_info=true"
DATED = (2026, 1, 1, 0, 0, 0)


def load():
    """The kernels under their bare file name, so that the compiler records no local path."""
    module = types.ModuleType("kernels")
    exec(compile((HERE / "kernels.py").read_text(), "kernels.py", "exec"), module.__dict__)
    return module


def compile_one(name, chip, folder):
    """Compiles one kernel in this process; the compiler's dump goes where its flags say."""
    import jax
    from jax._src.pallas.mosaic import tpu_info  # emit_pipeline asks for the chip, and there is none
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    version = {"v5e": tpu_info.ChipVersion.TPU_V5E, "v6e": tpu_info.ChipVersion.TPU_V6E}[chip]
    tpu_info.registry["cpu"] = lambda: tpu_info.get_tpu_info_for_chip(version, 1)
    devices = topologies.get_topology_desc(platform="tpu", topology_name=CHIPS[chip]).devices
    sharding = SingleDeviceSharding(devices[0])
    kernels = load()
    arguments = [jax.ShapeDtypeStruct(*each, sharding=sharding) for each in kernels.ARGUMENTS[name]]
    compiled = jax.jit(getattr(kernels, name)).lower(*arguments).compile()
    module = compiled.runtime_executable().hlo_modules()[0]
    (Path(folder) / "hlo.pb").write_bytes(module.as_serialized_hlo_module_proto())


def figures(dump, kernel):
    """What the compiler's texts say of a kernel: `kernel` is the part of the file names before the number."""
    (use,) = glob.glob(f"{glob.escape(dump)}/{kernel}-*-pre-delay_hlo-static-per-bundle-utilization.txt")
    head, rows = Path(use).read_text().split("== UTILIZATION:")
    names = [each.strip() for each in head.splitlines()[1].split(",")]
    table = [list(map(int, line.split())) for line in rows.splitlines() if line.strip()]
    texts = glob.glob(f"{glob.escape(dump)}/{kernel}-*-post-ra.txt")
    (after,) = [each for each in texts if re.search("-[0-9]+-post-ra", each)]
    listed = r"#(allocation[0-9a-z_]+) \[shape = '[^']*', space=(\w+), size = (0x[0-9a-f]+)"
    found = re.findall(listed, Path(after).read_text())
    return {
        "bundles": len(table),
        "slots": dict(zip(names, map(int, head.splitlines()[2].split()), strict=True)),
        "used": dict(zip(names, map(sum, zip(*table, strict=True)), strict=True)),
        "allocations": [[name, space, int(size, 16)] for name, space, size in found],
    }


def main():
    """Compiles each kernel in a process of its own, as libtpu wants it."""
    with zipfile.ZipFile(HERE / "kernels.zip", "w") as archive:
        for name in load().ARGUMENTS:
            for chip in CHIPS:
                if chip == "v5e" or name in SCHEDULES[chip]:
                    keep(archive, name, chip)


def keep(archive, name, chip):
    """Compiles a kernel and puts what is kept of it into the archive."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | ENVIRONMENT | {"LIBTPU_INIT_ARGS": f"--xla_jf_dump_to={folder}/dump {FLAGS}"}
        subprocess.run([sys.executable, __file__, name, chip, folder], check=True, env=environment)
        parts = {f"{name}.hlo.pb": (Path(folder) / "hlo.pb").read_bytes()} if chip == "v5e" else {}
        if name in SCHEDULES[chip]:
            dump = Path(folder) / "dump"
            files = list(dump.glob("*-llo_module.pb"))
            (schedule,) = [each for each in files if re.search(r"-[a-z_]+\.[0-9]+-[0-9]+-", each.name)]
            parts[f"{chip}-{name}.llo_module.pb"] = schedule.read_bytes()
            kernel = re.sub(r"-[0-9]+-llo_module\.pb$", "", schedule.name)
            parts[f"{chip}-{name}.json"] = json.dumps(figures(str(dump), kernel)).encode()
    for member, data in parts.items():
        archive.writestr(zipfile.ZipInfo(member, DATED), data, zipfile.ZIP_LZMA)
        print(member, f"{len(data):,} bytes", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        compile_one(*sys.argv[1:])
    else:
        main()
