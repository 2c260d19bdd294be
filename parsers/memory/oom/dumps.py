"""What the compiler left of a program that did not fit: its dump has every buffer, which the error's text has not.

A dump is a folder that ``--xla_dump_to`` named. Of a compile that failed it holds the module with its buffer
assignment, as of one that did not, and beside it ``*.oom_intermediate_module.hlo.pb``; ``*.target_arguments.pb`` says
which chip it was for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.record import dataclass, field, replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.files import HloFile, find_hlo_files, read_hlo_file
from tpuprof.parsers.memory.account.need import Known, largest_at, moments_of
from tpuprof.parsers.memory.batch.fit import batch_fit
from tpuprof.parsers.memory.batch.growth import Growth, growth_of
from tpuprof.parsers.memory.batch.known import known_of
from tpuprof.parsers.memory.batch.structure import structure_of
from tpuprof.parsers.memory.model import HBM, Buffer, Capacity, ModuleLabel, SpaceMemory
from tpuprof.parsers.memory.modules.capacity import capacity_of
from tpuprof.parsers.memory.modules.space_memory import space_memory
from tpuprof.parsers.memory.modules.target import device_of, stem_of
from tpuprof.parsers.memory.oom.advice.words import capacity
from tpuprof.parsers.memory.oom.model import OomLog, OomReport
from tpuprof.parsers.ops.frames import own_call

FAILED = ".oom_intermediate_module.hlo.pb"
"""The file that is beside a module whose compile ran out of memory."""

_HINT = "make the dump with XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'"
_LEAST, _MOST = 0.99, 1.01  # a total in a text is rounded to 10 MiB, and may count what lies between buffers
_RULED_OUT = 3  # modules that are named of those that don't belong to an error


@dataclass(frozen=True, slots=True)
class Dumped:
    """A module of a dump, with what it keeps in HBM.

    Attributes:
        place: where it was read, for people.
        failed: whether its compile ran out of memory, as the dump says.
        known: what its HLO says besides.
        growth: how its buffers grow with its batch, or why that is not known.
    """

    place: str
    memory: SpaceMemory
    failed: bool
    known: Known = field(default_factory=Known)
    growth: Growth | str = ""

    @property
    def name(self) -> str:
        return self.memory.module.name


def read_dumps(paths: Iterable[str]) -> tuple[Dumped, ...]:
    """The modules with a buffer assignment in some dumps, each of which is a folder or a file of one.

    Raises:
        ProfileError: a path can't be read, or has no module with a buffer assignment.
    """
    return tuple(dumped for path in paths for dumped in _read(os.path.expanduser(path)))


def _read(path: str) -> list[Dumped]:
    files, problem = _files(path), None
    found = []
    for file in files:
        hlo = read_hlo_file(file)
        name = hlo.proto.hlo_module.name.decode("utf-8", "replace") or file.name
        label = ModuleLabel(name, file.program_id, os.path.basename(file.path))
        stem = stem_of(file.path)
        device = device_of(file.path)
        try:
            memory = space_memory(hlo, label, HBM, capacity_of(device, HBM))
        except ProfileError as error:
            problem = error
            continue
        place = os.path.join(os.path.basename(os.path.dirname(os.path.abspath(file.path))), label.origin)
        structure = structure_of(hlo)
        growth = growth_of(hlo, memory, structure)
        known = known_of(hlo, memory, growth, structure)
        found.append(Dumped(place, memory, os.path.exists(stem + FAILED), known, growth))
    if not found:
        if problem is not None:
            raise ProfileError(problem.code, problem.sentence, _HINT, problem.exit_code)
        hint = f"tpuprof-tui memory {printable(path)} where it holds a profile; else {_HINT}"
        hint = f"tpuprof-tui oom {printable(path)}/* where it holds logs; {hint}" if os.path.isdir(path) else hint
        raise ProfileError("no_module", f"{printable(path)} holds no compiled module.", hint, EXIT_NOT_FOUND)
    return found


def _files(path: str) -> Sequence[HloFile]:
    """The modules at a path; of a file of a dump without a buffer assignment, those that stand beside it instead."""
    stem = stem_of(path)
    if os.path.isdir(path) or stem == path or not os.path.isfile(path):
        return find_hlo_files(path)
    beside = find_hlo_files(os.path.dirname(path) or ".")
    return [file for file in beside if stem_of(file.path) == stem] or find_hlo_files(path)


def with_dumps(log: OomLog, dumps: Sequence[Dumped]) -> OomLog:
    """A log whose errors have the buffers of the modules that they are about.

    A module belongs to an error of the same program, and needs as much as the error says, as far as both are known.
    What belongs to none is named in a note, and nothing of it is shown. Without any error in the log, or without a
    log, the modules whose compile failed are the errors.
    """
    if not dumps:
        return log
    if not log.reports:
        failed = [dumped for dumped in dumps if dumped.failed or (dumped.memory.headroom_bytes or 0) < 0]
        return replace(log, reports=tuple(_report_of(dumped) for dumped in failed))
    reports, used = [], set[int]()
    for report in log.reports:
        places = [place for place, dumped in enumerate(dumps) if _belongs(report, dumped)]
        used |= set(places)
        reports.append(filled(report, dumps[places[0]]) if places else report)
    return replace(log, reports=tuple(reports), notes=(*log.notes, *_left_over(log, dumps, used)))


def _left_over(log: OomLog, dumps: Sequence[Dumped], used: set[int]) -> list[str]:
    """A note on the modules that belong to no error of the log."""
    others = [dumped for place, dumped in enumerate(dumps) if place not in used and (dumped.failed or not used)]
    if not others:
        return []
    names = ", ".join(f"{printable(each.name)} ({_size(each.memory.needed_bytes)})" for each in others[:_RULED_OUT])
    names += f" and {len(others) - _RULED_OUT} more" if len(others) > _RULED_OUT else ""
    wanted = ", ".join(
        f"{printable(report.program or 'a program without a name')} ({_size(report.used_bytes)})"
        for report in log.reports[:_RULED_OUT]
        if report.memory_space == "hbm"
    )
    of = f"the log's errors are about {wanted}" if wanted else "the log has no error about HBM"
    return [f"The dump is left out: it holds {names}, and {of}, so these are different programs."]


def _size(count: int | None) -> str:
    """A size as the error's text has it, which rounds it: ``30.21 GiB``."""
    return "size unknown" if count is None else capacity(count)


