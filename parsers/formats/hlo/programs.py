"""The programs of a profile. It finds all at once, and parses a compiled HLO module when a caller asks for it.

TPU profiles carry each program's `HloProto` in the metadata of plane ``/host:metadata``: a stat ``Hlo Proto`` (older
writers: ``HLO Proto``) of event metadata named ``jit_step(123)``, whose program id is its stat ``program_id``, else its
own metadata id. Files of their own hold modules too, see `tpuprof.parsers.formats.hlo.files`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np
from google.protobuf.message import DecodeError

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.xspace.metadata import KIND_BYTES, KIND_STR
from tpuprof.parsers.formats.xspace.trace import Plane, Trace

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.files import HloFile
    from tpuprof.parsers.formats.hlo.modules import HloModule

METADATA_PLANE = "/host:metadata"

_PROTO_STATS = ("Hlo Proto", "HLO Proto")
_PROGRAM_ID = "program_id"
_UINT64 = 2**64 - 1
_INTEGERS = (3, 4)  # uint64, int64


class _Place(Protocol):
    """The place of a program's proto."""

    def load(self, label: str) -> HloModule | str:
        """The module, or a sentence about `label` that says why there is none."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """A proto in the metadata's bytes."""

    body: bytes
    begin: int
    length: int

    def load(self, label: str) -> HloModule | str:
        """See `_Place.load`."""
        from tpuprof.parsers.formats.hlo.modules import HloModule  # noqa: PLC0415 - programs are listed without the parser
        from tpuprof.parsers.formats.proto import hlo_pb2  # noqa: PLC0415

        try:
            proto = hlo_pb2.HloProto.FromString(self.body[self.begin : self.begin + self.length])
        except DecodeError:
            return f"The compiled HLO of {label} is damaged: its {self.length:,} bytes do not read as an HloProto."
        if not proto.hlo_module.computations:
            return f"The compiled HLO of {label} is empty: it has no computations."
        return HloModule(proto)


@dataclass(frozen=True, slots=True)
class _InFile:
    """A proto in a file of its own."""

    file: HloFile

    def load(self, label: str) -> HloModule | str:
        """See `_Place.load`; the sentence names the file."""
        from tpuprof.parsers.formats.hlo.files import read_hlo_file  # noqa: PLC0415

        try:
            return read_hlo_file(self.file)
        except ProfileError as error:
            return error.sentence


class HloModules:
    """The compiled programs of one trace, by program id (unsigned; a signed one is taken as well), or those of files.

    `module` and `problem` parse a program when they are first asked for it. Several threads may ask at a time. It stays
    usable after the trace is closed.

    Attributes:
        names: program id to module name (``jit_step``), ascending; empty text where the profile gives none.
        files: program id to the file that has it, of `from_files`; empty for a trace. Where the file does not tell its
            program id, the key is a number made up here and `HloFile.program_id` is None.
    """

    def __init__(
        self, names: Mapping[int, str], stored: Mapping[int, _Place], files: Mapping[int, HloFile] | None = None
    ) -> None:
        self.names: Mapping[int, str] = MappingProxyType(dict(sorted(names.items())))
        self.files: Mapping[int, HloFile] = MappingProxyType(dict(sorted((files or {}).items())))
        self._stored = dict(stored)
        self._parsed: dict[int, HloModule | str] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, trace: Trace) -> HloModules:
        """Finds the programs of a trace; it reads the metadata and parses no program."""
        names: dict[int, str] = {}
        stored: dict[int, _Stored] = {}
        for plane in trace.planes:
            if plane.name != METADATA_PLANE:
                continue
            for program, name, place in _programs(plane):
                if program not in stored:
                    names[program], stored[program] = name, place
        return cls(names, stored)

    @classmethod
    def from_files(cls, files: Iterable[HloFile]) -> HloModules:
        """The modules of files, without reading any yet.

        A file keeps its program id where that is known and no earlier file has it; the others are numbered 0, 1, …
        in their order, past the ids that are taken.
        """
        listed = tuple(files)
        keys: dict[int, HloFile] = {}
        unnumbered = []
        for file in listed:
            if file.program_id is None or file.program_id in keys:
                unnumbered.append(file)
            else:
                keys[file.program_id] = file
        number = 0
        for file in unnumbered:
            while number in keys:
                number += 1
            keys[number] = file
        names = {key: file.name for key, file in keys.items()}
        return cls(names, {key: _InFile(file) for key, file in keys.items()}, keys)

    def module(self, program_id: int) -> HloModule | None:
        """The program's module; None where the profile has none or it is damaged, see `problem`."""
        module = self._find(program_id & _UINT64)
        return None if isinstance(module, str) else module

    def problem(self, program_id: int) -> str | None:
        """Why there is no module for a program, one plain sentence; None where there is one."""
        module = self._find(program_id & _UINT64)
        return module if isinstance(module, str) else None

    def _find(self, program_id: int) -> HloModule | str:
        place = self._stored.get(program_id)
        if place is None:
            where = "None of the files holds" if self.files else "The profile does not hold"
            return f"{where} the compiled HLO of program {program_id}."
        with self._lock:
            if program_id not in self._parsed:
                self._parsed[program_id] = place.load(self.names[program_id] or f"program {program_id}")
            return self._parsed[program_id]


def _programs(plane: Plane) -> Iterator[tuple[int, str, _Stored]]:
    """Program id, module name and place of each proto of a plane, from the encoded metadata alone."""
    ids = plane.stat_ids((*_PROTO_STATS, _PROGRAM_ID))
    protos = [name for name in _PROTO_STATS if name in ids]
    if not protos:
        return
    table = plane.event_metadata
    fields = table.stats(np.array(list(ids.values()), np.int64))
    index_of = {name: index for index, name in enumerate(ids)}
    for row in range(len(table)):
        holds = [name for name in protos if fields.kind[index_of[name], row] in (KIND_BYTES, KIND_STR)]
        if not holds:
            continue
        program = int(table.ids[row])
        if _PROGRAM_ID in index_of and fields.kind[index_of[_PROGRAM_ID], row] in _INTEGERS:
            program = int(fields.value[index_of[_PROGRAM_ID], row])
        index = index_of[holds[0]]
        place = _Stored(table.body, int(fields.value[index, row]), int(fields.length[index, row]))
        yield program & _UINT64, module_name(table.name(row)), place


def module_name(label: str) -> str:
    """``jit_step`` of ``jit_step(123)``; a name without an id stays as it is."""
    name, bracket, number = label.rpartition("(")
    return name if bracket and number.endswith(")") and number[:-1].lstrip("-").isdigit() else label
