"""`/host:CPU`: the training loop, the input pipeline, transfers, and the device allocator's events."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.demo.profile.device_plane import CONSUMER_TYPE, link_id
from tests.demo.profile.noise import Noise
from tests.demo.profile.planes import PlaneWriter, Ref, StatValue, Uint
from tests.demo.profile.schedule import V5E
from tests.demo.profile.timeline import MS, US, Launch, Step, Timeline
from tpuprof.parsers.formats.proto.xplane_pb2 import XLine

LINES_BEGIN_NS = 212_990
"""Host lines of real profiles start a little after the profile; events count from there."""

EXECUTE_TYPE = 7
"""What real profiles have in `_pt`/`_ct` between a call and the thread that carries it out."""

BATCH_BYTES = 8 * 1024 * 4
READER = "Iterator::Root::Prefetch::BatchV2::ParallelMapV2"
FILE_READ = f"{READER}::ParallelInterleaveV4::TFRecord"


@dataclass(slots=True)
class Allocator:
    """The memory of one device as its allocator reports it."""

    heap: int
    reserved: int = 0
    peak: int = 0
    live: dict[str, tuple[int, int, str]] = field(default_factory=dict)

    def stats(self, core: int) -> dict[str, StatValue]:
        """The stats that every allocation and deallocation carries."""
        self.peak = max(self.peak, self.heap + self.reserved)
        return {
            "index_on_host": core,
            "bytes_reserved": self.reserved,
            "bytes_allocated": self.heap,
            "bytes_available": V5E.hbm_capacity - self.heap - self.reserved,
            "fragmentation": 0.0012 if len(self.live) > 2 else 0.0004,
            "peak_bytes_in_use": self.peak,
        }


class HostPlane:
    """Builds the plane of one host."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.noise = Noise(timeline.spec.seed, timeline.host, 1)
        self.plane = PlaneWriter("/host:CPU", 701)
        cores = range(timeline.spec.cores)
        self.python = self._line("python", 4211)
        self.execute = [self._line("py_xla_execute", 4301 + core) for core in cores]
        self.transfer = [self._line("pjrt-tpu-tasks", 4401 + core) for core in cores]
        self.reader = self._line("tf_data_private_threadpool", 4501)
        self.prefetch = self._line("tf_data_iterator_prefetch", 4502)
        state = int(timeline.programs[0].module.facts["argument_size_in_bytes"]) - 2 * BATCH_BYTES
        self.allocators = [Allocator(state) for _ in cores]
        self.link = 4_294_967_296

    def build(self) -> PlaneWriter:
        self.plane.plane_stats(self._utilisation())
        for index, step in enumerate(self.timeline.steps):
            self._input_pipeline(index, step)
            self._loop(step)
            for core in range(self.timeline.spec.cores):
                self._transfers(step, core)
            for launch in step.launches:
                for core in range(self.timeline.spec.cores):
                    self._execution(step, launch, core)
        return self.plane

    def _utilisation(self) -> dict[str, StatValue]:
        """What hardware counters would say of the profile as a whole: the programs' work over the cores' peaks."""
        flops = hbm = 0
        for step in self.timeline.steps:
            for launch in step.launches:
                plan = self.timeline.programs[launch.program]
                flops += sum(plan.ops[op].flops for op in plan.event_ops)
                hbm += sum(plan.ops[op].traffic.hbm for op in plan.event_ops)
        seconds = (self.timeline.steps[-1].end - self.timeline.steps[0].begin) / 1e12
        return {
            "matrix_unit_utilization_percent": round(100 * flops / V5E.flops / seconds, 2),
            "hbm_utilization_percent": round(100 * hbm / V5E.hbm_bytes / seconds, 2),
        }

    def _line(self, name: str, number: int) -> XLine:
        return self.plane.line(f"{name}/{number}", number, timestamp_ns=LINES_BEGIN_NS)

    def _loop(self, step: Step) -> None:
        plane, line = self.plane, self.python
        plane.event(line, "train", step.begin, step.end, {"step_num": step.number, "_r": 1})
        plane.event(line, "IteratorGetNext", step.input_begin, step.input_end)
        plane.event(line, "batched_device_put", step.input_end + 4 * US, step.put_end - 6 * US)
        self._call("train_step", step.put_end, step.dispatch_end, step.launches[0])
        plane.event(line, "np.asarray(jax.Array)", step.dispatch_end + 12 * US, step.end - 5 * US)
        if step.evaluation:
            begin, end = step.evaluation
            plane.event(line, "evaluate", begin, end)
            called = begin + 560 * US
            self._call("eval_step", called, called + 290 * US, step.launches[1])
            plane.event(line, "np.asarray(jax.Array)", called + 300 * US, end - 5 * US)

    def _call(self, name: str, begin: int, end: int, launch: Launch) -> None:
        plane, line = self.plane, self.python
        plane.event(line, f"PjitFunction({name})", begin, end)
        plane.event(line, "ParseArguments", begin + 2 * US, begin + 31 * US)
        stats: dict[str, StatValue] = {"_pt": EXECUTE_TYPE, "_p": self.link + launch.run_id}
        plane.event(line, "TfrtTpuLoadedExecutable::Execute", begin + 40 * US, end - 8 * US, stats)

    def _input_pipeline(self, index: int, step: Step) -> None:
        """A batch is read and made ahead of the step that takes it; the slow step waits for one file read."""
        plane = self.plane
        read = int(self.noise.normal(46, 5) * MS)
        mapped = int(self.noise.normal(21, 2) * MS)
        if index == self.timeline.spec.slow_step:
            end = step.input_end - 140 * US
            begin = step.input_begin - 6 * MS
            plane.event(self.reader, READER, begin - 1 * MS, end)
            plane.event(self.reader, FILE_READ, begin, end - mapped)
        else:
            begin = step.input_begin - read - mapped - int(self.noise.normal(30, 4) * MS)
            end = begin + read + mapped
            plane.event(self.reader, READER, begin, end)
            plane.event(self.reader, FILE_READ, begin + 200 * US, begin + read)
        produced = end + 90 * US
        plane.event(self.prefetch, "Iterator::Root::Prefetch::BatchV2", end - 2 * MS, produced)
        taken = step.input_end - 24 * US
        plane.event(self.prefetch, "Iterator::Root::Prefetch", step.input_begin + 60 * US, taken)

    def _transfers(self, step: Step, core: int) -> None:
        line = self.transfer[core]
        for number, name in enumerate(("tokens", "targets")):
            begin = step.input_end + (70 + 120 * number + 9 * core) * US
            stats: dict[str, StatValue] = {"size": BATCH_BYTES, "device_ordinal": core}
            self.plane.event(line, "tpu::System::TransferToDevice", begin, begin + 64 * US, stats)
            self.plane.event(line, "Linearize", begin + 3 * US, begin + 21 * US)
            self._allocate(line, core, begin + 24 * US, name, BATCH_BYTES, "s32[8,1024]{1,0:T(8,128)}", 3)

    def _execution(self, step: Step, launch: Launch, core: int) -> None:
        line, plane = self.execute[core], self.plane
        module = self.timeline.programs[launch.program].module
        outputs = ("loss", "grad_norm") if launch.program == 0 else ("eval_loss", "eval_accuracy")
        begin = launch.begin[core] - (210 + 7 * core) * US
        end = launch.begin[core] + 90 * US
        stats: dict[str, StatValue] = {"_ct": EXECUTE_TYPE, "_c": self.link + launch.run_id}
        plane.event(line, "TfrtTpuLoadedExecutable::ExecutePrepare", begin, end, stats)
        plane.event(line, "Handle inputs", begin + 4 * US, begin + 38 * US)
        allocator = self.allocators[core]
        allocator.reserved = int(module.facts["temp_size_in_bytes"])
        for number, name in enumerate(outputs):
            self._allocate(line, core, begin + (50 + 11 * number) * US, name, 512, "f32[]{:T(128)}", 1)
        queued: dict[str, StatValue] = {
            "continuation": 1,
            "run_id": launch.run_id,
            "queue_id": 0,
            "device_ordinal": core,
            "core_type": 0,
            "_pt": CONSUMER_TYPE,
            "_p": link_id(self.timeline.host, launch.run_id, core),
        }
        plane.event(line, "DoEnqueueProgram", begin + 158 * US, end - 20 * US, queued)
        finished = launch.end[core] + (8 + core) * US
        freed = [*outputs, "tokens", "targets"] if launch.program == len(step.launches) - 1 else list(outputs)
        for number, name in enumerate(freed):
            if number == 0:
                allocator.reserved = 0
            self._free(line, core, finished + 3 * number * US, name)

    def _allocate(self, line: XLine, core: int, at: int, name: str, size: int, shape: str, data_type: int) -> None:
        allocator = self.allocators[core]
        address = V5E.hbm_capacity - allocator.heap - size
        allocator.heap += size
        allocator.live[name] = (address, size, shape)
        stats = allocator.stats(core) | {
            "requested_bytes": size,
            "allocation_bytes": size,
            "addr": address,
            "id": 0,
            "data_type": data_type,
            "shape": Ref(shape),
            "tf_op": Ref("batched_device_put" if size == BATCH_BYTES else "jit(train_step)"),
        }
        self.plane.event(line, "MemoryAllocation", at, at + 900_000, stats)

    def _free(self, line: XLine, core: int, at: int, name: str) -> None:
        allocator = self.allocators[core]
        address, size, _ = allocator.live.pop(name)
        allocator.heap -= size
        stats = allocator.stats(core) | {"requested_bytes": size, "allocation_bytes": size, "addr": address, "id": 0}
        self.plane.event(line, "MemoryDeallocation", at, at + 700_000, stats)


def host_plane(timeline: Timeline) -> PlaneWriter:
    """Builds `/host:CPU`."""
    return HostPlane(timeline).build()


def metadata_plane(timeline: Timeline) -> PlaneWriter:
    plane = PlaneWriter("/host:metadata")
    for plan in timeline.programs:
        key = (plan.module.program_id ^ 1 << 63) - (1 << 63)
        plane.new_metadata(plan.module.full_name, stats={"Hlo Proto": plan.module.proto_bytes}, key=key)
    return plane


def environment_plane(timeline: Timeline) -> PlaneWriter:
    """Builds `Task Environment`: the profile's clock, and the mark that its times are simulated."""
    plane = PlaneWriter("Task Environment")
    start = timeline.spec.profile_start_ns
    plane.plane_stats(
        {
            "profile_start_time": Uint(start),
            "profile_stop_time": Uint(start + timeline.end // 1000),
            "tpuprof_simulated": 1,
        }
    )
    return plane
