"""What the fence reads: profiles that our own scripts make. Each is written into a folder and gives its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.fence.reports import (
    LOOKS,
    OF_LOGS,
    OF_ONE_RUN,
    OF_PROMISES,
    OF_QUERIES,
    OF_TWO_RUNS,
    PAGES,
    TABLES,
    Call,
    copied,
    reports,
    stamped,
)
from tests.insight.cases.scenes import ALONE, SMALL
from tests.insight.simulator.code import V5E, V6E
from tests.insight.simulator.parts import Prefetch
from tests.insight.simulator.play import Chips
from tests.insight.simulator.scene import Scene, play
from tests.insight.simulator.space import spaces
from tests.insight.simulator.workloads import Decode, Train
from tests.parsers.memory.oom.read.texts import ALL as OOM_TEXTS
from tests.support.build import write_run
from tests.support.composed import slices
from tests.support.composed.sparse_cores import BOUND, HEALTHY, sparse_profile
from tests.support.files.counters import with_custom_calls, with_readings
from tests.support.files.kernels import KernelRun, with_kernels
from tests.support.gpus import cpu_profile, gpu_profile
from tests.support.made.serving import five_requests, serving_profile
from tpuprof.tui.demo import demo_path

MODULES = Path(__file__).parents[1] / "demo" / "modules"

EACH_FORMAT = (LOOKS[0], ("--width", "120", "--limit", "3"), ("--format", "json"), ("--format", "csv"), TABLES[-1])
IN_EACH_FORMAT = [
    *((page, *look) for page in PAGES for look in EACH_FORMAT),
    ("timeline", "--width", "100"),
    ("timeline", "--limit", "40", "--format", "json"),
]
"""For profiles that one feature is about; the larger ones have `OF_ONE_RUN`."""

DECODE = Scene(
    (Decode(model_parallel=False, layers=2, each=(Prefetch(count=2, rows=2048, width=1024, slowness=4),)),),
    V6E,
    cores=1,
    steps=5,
    seed=31,
    loop=ALONE,
    marks=False,
)
"""An inference with asynchronous copies that come late."""

TRAIN = Scene((Train(layers=2, overlap=False, once=SMALL),), V5E, hosts=4, cores=2, steps=4, seed=32)
FASTER = replace(TRAIN, work=(Train(layers=2, once=SMALL),), chips=Chips(speed=((3, 1.2),)), seed=33)

ON_HOST = [("load_batch", 2, 14), ("PjitFunction(step)", 20, 60), ("ThunkExecutor::Execute", 30, 58)]
ON_CPU = [("fusion.1", 30, 41), ("wrapped_tanh", 42, 57)]


def write(root: Path, name: str, *hosts: bytes) -> None:
    """Writes a log folder with one run."""
    stamped(write_run(root / name, **{f"host{number}": data for number, data in enumerate(hosts)}))


KERNELS = (
    KernelRun(flops=1 << 30),
    *(
        KernelRun(op=f"mm-bm_{size}-.1", framework_op=f"jit(f)/mm-bm_{size}-/pallas_call", program=size)
        for size in (8, 9)
    ),
)

FEATURES: Mapping[str, Callable[[], bytes]] = {
    "gpus": lambda: gpu_profile().SerializeToString(),  # which run the steps of a host
    "host-alone": lambda: cpu_profile(6, ON_HOST, ON_CPU, hlo=True).SerializeToString(),  # JAX on the CPU
    "sparse-cores": lambda: sparse_profile((HEALTHY, BOUND), chips=2).SerializeToString(),
    "kernels": lambda: with_kernels(KERNELS),  # with the spans inside them, and blocks of several sizes
    "counters": with_custom_calls,  # units' use by the microsecond, and power
    "requests": lambda: serving_profile(five_requests()).SerializeToString(),  # of a server, with their latencies
}
"""Profiles that one feature is about."""


def feature(name: str, root: Path) -> Sequence[Call]:
    """One of `FEATURES`."""
    write(root, name, FEATURES[name]())
    return reports(name, IN_EACH_FORMAT)


def simulated(scene: Scene) -> list[bytes]:
    """The profiles of a scene's hosts."""
    return spaces(scene, play(scene))


