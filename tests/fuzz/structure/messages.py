"""Changes protobuf messages field by field, so that what comes out is a message of the same type.

A reader sees what no damaged bytes would get past its first checks: events that are not sorted, ids that nobody has,
names that mean something else, steps without an end.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XPlane, XSpace, XStat

MOST_PARTS = 20
"""So many of a list's messages are looked at: large modules have thousands."""

_INTEGERS = (0, 1, 2, 3, 7, 127, 128, 255, 1000, 10**6, 10**9, 10**12, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, float("inf"), float("-inf"), float("nan"))
_TEXTS = (
    *(
        b"",
        b" ",
        b"0",
        b"-1",
        b"1e999",
        b"NaN",
        b"9" * 30,
        b"\x1b]0;owned\x07",
        b"\xff\xfe",
        "\u202e".encode(),
        b"a" * 300,
    ),
    *(b"while", b"all-reduce", b"all-reduce-start.1", b"all-reduce-done.1", b"copy-start", b"send", b"recv-done"),
    *(
        b"XLA Ops",
        b"XLA Modules",
        b"Steps",
        b"Async XLA Ops",
        b"XLA TraceMe",
        b"Framework Ops",
        b"Framework Name Scope",
    ),
    *(b"/device:TPU:0", b"/device:TPU:1", b"/device:TPU:0 SparseCore 0", b"/device:GPU:0", b"/host:CPU"),
    *(b"/host:metadata", b"Task Environment", b"#Chip 0 Counters", b"jit_step(7)", b"program_id", b"hlo_category"),
    *(
        b"group_id",
        b"run_id",
        b"step_num",
        b"_pt",
        b"_ct",
        b"_p",
        b"_c",
        b"peak_teraflops_per_second",
        b"convolution fusion",
    ),
    *(b"f32[8,128]{1,0:T(8,128)}", b"%x = f32[1] fusion(", b"replica_groups={{0,1},{}}", b"jit(f)/jvp(g)/dot:"),
)
_INSIDE: dict[str, tuple[type[Message], ...]] = {XStat.DESCRIPTOR.full_name: (HloProto,)}
"""Messages that the bytes of a field of others may hold."""


def changed(rng: random.Random, data: bytes, kind: type[Message], others: Sequence[bytes] = ()) -> bytes:
    """A message with one to a few things changed.

    Args:
        data: the message's bytes; what is no such message is given back as it is.
        others: messages of the same kind, of which parts may be put in.
    """
    try:
        message = kind.FromString(data)
        donor = kind.FromString(rng.choice(others)) if others else message
    except DecodeError:
        return data
    parts, donors = _by_type(rng, message), _Donors(rng, donor)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        _change(rng, parts, donors)
    return message.SerializeToString()


def _change(rng: random.Random, parts: dict[str, list[Message]], donors: _Donors) -> None:
    """Changes one thing somewhere in a message; kinds of parts are as likely as each other, however many there are."""
    name = rng.choice(sorted(parts))
    chosen = rng.choice(parts[name])
    if name in _INSIDE and _change_inside(rng, chosen, _INSIDE[name]):
        return
    fields = [one for one in chosen.DESCRIPTOR.fields if rng.random() < 0.1 or _is_set(chosen, one)]
    if fields:
        _change_field(rng, chosen, rng.choice(fields), donors)


def _by_type(rng: random.Random, message: Message) -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = defaultdict(list)
    for part in _parts(rng, message):
        found[part.DESCRIPTOR.full_name].append(part)
    return found


class _Donors:
    """The parts of a message by their type, found when the first is asked for."""

    def __init__(self, rng: random.Random, message: Message) -> None:
        self._rng, self._message = rng, message

    @cached_property
    def _parts(self) -> dict[str, list[Message]]:
        return _by_type(self._rng, self._message)

    def get(self, name: str) -> list[Message]:
        """Those of one type."""
        return self._parts.get(name, [])


