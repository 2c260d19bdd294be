"""Fingerprints of a compiled program: whether two compiles made the same one.

What people and tools call things is left out: metadata, frontend attributes, tables of files, names. An instruction
stands for its name by its place in its computation, a computation by the fingerprint of what it holds. So the order in
which computations are written does not matter, nor does one that nothing calls.

A text and a proto of one compile have different fingerprints: a text leaves out the values of large constants and
prints others as decimals, a proto holds fields that no text prints, and what is read of a text here are not all its
attributes. `Fingerprint.of` says which it was, and only those of one form compare.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import Damaged
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import COMPUTATION, INSTRUCTION
from tpuprof.parsers.formats.mosaic.entries import code_of
from tpuprof.parsers.formats.mosaic.spec import module_bytes
from tpuprof.parsers.formats.xspace.core.api import split_fields
from tpuprof.parsers.formats.xspace.walk import text

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

OF_TEXT, OF_PROTO = "text", "proto"

_OPCODE = pattern(r" [a-z][a-z0-9-]{0,60}\(")
_NAME = pattern(r'"(?:[^"\\]|\\.)*"|/\*index=\d+\*/|%?[A-Za-z_][\w.\-]*')
_ASYNC = pattern(r" async-(start|update|done)\(%?([^\s,()]+)\)(?:, calls=%?([^\s,]+))?")
_WRAPPED = pattern(r" ([a-z][a-z0-9-]{0,60})\([^()]*\)(.*)")
_IN_BRACES = r'(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{DEEPER\})*'
_DEEP = _IN_BRACES.replace("DEEPER", _IN_BRACES.replace("DEEPER", _IN_BRACES.replace("DEEPER", "")))
_UNSAID = pattern(rf",? (?:metadata|frontend_attributes|origin|original_value)=\{{{_DEEP}\}}")
"""Attributes that hold only names and places of the source."""

_INDEX = pattern(r"/\*index=\d+\*/")
_CONFIG = ", backend_config="
_ELIDED = "constant({...})"

_NAMES_OF_INSTRUCTION = ("name", "id", "metadata", "frontend_attributes")
_EDGES = ("operand_ids", "control_predecessor_ids", "called_computation_ids")
_CONFIGS = ("backend_config", "backend_config_payload")
_UNSAID_FIELDS = (82, 88)  # what shows statistics, and the value as it was before it was rewritten
_COMPARISON_TYPE, _COMPARISON_ORDER = 72, 102
_ORDERS = {b"FLOAT": b"PARTIAL", b"FLOAT_TOTAL_ORDER": b"TOTAL", b"SIGNED": b"TOTAL", b"UNSIGNED": b"TOTAL"}
"""How a comparison orders numbers: older compilers write the type, newer ones the order."""

_OF_MODULE = ("input_output_alias", "buffer_donor", "device_assignment")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a compiled program is known by.

    Attributes:
        canonical: 16 hexadecimal digits of all that the compiler decided; equal for the same program.
        structure: the same without the backend's configurations, which hold tiles and sizes of scoped memory; with the
            code of kernels.
        of: ``text`` or ``proto``, what they were computed from; those of one form compare.
        constants: 16 hexadecimal digits of the values of its constants, as far as they are seen.
        unseen_constants: large constants whose values a text does not hold, so a change of them is not seen.
    """

    canonical: str
    structure: str
    of: str
    constants: str
    unseen_constants: int


@dataclass(slots=True)
class _Digests:
    """Canonical and structural digest of one computation, or of a module, while it is read."""

    canonical: hashlib.blake2b
    structure: hashlib.blake2b

    @classmethod
    def empty(cls) -> _Digests:
        return cls(hashlib.blake2b(digest_size=8), hashlib.blake2b(digest_size=8))

    def take(self, said: bytes, called: Iterable[_Digests | None], config: str = "") -> None:
        """Adds an instruction: what it says, what it calls (None where that is missing), and its configuration."""
        kernel, rest = kernel_and_rest(config)
        known = b"%d:%b%d:%b" % (len(said), said, len(kernel), kernel)
        self.structure.update(known)
        self.canonical.update(b"%b%d:%b" % (known, len(rest), rest))
        for each in called:
            self.canonical.update(each.canonical.digest() if each is not None else b"?")
            self.structure.update(each.structure.digest() if each is not None else b"?")

    def result(self, of: str, constants: Iterable[bytes], unseen: int = 0) -> Fingerprint:
        values = hashlib.blake2b(b"\n".join(sorted(constants)), digest_size=8).hexdigest()
        return Fingerprint(self.canonical.hexdigest(), self.structure.hexdigest(), of, values, unseen)