def demo(root: Path) -> Sequence[Call]:
    """Every page of the bundled profile, and queries."""
    copied(Path(demo_path()), root / "demo-run" / Path(demo_path()).name)
    return [*reports("demo-run"), *(("query", "demo-run", *query) for query in OF_QUERIES)]


def modules(root: Path) -> Sequence[Call]:
    """The pages of compiled modules, without a profile."""
    copied(MODULES, root / "modules")
    pages = [(page, *options) for page in ("memory", "graph") for options in (*LOOKS, *TABLES)]
    on_v6e = [("memory", "--module", "jit_train_step", "--device", "v6e", "--format", form) for form in ("json", "md")]
    return reports("modules", [*pages, *on_v6e])


def decode(root: Path) -> Sequence[Call]:
    """An inference on one core."""
    write(root, "decode", *simulated(DECODE))
    return reports("decode")


def truncated(root: Path) -> Sequence[Call]:
    """What is left of a profile whose second half is missing."""
    (data,) = simulated(DECODE)
    write(root, "truncated", data[: len(data) // 2])
    return reports("truncated", IN_EACH_FORMAT)


def mangled(root: Path) -> Sequence[Call]:
    """A profile that something read as text and wrote again, and one of no bytes."""
    (data,) = simulated(DECODE)
    write(root, "mangled", data.decode("utf-8", "replace").encode(), b"")
    return reports("mangled", IN_EACH_FORMAT)


def several_hosts(root: Path) -> Sequence[Call]:
    """Hosts of one run: whole ones, one cut off, one empty."""
    whole = simulated(TRAIN)
    whole[2] = whole[2][: len(whole[2]) * 2 // 3]
    write(root, "several-hosts", *whole, b"")
    one_host = [("overview", "--host", "host1", "--format", "json"), ("ops", "--host", "host9")]
    return reports("several-hosts", [*OF_ONE_RUN, *one_host])


def registers(root: Path) -> Sequence[Call]:
    """Registers of two chips, read once."""
    write(root, "registers", with_readings("TPU v7x"))
    return reports("registers", [call for call in IN_EACH_FORMAT if call[0] in ("counters", "overview", "ops")])


def two_slices(root: Path) -> Sequence[Call]:
    """A pod of two slices that exchange gradients over the data centre's network."""
    stamped(slices.write_run(root / "two-slices"))
    return reports("two-slices", IN_EACH_FORMAT)


def two_runs(root: Path) -> Sequence[Call]:
    """Two runs compared, of one program and of two different ones, and promises of findings."""
    for name, scene in (("slow", TRAIN), ("fast", FASTER), ("decode", DECODE)):
        write(root, name, *simulated(scene))
    pairs = (("slow", "fast"), ("slow", "decode"))
    promises = [("verify", before, after, *options) for before, after in pairs for options in OF_PROMISES]
    return [*(("diff", before, after, *options) for before, after in pairs for options in OF_TWO_RUNS), *promises]


def logs(root: Path) -> Sequence[Call]:
    """Out-of-memory triage of every form of error text."""
    folder = root / "logs"
    folder.mkdir()
    texts = {f"{form.replace(' ', '-')}.txt": text for form, (text, _) in OOM_TEXTS.items()}
    for name, text in texts.items():
        (folder / name).write_text(f"I0701 09:00:00.000000 1 train.py:88] step 0\n{text}\n")
    return [("oom", f"logs/{name}", *options) for name in texts for options in OF_LOGS[:4]]


PROFILES: Mapping[str, Callable[[Path], Sequence[Call]]] = {
    **{name: partial(feature, name) for name in FEATURES},
    "demo": demo,
    "modules": modules,
    "decode": decode,
    "truncated": truncated,
    "mangled": mangled,
    "several-hosts": several_hosts,
    "registers": registers,
    "two-slices": two_slices,
    "two-runs": two_runs,
    "logs": logs,
}