def _parts(rng: random.Random, message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if _is_map(field):
            of_messages = field.message_type.fields_by_name["value"].message_type is not None
            for key in _some(rng, sorted(value)) if of_messages else ():
                yield from _parts(rng, value[key])
        elif field.is_repeated:
            for each in _some(rng, value):
                yield from _parts(rng, each)
        else:
            yield from _parts(rng, value)


def _some(rng: random.Random, values: Any) -> Any:
    """All of a few, some of many."""
    return values if len(values) <= MOST_PARTS else [values[rng.randrange(len(values))] for _ in range(MOST_PARTS)]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _is_set(message: Message, field: Any) -> bool:
    if field.is_repeated:
        return len(getattr(message, field.name)) > 0
    return message.HasField(field.name) if field.has_presence else bool(getattr(message, field.name))


def _change_inside(rng: random.Random, message: Any, kinds: Sequence[type[Message]]) -> bool:
    """Changes a message that lies in another one's bytes; whether there was one."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_BYTES and len(value) > 64 and rng.random() < 0.7:
            kind = rng.choice(kinds)
            new = changed(rng, value, kind)
            if new != value:
                setattr(message, field.name, new)
                return True
    return False


def _change_field(rng: random.Random, message: Any, field: Any, donors: _Donors) -> None:
    value = getattr(message, field.name)
    if _is_map(field):
        _change_map(rng, value, field, donors)
    elif field.is_repeated and field.message_type is not None:
        rng.choice(_OF_LISTS)(rng, value, partial(donors.get, field.message_type.full_name))
    elif field.is_repeated:
        _change_numbers(rng, value, field)
    elif field.message_type is not None:
        if rng.random() < 0.3:
            message.ClearField(field.name)
        elif same := donors.get(field.message_type.full_name):
            value.CopyFrom(rng.choice(same))
    elif rng.random() < 0.15:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _scalar(rng, field, value))


def _scalar(rng: random.Random, field: FieldDescriptor, value: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_ENUM and field.enum_type is not None:
        return rng.choice([each.number for each in field.enum_type.values])
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return rng.choice(_FLOATS)
    if isinstance(value, int):
        return _integer(rng, field, value)
    text = rng.choice(_TEXTS)
    if value and rng.random() < 0.3:
        at = rng.randrange(len(value) + 1)
        piece = text if isinstance(value, bytes) else text.decode("utf-8", "ignore")
        return rng.choice((value[:at], value[:at] + piece + value[at:], value + value[-10:]))
    return text if isinstance(value, bytes) else text.decode("utf-8", "ignore")


def _integer(rng: random.Random, field: FieldDescriptor, value: int) -> int:
    bits = 32 if field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32) else 64
    is_signed = field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64)
    new = rng.choice(
        (value + 1, value - 1, 2 * value, value // 2, -value, rng.choice(_INTEGERS), -rng.choice(_INTEGERS))
    )
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    return new if low <= new <= high else rng.choice((low, high))


def _change_numbers(rng: random.Random, values: Any, field: FieldDescriptor) -> None:
    """A list of numbers or texts: other ones, fewer, more, in another order."""
    new = list(values)
    how = rng.randrange(5)
    if how == 0 and new:
        at = rng.randrange(len(new))
        new[at] = _scalar(rng, field, new[at])
    elif how == 1:
        rng.shuffle(new)
    elif how == 2:
        new = new[: rng.randrange(len(new) + 1)]
    elif new:
        new += new * rng.choice((1, 20))
    del values[:]
    values.extend(new)


def _change_map(rng: random.Random, values: Any, field: Any, donors: _Donors) -> None:
    """Entries under another key, gone, or another one's."""
    keys = sorted(values)
    of_key, of_value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    if not keys:
        return
    key = rng.choice(keys)
    if of_value.message_type is None:
        values[key] = _scalar(rng, of_value, values[key])
    elif rng.random() < 0.3:
        del values[key]
    elif rng.random() < 0.5:
        values[_scalar(rng, of_key, key)].CopyFrom(values[key])
    elif same := donors.get(of_value.message_type.full_name):
        values[key].CopyFrom(rng.choice(same))


_Same = Callable[[], Sequence[Message]]
"""Gives other messages of the type of a list's."""

_Change = Callable[[random.Random, Any, _Same], None]


def _shuffle(rng: random.Random, values: Any, _: _Same) -> None:
    new = [_copied(value) for value in values]
    rng.shuffle(new)
    del values[:]
    values.extend(new)


def _reverse(_: random.Random, values: Any, __: _Same) -> None:
    new = [_copied(value) for value in values][::-1]
    del values[:]
    values.extend(new)


def _drop(rng: random.Random, values: Any, _: _Same) -> None:
    begin = rng.randrange(len(values) + 1)
    del values[begin : begin + rng.choice((1, 1, 3, len(values)))]


def _double(rng: random.Random, values: Any, _: _Same) -> None:
    if len(values):
        one = rng.choice(list(values))
        values.extend([_copied(one) for _ in range(rng.choice((1, 2, 40)))])


def _put_in(rng: random.Random, values: Any, same: _Same) -> None:
    if donors := same():
        values.extend([_copied(rng.choice(donors)) for _ in range(rng.choice((1, 3)))])


_OF_LISTS: tuple[_Change, ...] = (_shuffle, _reverse, _drop, _double, _put_in)


def _copied(message: Message) -> Message:
    made = type(message)()
    made.CopyFrom(message)
    return made


def joined(rng: random.Random, first: bytes, second: bytes) -> bytes:
    """The planes of two profiles in one, in any order, under one name at times."""
    made, other = XSpace.FromString(first), XSpace.FromString(second)
    planes = [*map(_copied, made.planes), *map(_copied, other.planes)]
    rng.shuffle(planes)
    for plane in planes if rng.random() < 0.3 else ():
        assert isinstance(plane, XPlane)
        plane.name = planes[0].name  # type: ignore[attr-defined]
    del made.planes[:]
    made.planes.extend(planes)  # type: ignore[arg-type]
    return made.SerializeToString()
