"""Reads the schedule that a profile or a dump holds: the compiler's `LloModuleProto`.

With `--xla_xprof_register_llo_debug_info=true` in ``LIBTPU_INIT_ARGS`` a profile has one for each program of a core, as
the stat ``llo_proto`` of the event metadata ``module(number)::instruction`` in the plane ``/host:metadata``; with
`--xla_jf_dump_to=DIR --xla_jf_dump_llo_proto=true` the compiler writes the same message to ``…-llo_module.pb``.

No description of the message is published. What its fields mean was found by comparing compiled kernels with what XProf
prints of them (`get_llo_static_analysis`) and with the compiler's own ``…-hlo-static-per-bundle-utilization.txt``:

    module        1 instruction  2 program's region  6 use of the units  8 constants  9 texts  10 module  11 its number
                  12 origins
    region        1 members  5 begin  6 end  7 number        member: 1 instruction  2 loop  3 predicated  4 region
    loop          1 pre-header  2 header  3 branch  4 body  5 footer  6 its branch  7 exit  8 bounds: 1 from  2 to
                  3 step
    predicated    1 check  2 branch  3 body  4 fallthrough
    instruction   1 id  2 opcode  4 bundle, signed  7 register, signed  8 kind of register
    use           1 to 7 MXU XLU VALU EUP VLOAD VSTORE SALU: 1 slots used by bundle  2 slots;  8 spills  9 fills
    constant      1 opcode  5 a place in an allocation: 1 space  4 bytes  5 number  10 is a spill
    origins       1 origin: 1 frame (1 file  2 line)  2 primitive  3 scopes  4 ids of instructions;  2 texts
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.errors import Damaged
from tpuprof.parsers.base.intervals import Int64s, positions
from tpuprof.parsers.formats.llo.schedule import SPACES, UNITS, Instructions, LloAllocation, Origin, Regions, Schedule
from tpuprof.parsers.formats.xspace.metadata import Messages, split_all
from tpuprof.parsers.formats.xspace.walk import LEN, text, varints


def columns(messages: Sequence[bytes]) -> Messages:
    """The fields of messages of one kind.

    Raises:
        Damaged: one of them breaks off, or holds something that is not a field.
    """
    borders = np.zeros(len(messages) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)), out=borders[1:])
    fields = split_all(b"".join(messages), borders[:-1], borders[1:])
    if not fields.kept.all():
        raise Damaged("a message in it is cut or damaged")
    return fields


def packed(data: bytes) -> Int64s:
    """The numbers of a packed list, the low 63 bits of each."""
    raw = np.frombuffer(data, np.uint8)
    last = np.flatnonzero(raw < 0x80) + 1
    begin = np.concatenate([[0], last[:-1]]) if len(last) else last
    return varints(data, begin.astype(np.int64), np.minimum(last, begin + 9).astype(np.int64))


def signed(values: Int64s) -> Int64s:
    """Numbers that have their sign in the lowest bit."""
    return (values >> 1) ^ -(values & 1)


_LOOP = ("loop pre-header", "loop header", "loop branch", "loop body", "loop footer", "loop footer branch", "loop exit")
_PREDICATED = ("check", "branch", "predicated", "fallthrough")
_ONCE = ("loop pre-header", "loop exit")
_INSTRUCTION, _LOOP_FIELD, _PREDICATED_FIELD, _REGION = 1, 2, 3, 4
_BOUNDS = 8
_DEEPEST = 200
LARGEST = 64 << 20
"""Bytes of a schedule; a kernel's has some hundred thousand."""
_MOST_TURNS = 1 << 40


def read_schedule(data: bytes) -> Schedule:
    """The schedule in an `LloModuleProto`.

    Raises:
        Damaged: the bytes are not such a message.
    """
    if len(data) > LARGEST:
        raise Damaged(f"it has {len(data):,} bytes, and more than {LARGEST:,} are not read")
    module = columns([data])
    tops = module.parts(2)
    if not tops:
        raise Damaged("it holds no program")
    tree = _Tree()
    tree.add(tops[0])
    bodies = columns(tree.bodies)
    used, slots, spills, fills = _use(module.parts(6))
    origins, (known, rows_of) = _origins(module.parts(12))
    ids = bodies.integers(1, -1)
    if len(ids) and not used.shape[1]:
        raise Damaged("it has instructions and no bundles")
    instructions = Instructions(
        bundle=np.clip(signed(bodies.integers(4)), 0, used.shape[1] - 1),
        opcode=bodies.integers(2),
        region=np.array(tree.owner, np.int64),
        origin=np.append(rows_of, -1)[positions(ids, known)],
    )
    return Schedule(
        instruction=_text(module, 1),
        program=_text(module, 10),
        bundles=used.shape[1],
        used=used,
        slots=slots,
        spills=spills,
        fills=fills,
        regions=Regions(tuple(tree.kind), np.array(tree.parent, np.int64), np.array(tree.turns, np.int64)),
        instructions=instructions,
        origins=origins,
        allocations=_allocations(module.parts(8)),
    )


def _text(module: Messages, number: int) -> str:
    parts = module.parts(number)
    return text(parts[-1]) if parts else ""