class TextFingerprint:
    """Reads a compiled text line by line; `result` is its fingerprint."""

    def __init__(self) -> None:
        self._known: dict[str, _Digests] = {}
        self._head, self._entry, self._unseen = "", "", 0
        self._constants: list[bytes] = []
        self._computation: str | None = None
        self._sign = ""  # before names, where the text has one: an attribute may be called as an instruction is
        self._alone: dict[str, tuple[str, str]] = {}  # opcode and attributes of a computation's only instruction
        self._waiting: list[tuple[str, str, str]] = []

    def take(self, line: str) -> None:
        """Takes the next line; one that is no computation's but the module's head does not count."""
        if self._computation is not None:
            if line.startswith("}"):
                self._end()
            elif match := INSTRUCTION.match(line):
                self._waiting.append((match[1] or "", match[2], match[3]))
        elif line.startswith("HloModule "):
            self._head = _UNSAID.sub("", line.rstrip("\n").partition(",")[2])
        elif match := COMPUTATION.match(line):
            self._computation, self._sign = match[2], "%" if "%" in line else ""
            self._entry = match[2] if match[1] or not self._entry else self._entry

    def result(self) -> Fingerprint | None:
        """The fingerprint; None where the text held no whole program, or was cut before its end."""
        if self._entry not in self._known or self._computation is not None:
            return None
        whole = _Digests.empty()
        whole.take(_bytes(self._head), [self._known[self._entry]])
        return whole.result(OF_TEXT, self._constants, self._unseen)

    def _end(self) -> None:
        """The computation is whole: its instructions stand for their names from here on."""
        places = {name: place for place, (_, name, _) in enumerate(self._waiting)}
        digests, wrapped = _Digests.empty(), dict[str, str]()
        for root, name, line in self._waiting:
            self._unseen += _ELIDED in line
            said, _, config = self._sugared(name, line.rstrip("\n"), wrapped).partition(_CONFIG)
            called: list[_Digests | None] = []
            opcode = _OPCODE.search(said)
            begin = opcode.end() if opcode else 0
            plain = _UNSAID.sub("", said[begin:])
            plain = _NAME.sub(lambda found: self._unnamed(found[0], places, called), plain)  # noqa: B023
            whole = _bytes(f"{root}{_INDEX.sub('', said[:begin])}{plain}")
            self._constants += [whole] if " constant(" in said[:begin] else []
            digests.take(whole, called, config)
        self._known[self._computation or ""] = digests
        own = [said for _, _, said in self._waiting if " parameter(" not in said]
        if len(own) == 1 and (match := _WRAPPED.search(own[0].partition(_CONFIG)[0])):
            self._alone[self._computation or ""] = match[1], _UNSAID.sub("", match[2].rstrip("\n"))
        self._computation, self._waiting = None, []

    def _sugared(self, name: str, said: str, wrapped: dict[str, str]) -> str:
        """An asynchronous instruction as ``as_text()`` writes it, ``slice-start``; a dump writes what it calls apart.

        Args:
            wrapped: the opcode inside of each asynchronous instruction of the computation so far; it is added to.
        """
        if (match := _ASYNC.search(said)) is None:
            return said
        opcode, attributes = self._alone.get(match[3] or "", (wrapped.get(match[2], ""), ""))
        if not opcode:
            return said
        wrapped[name] = opcode
        inside = f" {opcode}-{match[1]}{said[match.start(1) + len(match[1]) : match.end()]}"
        return said[: match.start()] + inside.partition(", calls=")[0] + attributes + said[match.end() :]

    def _unnamed(self, word: str, places: Mapping[str, int], called: list[_Digests | None]) -> str:
        """What stands for a word: a place for an instruction, and for a computation its digests in `called`."""
        name = word.removeprefix("%")
        if name in places and word.startswith(self._sign):
            return f"%{places[name]}"
        if (name in self._known and word.startswith(self._sign)) or word != name:
            called.append(self._known.get(name))
            return "%"
        return "" if word.startswith("/*") else word