def _belongs(report: OomReport, dumped: Dumped) -> bool:
    if report.kind != "compile" or report.memory_space != "hbm":
        return False
    if report.program is not None and report.program != dumped.name:
        return False
    if report.used_bytes is None:
        return report.program is not None
    memory = dumped.memory
    return _LEAST * memory.peak_bytes <= report.used_bytes <= _MOST * memory.total_allocation_bytes


def _report_of(dumped: Dumped) -> OomReport:
    """A compile that failed, by its dump alone."""
    size = f"{dumped.memory.needed_bytes:,} bytes"
    sentence = f"The dump of {printable(dumped.name)}: the program needs {size} of HBM, and its compile failed."
    return filled(OomReport("compile", "hbm", sentence, 0), dumped)


def filled(report: OomReport, dumped: Dumped) -> OomReport:
    """An error with all that the module's buffer assignment says, in bytes instead of rounded."""
    memory = dumped.memory
    known: Capacity | None = memory.capacity
    capacity = report.capacity_bytes
    if known is not None and (capacity is None or _LEAST < capacity / known.size_bytes < _MOST):
        capacity = known.size_bytes
    there = None if capacity is None else Capacity(capacity, "")
    fitting = batch_fit(replace(memory, capacity=there), dumped.growth, dumped.known).largest
    figures: dict[str, int | None] = {
        "used_bytes": memory.needed_bytes,
        "capacity_bytes": capacity,
        "exceeded_bytes": None if capacity is None else max(1, memory.needed_bytes - capacity),
        "arguments_bytes": memory.arguments_bytes,
        "output_bytes": memory.outputs_bytes,
        "shared_bytes": memory.aliased_bytes,
        "hlo_temp_bytes": memory.temporaries_bytes,
        "program_bytes": memory.needed_bytes - memory.arguments_bytes,
        "padding_bytes": memory.padding_bytes,
        "fragmentation_bytes": max(0, memory.total_allocation_bytes - memory.peak_bytes),
    }
    largest = largest_at(memory, memory.peak_position)
    unknown = {name: why for name, why in report.unknown.items() if figures.get(name) is None and name != "buffers"}
    return replace(
        report,
        program=report.program or dumped.name,
        buffers=tuple(_at_own_line(memory.buffers[row]) for row in largest),
        fragmentation=memory.fragmentation,
        dump=dumped.place,
        moments=moments_of(memory, memory.peak_position, replace(dumped.known, fitting_batch=fitting)),
        unknown=unknown,
        **figures,  # type: ignore[arg-type]  # the names are OomReport's own
    )


def _at_own_line(buffer: Buffer) -> Buffer:
    """A buffer whose source is the innermost line of the user's own code, not of a library."""
    call = own_call(buffer.stack[::-1])
    return buffer if call is None else replace(buffer, source=f"{call.file}:{call.line}")
