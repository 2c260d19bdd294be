"""The programs of a profile. It finds all at once, and parses a compiled HLO module when a caller asks for it.

TPU profiles carry each program's `HloProto` in the metadata of plane ``/host:metadata``: a stat ``Hlo Proto`` (older
writers: ``HLO Proto``) of event metadata named ``jit_step(123)``, whose program id is its stat ``program_id``, else its
own metadata id. Files of their own hold modules too, see `tpuprof.parsers.formats.hlo.files`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.errors import ProfileError, one_part
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.xspace.metadata import KIND_BYTES, KIND_STR
from tpuprof.parsers.formats.xspace.trace import Plane, Trace

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.files import HloFile

METADATA_PLANE = "/host:metadata"

_PROTO_STATS = ("Hlo Proto", "HLO Proto")
_PROGRAM_ID = "program_id"
_UINT64 = 2**64 - 1
_INTEGERS = (3, 4)  # uint64, int64

_Load = Callable[[str], "HloModule | str"]
"""Loads a program, given how to call it: the module, or a sentence that says why there is none."""


def _stored(body: bytes, begin: int, length: int, label: str) -> HloModule | str:
    """The module whose encoded `HloProto` takes `length` bytes of `body` from `begin` on."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - programs are listed without

    from tpuprof.parsers.formats.proto import hlo_pb2  # noqa: PLC0415

    try:
        proto = hlo_pb2.HloProto.FromString(body[begin : begin + length])
    except DecodeError:
        return f"The compiled HLO of {label} is damaged: its {length:,} bytes do not read as an HloProto."
    if not proto.hlo_module.computations:
        return f"The compiled HLO of {label} is empty: it has no computations."
    return HloModule(proto)


def _in_file(file: HloFile, is_whole: bool, _: str) -> HloModule:
    """A module in a file of its own, which the sentence of an error names."""
    from tpuprof.parsers.formats.hlo.files import read_hlo_file, read_whole_module  # noqa: PLC0415 - protobuf

    return read_whole_module(file) if is_whole else read_hlo_file(file)


def _loaded(load: _Load, label: str) -> HloModule | str:
    """The module, or a sentence that says why there is none, whatever the reason is."""
    try:
        with one_part(f"read the compiled HLO of {printable(label)}", is_decoder=True):
            return load(label)
    except ProfileError as error:
        return error.sentence


class HloModules:
    """The compiled programs of one trace, by program id (unsigned; a signed one is taken as well), or those of files.

    `module` and `problem` parse a program when they are first asked for it. Several threads may ask at a time. It stays
    usable after the trace is closed.

    Attributes:
        names: program id to module name (``jit_step``), ascending; empty text where the profile gives none.
        files: program id to the file that has it, of `from_files`; empty for a trace. Where the file does not say its
            program id, the key is a number made up here and `HloFile.program_id` is None.
    """

    def __init__(self, programs: Mapping[int, tuple[str, _Load]], files: Mapping[int, HloFile] | None = None) -> None:
        ordered = dict(sorted(programs.items()))
        self.names: Mapping[int, str] = MappingProxyType({program: name for program, (name, _) in ordered.items()})
        self.files: Mapping[int, HloFile] = MappingProxyType(dict(sorted((files or {}).items())))
        self._loads = {program: load for program, (_, load) in ordered.items()}
        self._parsed: dict[int, HloModule | str] = {}
        self._whole: dict[int, HloModule | str] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, trace: Trace) -> HloModules:
        """Finds the programs of a trace; it reads the metadata and parses no program."""
        programs: dict[int, tuple[str, _Load]] = {}
        for plane in trace.planes:
            if plane.name == METADATA_PLANE:
                for program, name, load in _programs(plane):
                    programs.setdefault(program, (name, load))
        return cls(programs)

    @classmethod
    def from_files(cls, files: Iterable[HloFile]) -> HloModules:
        """The modules of files, without reading any yet.

        A file keeps its program id where that is known and no earlier file has it; the others are numbered 0, 1, …
        in their order, past the ids that are taken.
        """
        keys: dict[int, HloFile] = {}
        unnumbered = []
        for file in files:
            if file.program_id is None or file.program_id in keys:
                unnumbered.append(file)
            else:
                keys[file.program_id] = file
        free = (number for number in itertools.count() if number not in keys)
        keys |= dict(zip(free, unnumbered, strict=False))
        return cls({key: (file.name, partial(_in_file, file, False)) for key, file in keys.items()}, keys)

    def module(self, program_id: int) -> HloModule | None:
        """The program's module; None where the profile has none or it is damaged, see `problem`."""
        module = self._find(program_id & _UINT64)
        return None if isinstance(module, str) else module

    def problem(self, program_id: int) -> str | None:
        """Why there is no module for a program, one plain sentence; None where there is one."""
        module = self._find(program_id & _UINT64)
        return module if isinstance(module, str) else None

    def whole(self, program_id: int) -> HloModule | str:
        """The program's module with all that its instructions take, or a sentence that says why there is none.

        It is that of `module`, except for a module out of texts, where other texts hold this.
        """
        program_id &= _UINT64
        file = self.files.get(program_id)
        if file is None or not file.path.endswith(".txt"):
            return self._find(program_id)
        with self._lock:
            if program_id not in self._whole:
                self._whole[program_id] = _loaded(partial(_in_file, file, True), file.name)
            return self._whole[program_id]

    def _find(self, program_id: int) -> HloModule | str:
        load = self._loads.get(program_id)
        if load is None:
            where = "None of the files holds" if self.files else "The profile does not hold"
            return f"{where} the compiled HLO of program {program_id}."
        with self._lock:
            if program_id not in self._parsed:
                self._parsed[program_id] = _loaded(load, self.names[program_id] or f"program {program_id}")
            return self._parsed[program_id]


def module_of(modules: Iterable[HloModules], program_id: int) -> HloModule | None:
    """A program's module, of the first trace that holds it undamaged; None where none does."""
    found = (known.module(program_id) for known in modules if program_id in known.names)
    return next((module for module in found if module is not None), None)


def _programs(plane: Plane) -> Iterator[tuple[int, str, _Load]]:
    """Program id, module name and how to load each proto of a plane, from the encoded metadata alone."""
    ids = plane.stat_ids((*_PROTO_STATS, _PROGRAM_ID))
    protos = [index for index, name in enumerate(ids) if name in _PROTO_STATS]
    if not protos:
        return
    numbers = [index for index, name in enumerate(ids) if name == _PROGRAM_ID]
    table = plane.event_metadata
    fields = table.stats(np.array(list(ids.values()), np.int64))
    for row in range(len(table)):
        index = next((index for index in protos if fields.kind[index, row] in (KIND_BYTES, KIND_STR)), None)
        if index is None:
            continue
        told = (int(fields.value[number, row]) for number in numbers if fields.kind[number, row] in _INTEGERS)
        program = next(told, int(table.ids[row]))
        load = partial(_stored, table.body, int(fields.value[index, row]), int(fields.length[index, row]))
        yield program & _UINT64, module_name(table.name(row)), load


def module_name(label: str) -> str:
    """``jit_step`` of ``jit_step(123)``; a name without an id stays as it is."""
    name, bracket, number = label.rpartition("(")
    return name if bracket and number.endswith(")") and number[:-1].lstrip("-").isdigit() else label