def fingerprint(module: HloModule) -> Fingerprint:
    """The fingerprint of a program's proto, in time linear in its size."""
    proto = module.proto.hlo_module
    known: dict[int, _Digests] = {}
    constants: list[bytes] = []
    for computation in proto.computations:
        instructions = list(module.in_order(computation))
        places = {instruction.id: place for place, instruction in enumerate(instructions)}
        digests = known[computation.id] = _Digests.empty()
        for instruction in instructions:
            takes = [places.get(each, -1) for each in instruction.operand_ids]
            waits = [places.get(each, -1) for each in instruction.control_predecessor_ids]
            said = _bytes(f"{takes} {waits} {instruction.id == computation.root_id} ") + _said(instruction)
            called = [known.get(each) for each in instruction.called_computation_ids]
            constants += [said] if instruction.opcode == b"constant" else []
            digests.take(said, called, text(module.backend_config(instruction)))
    whole = _Digests.empty()
    whole.take(b"".join(_of_module(proto)), [known.get(proto.entry_computation_id)])
    return whole.result(OF_PROTO, constants)


def _said(instruction: hlo_pb2.HloInstructionProto) -> bytes:
    """All that an instruction's proto holds but names, edges and configuration; fields that are not known here too."""
    rest = type(instruction)()
    rest.CopyFrom(instruction)
    for field in (*_NAMES_OF_INSTRUCTION, *_EDGES, *_CONFIGS):
        rest.ClearField(field)
    if not any(rest.precision_config.operand_precision):
        rest.precision_config.ClearField("operand_precision")  # the default, which not every writer states
    return _told(rest.SerializeToString(deterministic=True))


def _told(fields: bytes) -> bytes:
    """Encoded fields, known here or not, without empty ones and those of names alone."""
    parts = split_fields(fields)
    sizes = zip(parts.number.tolist(), parts.begin.tolist(), parts.end.tolist(), strict=True)
    told = [(key, fields[begin:end]) for key, begin, end in sizes if end > begin and key not in _UNSAID_FIELDS]
    return b"".join(
        b"%d:%b" % ((_COMPARISON_ORDER, _ORDERS.get(value, value)) if key == _COMPARISON_TYPE else (key, value))
        for key, value in told
    )


def _of_module(proto: hlo_pb2.HloModuleProto) -> Iterator[bytes]:
    """What a module says beside its computations: layouts of its arguments and results, aliases, devices."""
    shapes = type(proto.host_program_shape)()
    shapes.CopyFrom(proto.host_program_shape)
    shapes.ClearField("parameter_names")
    yield shapes.SerializeToString(deterministic=True)
    for field in _OF_MODULE:
        yield getattr(proto, field).SerializeToString(deterministic=True)


def kernel_and_rest(config: str) -> tuple[bytes, bytes]:
    """Of a configuration the code of its kernel, without places of the source, and the rest.

    Keys are put in order, which writers do not keep. What is no JSON stays as it is.
    """
    if not config:
        return b"", b"{}"
    try:
        said = json.loads(config)
        call = said.get("custom_call_config") if isinstance(said, dict) else None
        body = call.pop("body", None) if isinstance(call, dict) else None
        rest = _bytes(json.dumps(said, sort_keys=True))
    except (ValueError, RecursionError):
        return b"", _bytes(config)
    try:
        return code_of(module_bytes({"body": body})) if body else b"", rest
    except Damaged:
        return _bytes(str(body)), rest


def _bytes(line: str) -> bytes:
    return line.encode("utf-8", "replace")
