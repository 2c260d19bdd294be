"""The compiled modules of a run, each once, and what they need."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError, behind_wall, one_part
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.tpus import generation_of
from tpuprof.parsers.formats.hlo.files import find_hlo_files
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.memory import model
from tpuprof.parsers.memory.allocators.model import AllocatorProfile
from tpuprof.parsers.memory.batch.fit import BatchFit
from tpuprof.parsers.memory.model import HBM, Capacity, MemoryPage, ModuleLabel, ModulePeaks, SpaceMemory
from tpuprof.parsers.memory.modules.capacity import capacity_of
from tpuprof.parsers.memory.modules.space_memory import module_peaks, space_memory
from tpuprof.parsers.memory.summary import SpaceSummary, space_summary
from tpuprof.parsers.ops.core.ops import MODULES_LINE
from tpuprof.parsers.ops.device import device_info, is_gpu, is_tensor_core

_MODULE_NAME = pattern(r"^(.*)\((\d+)\)$", re.DOTALL)
_DEVICE = pattern(r"[0-9]+|GPU_[0-9]+_.*")
_NAMED = 3
"""How many modules a sentence names before it says how many more there are."""

WITHOUT_HLO = "This profile holds no compiled HLO, so {} unknown. "
LEFT_OUT = "A capture may have been asked to leave it out (enable_hlo_proto). "
NO_LIMIT = "its limit is unknown"
CPU_COMPILE = (
    "Known cause: once a process has compiled anything for its CPU, libtpu writes no TPU programs into later traces "
    "(jax-ml/jax#37533); keep CPU compiles out of the process that is traced. "
)
WITHOUT_PROFILE = (
    "Another way: set XLA_FLAGS to --xla_dump_to=DIR --xla_dump_hlo_as_proto, and open the folder with "
    "tpuprof-tui memory DIR."
)


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """Compiled modules from one place.

    Attributes:
        origin: the name of the host, folder or file.
        modules: the modules.
        ran: program id and name of each program that ran on the device; empty for files.
        device_type: such as ``TPU v5e``; None where unknown.
        platform: ``TPU``, ``GPU``, or ``CPU`` where a profile has neither; None for files.
        is_damaged: whether the profile is damaged, so that it may have lost what it lacks.
    """

    origin: str
    modules: HloModules
    ran: tuple[tuple[int, str], ...] = ()
    device_type: str | None = None
    platform: str | None = None
    is_damaged: bool = False
    is_viewer_trace: bool = False

    @classmethod
    def of(cls, trace: Trace, host: str) -> ModuleSource:
        """Finds the modules of a host's profile, and what ran on its TensorCores; parses no module."""
        cores = [plane for plane in trace.planes if is_tensor_core(plane)]
        devices = cores or [plane for plane in trace.planes if is_gpu(plane)]
        kinds = [kind for plane in devices if (kind := device_info(plane).device_type)]
        ran: dict[int, str] = {}
        for plane in cores:
            line = plane.line(MODULES_LINE)
            table = plane.event_metadata
            for row in () if line is None else table.rows(np.unique(line.events(places=False).metadata_id)):
                if row >= 0 and (match := _MODULE_NAME.match(table.name(int(row)))):
                    ran.setdefault(int(match[2]), match[1])
        kind, platform = next(iter(kinds), None), "TPU" if cores else "GPU" if devices else "CPU"
        return cls(
            host,
            HloModules.of(trace),
            tuple(ran.items()),
            kind,
            platform,
            bool(trace.losses),
            bool(trace.source.origin),
        )

    def label(self, number: int) -> ModuleLabel:
        """The label of the module with this key in `modules`; the origin of a module from a file is the file's name."""
        name, file = self.modules.names[number] or "module", self.modules.files.get(number)
        place = (number, self.origin) if file is None else (file.program_id, os.path.basename(file.path))
        return ModuleLabel(name, *place)


