"""The folder that a TPU compiler dumps its schedules into, ``--xla_jf_dump_to=DIR`` in ``LIBTPU_INIT_ARGS``.

It writes a file for each pass over each program, some hundred a kernel, ``1795560403270004771-mm.1-70-llo_module.pb``:
a time in nanoseconds, the HLO instruction, the number of the file, the pass. Only the schedules are read here, and of
these only one that is asked for, so a folder of any size opens at once.
"""

from __future__ import annotations

import os
from contextlib import closing

from tpuprof.parsers.base.errors import ProfileError, one_part, unreadable
from tpuprof.parsers.base.folders import listed
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.llo.module import LARGEST, read_schedule
from tpuprof.parsers.formats.llo.schedule import Schedule
from tpuprof.parsers.formats.xspace.source import open_source

DUMP_ARGS = (
    "--xla_jf_dump_to=DIR --xla_jf_dump_llo_proto=true --xla_jf_dump_llo_pass_label_regex=none"
    " --xla_xprof_register_llo_debug_info=true"
)
"""In ``LIBTPU_INIT_ARGS``: the compiler writes schedules with their source lines into DIR, and no text of any pass."""

_NAME = pattern(r"([0-9]{1,20})-(.{1,200})-[0-9]{2,6}-llo_module\.pb")
_ANY = pattern(r"[0-9]{1,20}-.{1,200}-[0-9]{2,6}-[a-zA-Z].{0,200}\.(?:txt|html|pb)")
_OF_RUNTIME = ("TLP", "<")
"""The program around all kernels, and what the compiler adds at its begin and end, ``<late-initialization>``."""


@dataclass(frozen=True, slots=True)
class DumpedSchedule:
    """A schedule in a dump, not read yet.

    Attributes:
        instruction: the HLO instruction that it is of, ``mm.1``.
        time_ns: when it was compiled, since 1970. Programs that differ may have instructions of one name.
        path: of the file.
        size: of the file, in bytes.
    """

    instruction: str
    time_ns: int
    path: str
    size: int

    def read(self) -> Schedule:
        """The schedule.

        Raises:
            ProfileError: the file cannot be read, is too large, or holds no schedule.
        """
        if self.size > LARGEST:
            raise ProfileError("too_large", f"{self._shown} is too large for a schedule: it has {self.size:,} bytes.")
        with (
            closing(open_source(self.path)) as source,
            one_part(f"read the schedule in {self._shown}", is_decoder=True),
        ):
            return read_schedule(source.read(0, min(source.size, LARGEST)))

    @property
    def _shown(self) -> str:
        return printable(os.path.basename(self.path))


def dumped_schedules(folder: str) -> list[DumpedSchedule]:
    """The schedules in a dump, by name and time, without what the compiler adds to each program; no file is read.

    Raises:
        ProfileError: the folder cannot be read, or holds no schedule.
    """
    found: list[DumpedSchedule] = []
    others = 0
    try:
        with listed(folder) as entries:
            for entry in entries:
                match = _NAME.fullmatch(entry.name)
                others += match is None and _ANY.fullmatch(entry.name) is not None
                if match is not None and not match[2].startswith(_OF_RUNTIME) and entry.is_file():
                    found.append(
                        DumpedSchedule(match[2], int(match[1]), os.path.join(folder, entry.name), entry.stat().st_size)
                    )
    except (OSError, ValueError) as error:
        raise unreadable(folder, error) from error
    if not found:
        sentence = f"{printable(folder)} holds no dump of a TPU compiler."
        if others:
            what = "a dump of a TPU compiler without the schedule of any kernel (…-llo_module.pb)"
            sentence = f"{printable(folder)} is {what}."
        raise ProfileError("no_schedules", sentence, f"run the program with LIBTPU_INIT_ARGS='{DUMP_ARGS}'")
    return sorted(found, key=lambda each: (each.instruction, each.time_ns))