class _Tree:
    """The regions of a program and the bodies of their instructions, in the order of the message."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.owner: list[int] = []
        self.kind: list[str] = []
        self.parent: list[int] = []
        self.turns: list[int] = []

    def add(self, body: bytes, kind: str = "program", parent: int = -1, turns: int = 1, depth: int = 0) -> None:
        """A region and what is in it."""
        if depth > _DEEPEST:
            raise Damaged("its regions are nested too deep")
        row = len(self.kind)
        self.kind.append(kind)
        self.parent.append(parent)
        self.turns.append(turns)
        members = columns(columns([body]).parts(1))
        payloads = list(zip(members.number.tolist(), members.begin.tolist(), members.end.tolist(), strict=True))
        begun = 0
        for place in np.flatnonzero(members.number != _INSTRUCTION).tolist():
            self._instructions(members.body, payloads[begun:place], row)
            begun = place + 1
            number, begin, end = payloads[place]
            part = members.body[begin:end]
            if number == _REGION:
                self.add(part, "region", row, turns, depth + 1)
            elif number in (_LOOP_FIELD, _PREDICATED_FIELD):
                self._parts(part, number, row, turns, depth)
        self._instructions(members.body, payloads[begun:], row)

    def _instructions(self, data: bytes, payloads: list[tuple[int, int, int]], row: int) -> None:
        self.bodies += [data[begin:end] for _, begin, end in payloads]
        self.owner += [row] * len(payloads)

    def _parts(self, body: bytes, number: int, row: int, turns: int, depth: int) -> None:
        fields, names = columns([body]), _LOOP if number == _LOOP_FIELD else _PREDICATED
        inside = turns if number == _PREDICATED_FIELD else _turns(fields, turns)
        places = zip(
            fields.number.tolist(), fields.wire.tolist(), fields.begin.tolist(), fields.end.tolist(), strict=True
        )
        for field, wire, begin, end in places:
            if wire == LEN and 1 <= field <= len(names):
                kind = names[field - 1]
                self.add(body[begin:end], kind, row, turns if kind in _ONCE else inside, depth + 1)


def _turns(loop: Messages, around: int) -> int:
    """How often a loop turns, in all turns of the loops around it; -1 where it is not said."""
    bounds = loop.parts(_BOUNDS)
    if not bounds or around < 0:
        return -1
    fields = columns([bounds[-1]])
    begin, end, step = (int(fields.integers(field, -1)[0]) for field in (1, 2, 3))
    if step <= 0 or begin < 0 or end < begin:
        return -1
    turns = -(-(end - begin) // step) * around
    return turns if turns < _MOST_TURNS else -1


def _use(parts: list[bytes]) -> tuple[NDArray[np.uint8], tuple[int, ...], NDArray[np.uint8], NDArray[np.uint8]]:
    """Slots used by unit and bundle, slots that there are, registers spilled and filled by bundle."""
    if not parts:
        raise Damaged("it does not say which slots its bundles use")
    use = columns([parts[-1]])
    used: list[NDArray[np.uint8]] = []
    slots: list[int] = []
    for number in range(1, len(UNITS) + 1):
        unit = use.parts(number)
        fields = columns([unit[-1] if unit else b""])
        used.append(_counts(fields.parts(1)))
        slots.append(max(0, int(fields.integers(2)[0])))
    columns_of = [*used, _counts(use.parts(8)), _counts(use.parts(9))]
    bundles = max(map(len, columns_of))
    if any(len(each) not in (0, bundles) for each in columns_of):
        raise Damaged("its units have different numbers of bundles")
    whole = [each if len(each) else np.zeros(bundles, np.uint8) for each in columns_of]
    return np.stack(whole[: len(UNITS)]), tuple(slots), whole[-2], whole[-1]


def _counts(parts: list[bytes]) -> NDArray[np.uint8]:
    """A packed list of small numbers."""
    return np.minimum(packed(parts[-1] if parts else b""), 255).astype(np.uint8)


def _origins(parts: list[bytes]) -> tuple[tuple[Origin, ...], tuple[Int64s, Int64s]]:
    """Where instructions come from, and ids of instructions with their row, in the order of the ids."""
    none = np.zeros(0, np.int64)
    if not parts:
        return (), (none, none)
    table = columns([parts[-1]])
    texts = [text(each) for each in table.parts(2)]
    origins: list[Origin] = []
    ids: list[Int64s] = [none]
    for body in table.parts(1):
        origin = columns([body])
        frames = [columns([frame]) for frame in origin.parts(1)]
        places = [(int(frame.integers(1)[0]), int(frame.integers(2)[0])) for frame in frames]
        scopes = [_entry(texts, int(number)) for part in origin.parts(3) for number in packed(part)]
        primitive = _entry(texts, int(origin.integers(2, -1)[0]))
        where = tuple(f"{_entry(texts, file)}:{line}" for file, line in reversed(places))  # outermost first in the file
        origins.append(Origin(where, tuple(dict.fromkeys(each for each in scopes if each != primitive))))
        ids.append(packed(b"".join(origin.parts(4))))
    known = np.concatenate(ids)
    rows = np.repeat(np.arange(len(ids) - 1, dtype=np.int64), [len(each) for each in ids[1:]])
    order = np.argsort(known, kind="stable")
    return tuple(origins), (known[order], rows[order])


def _entry(texts: list[str], number: int) -> str:
    return texts[number] if 0 <= number < len(texts) else ""


def _allocations(constants: list[bytes]) -> tuple[LloAllocation, ...]:
    """What the program allocates: constants are places in it, so one may stand there more than once."""
    found: dict[LloAllocation, None] = {}
    inside = columns(columns(constants).parts(5))
    for place, size, number, is_spill in zip(
        *(inside.integers(field).tolist() for field in (1, 4, 5, 10)), strict=True
    ):
        found[LloAllocation(SPACES.get(place, f"space {place}"), max(0, size), number, bool(is_spill))] = None
    return tuple(found)