class CompiledModules:
    """The compiled modules of some places, each once: where several hosts have a program, the first host's counts.

    Several threads may ask for figures at a time.

    Args:
        sources: the places.
        reported: returns the HBM's capacity as its allocator reports it; called where the device's type does not
            determine it.
        poll: called between modules; raises to end the work.
        notes: sentences on places that cannot be read.
    """

    def __init__(
        self,
        sources: Sequence[ModuleSource],
        reported: Callable[[], Capacity | None] = lambda: None,
        poll: Callable[[], None] = lambda: None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.sources = tuple(sources)
        self._reported = reported
        self._notes = notes
        self.device_type = next((source.device_type for source in sources if source.device_type), None)
        self._poll = poll
        self._places: dict[ModuleLabel, tuple[ModuleSource, int]] = {}
        self._peaks: dict[ModuleLabel, ModulePeaks] = {}
        self._last: tuple[ModuleLabel, int, SpaceMemory] | None = None
        known: set[tuple[int | None, str]] = set()
        for source in self.sources:
            for number in source.modules.names:
                label = source.label(number)
                if label.program_id is None or (label.program_id, label.name) not in known:
                    self._places.setdefault(label, (source, number))
                    known |= {(label.program_id, label.name)}

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that modules come from; without a profile the folders and files, which stand in for them."""
        hosts = [source.origin for source in self.sources if source.platform is not None]
        return tuple(dict.fromkeys(hosts or [source.origin for source in self.sources]))

    @property
    def places(self) -> Mapping[ModuleLabel, tuple[ModuleSource, int]]:
        """Where each module comes from, and its key there."""
        return self._places

    def page(self) -> MemoryPage:
        """All modules with their peaks; it must parse each of them."""
        modules = []
        for label in self._places:
            self._poll()
            modules.append(self.peaks(label))
        modules.sort(key=lambda module: (module.problem is not None, -module.peaks.get(HBM, 0), str(module.module)))
        return MemoryPage(
            modules=tuple(modules),
            hosts=self.hosts,
            device_type=self.device_type,
            why_no_modules=None if modules else self.why_none("buffers are"),
            warnings=self.warnings(),
        )

    def peaks(self, label: ModuleLabel) -> ModulePeaks:
        known = self._peaks.get(label)
        if known is None:
            source, number = self._places[label]
            module = source.modules.module(number)
            if module is None:
                known = ModulePeaks(label, {}, source.modules.problem(number) or "")
            else:
                failed: list[str] = []
                found = behind_wall(_find_memory(label), partial(module_peaks, module, label), failed, is_decoder=True)
                known = found or ModulePeaks(label, {}, failed[0])
            self._peaks[label] = known
        return known

    def find(self, wanted: str) -> ModuleLabel:
        """Finds a module by ``name`` or ``name(program id)``; of several it takes the one with the largest HBM peak.

        Raises:
            ProfileError: `unknown_module`, exit code 3.
        """
        chosen = [label for label in self._places if wanted in (str(label), label.name, label.origin)]
        if not chosen:
            names = ", ".join(str(label) for label in list(self._places)[:10]) or "none"
            raise ProfileError("unknown_module", f"There is no module {wanted}.", f"one of: {names}", EXIT_NOT_FOUND)
        return max(chosen, key=lambda label: self.peaks(label).peaks.get(HBM, 0))

    def space(self, label: ModuleLabel, space: int) -> SpaceMemory:
        """One memory space of a module. It keeps the last one.

        Raises:
            ProfileError: the module can't be read, or has no buffer assignment.
        """
        last = self._last
        if last is not None and last[:2] == (label, space):
            return last[2]
        source, number = self._places[label]
        module = source.modules.module(number)
        if module is None:
            raise ProfileError("damaged_module", source.modules.problem(number) or f"{label} can't be read.")
        capacity = capacity_of(source.device_type or self.device_type, space)
        if capacity is None and space == HBM and source.platform in ("TPU", "GPU"):
            capacity = self._reported()
        with one_part(_find_memory(label), is_decoder=True):
            made = _placed(source, space_memory(module, label, space, capacity))
        self._last = (label, space, made)
        return made

    def summary(self, memory: SpaceMemory) -> SpaceSummary | None:
        """What a memory space comes to; None where its module can't be read any more."""
        source, number = self._places[memory.module]
        module = source.modules.module(number)
        if module is None:
            return None
        what, failed = f"account for the memory of {printable(str(memory.module))}", list[str]()
        found = behind_wall(what, partial(space_summary, module, memory), failed)
        return found or SpaceSummary(None, None, BatchFit(unknown=failed[0]))

    def figures(self, label: ModuleLabel, space: int) -> SpaceMemory | str:
        """One memory space of a module, or the sentence on why it has none."""
        try:
            return self.space(label, space)
        except ProfileError as error:
            return error.sentence

    def asked(self, module: str | None = None, space: str | None = None) -> SpaceMemory | str:
        """The memory space that is asked for, or why there is none.

        Args:
            module: ``name``, or ``name(program id)``; None for the one with the largest peak.
            space: in lower case; None for HBM, or the first that the module uses where it uses none.

        Raises:
            ProfileError: there is no such module or space.
        """
        page = self.page()
        if not page.modules:
            return page.why_no_modules or ""
        label = (page.first or page.modules[0]).module if module is None else self.find(module)
        peaks = self.peaks(label)
        if peaks.problem is not None:
            return peaks.problem
        numbers = {name.lower(): number for number, name in model.SPACE_NAMES.items()}
        if space is not None and space not in numbers:
            sentence = f"There is no memory space {printable(space)}."
            raise ProfileError("usage", sentence, f"one of: {', '.join(numbers)}", EXIT_USAGE)
        return self.figures(label, first_space(peaks.peaks) if space is None else numbers[space])

    def why_none(self, what: str) -> str:
        """Why there are no modules, so that what is unknown, and what to do about it.

        Args:
            what: such as ``buffers are``.
        """
        without_hlo = WITHOUT_HLO.format(what)
        if all(source.is_viewer_trace for source in self.sources):
            return f"{without_hlo}A trace for a viewer never holds it; the .xplane.pb beside it may. {WITHOUT_PROFILE}"
        if any(source.is_damaged for source in self.sources):
            return f"{without_hlo}The file is damaged, so the HLO may be lost. {WITHOUT_PROFILE}"
        is_tpu = any(source.platform == "TPU" for source in self.sources)
        return f"{without_hlo}{LEFT_OUT}{CPU_COMPILE * is_tpu}{WITHOUT_PROFILE}"

    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the places, and which programs ran whose modules none of them has."""
        sentences = list(self._notes)
        for source in self.sources:
            sentences += _missing(source) if self._places else ()
            if source.platform == "CPU" and source.modules.names:
                sentences.append(f"{source.origin} has no device: its modules use the host's memory")
        return tuple(sentences)


def _find_memory(label: ModuleLabel) -> str:
    return f"find the memory of {printable(str(label))}"


def _missing(source: ModuleSource) -> list[str]:
    """A sentence on the programs that ran and are not in the profile, or none."""
    missing = [name for number, name in source.ran if number not in source.modules.names]
    lost = "; its file is damaged" if source.is_damaged else ""
    if not missing:
        is_empty = not source.modules.names and source.platform is not None
        return [f"{source.origin} holds no compiled HLO{lost}"] if is_empty else []
    words = ", ".join(missing[:_NAMED]) + f" and {len(missing) - _NAMED} more" * (len(missing) > _NAMED)
    sentence = f"{source.origin} ran {words}, whose compiled HLO is not in the profile{lost}"
    is_known = len(missing) == len(source.ran) and not lost
    return [f"{sentence}. {CPU_COMPILE.strip()}" if is_known else sentence]


def _placed(source: ModuleSource, made: SpaceMemory) -> SpaceMemory:
    """A memory space with what its module's place adds: its name, and why its capacity is unknown."""
    is_limited = made.space in (HBM, model.VMEM, model.SMEM)
    if source.platform == "CPU" and made.space == HBM:
        why = "other processes use it too"
        made = replace(made, own_name="host memory", unknown={**made.unknown, "capacity": why})
    elif made.capacity is None and (source.platform is None or not is_limited):
        why = "--device v5e sets it" if is_limited else NO_LIMIT
        made = replace(made, unknown={**made.unknown, "capacity": why})
    if made.space == model.SPARSE_CORE and generation_of(source.device_type) == "TPU v5e":
        sentence = "TPU v5e has no SparseCore; XProf calls memory space 6 this, whatever it is here."
        made = replace(made, warnings=(*made.warnings, sentence))
    return made


def files_in_run(folder: str) -> ModuleSource | None:
    """The HLO modules that XProf left beside a run's profiles; None where there are none."""
    try:
        files = find_hlo_files(folder) if os.path.isdir(folder) else ()
    except ProfileError:  # texts of a dump, or a folder that is gone: the profile stands without them
        files = ()
    return ModuleSource(os.path.basename(folder), HloModules.from_files(files)) if files else None


def first_space(peaks: Mapping[int, int]) -> int:
    """HBM, or the first memory space that a module uses where it uses no HBM."""
    return HBM if HBM in peaks or not peaks else min(peaks)


def reported_capacity(allocators: Iterable[AllocatorProfile]) -> Capacity | None:
    """The smallest capacity that a device's allocator reported (``0``, ``GPU_0_bfc``); None where none did."""
    of_devices = (allocator.capacity_bytes for allocator in allocators if _DEVICE.fullmatch(allocator.id))
    smallest = min(filter(None, of_devices), default=None)
    return None if smallest is None else Capacity(smallest, "reported by the allocator")
