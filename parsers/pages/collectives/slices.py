"""Collectives between slices, over the data centre's network (DCN), as XProf's Megascale Stats shows them.

Such a collective is four ops of a core: ``send`` hands a buffer to the host, ``send-done`` ends when it is sent,
``recv`` hands an empty one over, and ``recv-done`` ends when the data is there. The ops of one collective share a
rendezvous. Formulas are XProf's (`xspace_to_dcn_slack_analysis.cc`), without its rounding to whole microseconds:

* observed: from the begin of the send to the end of the recv-done;
* stall: the time in the collective's four ops;
* slack: from the begin of the send to the begin of the recv-done, without the time in the four ops of any collective
  meanwhile: what the network may take without stalling the core;
* bytes over the network by the kind of transfer and the slices that take part; required bandwidth: these over the
  slack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, grouped
from tpuprof.parsers.base.record import dataclass, fields, replace
from tpuprof.parsers.formats.xspace.core.api import split_fields, sum_by_key
from tpuprof.parsers.formats.xspace.walk import LEN
from tpuprof.parsers.pages.collectives.instruction import SliceTransfer
from tpuprof.parsers.pages.collectives.transfers import Transfers
from tpuprof.parsers.timeline.read.async_ops import latest

COLLECTIVE_INFO = "dcn_collective_info"
"""The stat of a send with XProf's `DcnCollectiveInfoProto`."""

_SEND, _SEND_DONE, _RECV, _RECV_DONE = OPCODES = ("send", "send-done", "recv", "recv-done")
_GROUPS, _PAIRS, _ENDPOINTS = 2, 3, 1  # field numbers


@dataclass(frozen=True, slots=True)
class SliceOp:
    """One of the four ops on one core: its name, what the compiler says of it, and how many slices take part."""

    name: str
    transfer: SliceTransfer
    group_size: int


@dataclass(frozen=True, slots=True)
class SliceCollective:
    """A collective between slices on one core; times are sums over its occurrences, in picoseconds.

    Attributes:
        rendezvous: its name; send_op, recv_op: its first and last op.
        transfer_type: ``ALL_REDUCE``; empty where unknown.
        observed_ps, stall_ps, slack_ps: see the module's text.
        send_ps, send_done_ps, recv_ps, recv_done_ps: time in each of its ops.
        network_bytes: of one occurrence; None where the profile does not say how many slices take part, or in what.
    """

    rendezvous: str
    send_op: str
    recv_op: str
    transfer_type: str
    occurrences: int
    observed_ps: int
    stall_ps: int
    slack_ps: int
    send_ps: int
    send_done_ps: int
    recv_ps: int
    recv_done_ps: int
    network_bytes: int | None


def group_size(info: bytes | None) -> int:
    """How many slices take part in a collective by its stat; 1 for pairs, 0 where that is not recorded."""
    if not info:
        return 0
    fields = split_fields(info)
    if fields.status:
        return 0
    if bool(((fields.number == _PAIRS) & (fields.wire == LEN)).any()):
        return 1
    groups = np.flatnonzero((fields.number == _GROUPS) & (fields.wire == LEN))
    if not len(groups):
        return 0
    inner = split_fields(info[int(fields.begin[groups[0]]) : int(fields.end[groups[0]])])
    return int(((inner.number == _ENDPOINTS) & (inner.wire == LEN)).sum())


def network_bytes(buffer_bytes: int, size: int, transfer_type: str) -> int | None:
    """What a core sends over the network for one transfer; None where the kind or the number of slices is unknown.

    Args:
        buffer_bytes: of the recv-done's result.
        size: slices that take part.
    """
    if size == 0 or not buffer_bytes:
        return None
    if transfer_type == "ONE_TO_ONE":
        return size * buffer_bytes
    if transfer_type == "REDUCE_SCATTER":
        return (size - 1) * buffer_bytes
    factor = {"ALL_GATHER": 1, "ALL_TO_ALL": 1, "ALL_REDUCE": 2}.get(transfer_type)
    return None if factor is None else factor * (size - 1) * buffer_bytes // size


def rendezvous_of(ops: Sequence[SliceOp]) -> list[str]:
    """The collective of each op: its rendezvous, else that of another op of its channel, else the channel's number."""
    of_channel: dict[int, str] = {}
    for op in ops:
        if op.transfer.rendezvous:
            of_channel.setdefault(op.transfer.channel, op.transfer.rendezvous)
    return [
        op.transfer.rendezvous or of_channel.get(op.transfer.channel) or f"channel {op.transfer.channel}" for op in ops
    ]


def slice_transfers(
    ops: Sequence[SliceOp], op: Int64s, start: Int64s, end: Int64s, at: Int64s
) -> tuple[tuple[SliceCollective, ...], Transfers, int]:
    """The collectives between slices of one core.

    Args:
        op: int64[n], the op of each event, in order of start; start, end: by the device's clock; at: on the trace's.

    Returns:
        The collectives; their transfers, numbered as they are; and how many receives lack the send before them.
    """
    names = rendezvous_of(ops)
    known = tuple(dict.fromkeys(names))
    number = {name: place for place, name in enumerate(known)}
    of = np.array([number[name] for name in names], np.int64)[op]
    opcodes = [each.transfer.opcode for each in ops]
    code = np.array([OPCODES.index(name) if name in OPCODES else -1 for name in opcodes], np.int64)[op]
    place, duration = np.arange(len(op)), end - start
    before = np.append(0, np.cumsum(duration))
    by_collective = np.lexsort((place, of))
    own_before = np.empty(len(op) + 1, np.int64)
    own_before[by_collective] = np.append(0, np.cumsum(duration[by_collective]))[:-1]
    last = np.flatnonzero(code == OPCODES.index(_RECV_DONE))
    halves: dict[str, Int64s] = {}
    for which in OPCODES[:3]:
        events = np.flatnonzero(code == OPCODES.index(which))
        found = latest(of[events], place[events], of[last], place[last])
        halves[which] = np.where(found >= 0, events[np.maximum(found, 0)] if len(events) else -1, -1)
    has_send = halves[_SEND] >= 0
    lost = int((~has_send).sum())
    last = last[has_send]
    halves = {which: of_last[has_send] for which, of_last in halves.items()}
    send = halves[_SEND]
    stall = own_before[last] + duration[last] - own_before[send]
    slack = np.maximum(start[last] - start[send] - (before[last] - before[send]), 0)
    transfers = Transfers(of[last], start[send], end[last], stall, at[send])
    times = {
        "occurrences": np.ones(len(last), np.int64),
        "observed_ps": end[last] - start[send],
        "stall_ps": stall,
        "slack_ps": slack,
        "recv_done_ps": duration[last],
        **{
            f"{which.replace('-', '_')}_ps": np.where(rows >= 0, duration[np.maximum(rows, 0)], 0)
            for which, rows in halves.items()
        },
    }
    sums = {key: sum_by_key(of[last], values, len(known)).tolist() for key, values in times.items()}
    collectives = []
    for place_of, name in enumerate(known):
        mine = np.flatnonzero(of[last] == place_of)
        if len(mine):
            ends = ops[int(op[send[mine[-1]]])], ops[int(op[last[mine[-1]]])]
            collectives.append(_collective(name, *ends, {key: of_all[place_of] for key, of_all in sums.items()}))
    held = {name: place for place, name in enumerate(each.rendezvous for each in collectives)}
    renumbered = np.array([held.get(name, -1) for name in known], np.int64)
    return (
        tuple(collectives),
        Transfers(renumbered[transfers.op], transfers.begin_ps, transfers.end_ps, transfers.own_ps, transfers.at_ps),
        lost,
    )


def _collective(name: str, first: SliceOp, last: SliceOp, sums: Mapping[str, int]) -> SliceCollective:
    kind = first.transfer.transfer_type
    return SliceCollective(
        rendezvous=name,
        send_op=first.name,
        recv_op=last.name,
        transfer_type=kind,
        network_bytes=network_bytes(last.transfer.buffer_bytes, first.group_size, kind),
        **sums,
    )


def joined_slices(parts: Sequence[SliceCollective]) -> tuple[SliceCollective, ...]:
    """The collectives of several cores by rendezvous, their times and occurrences added up."""
    by_name = grouped((part.rendezvous, part) for part in parts)
    names = [field.name for field in fields(SliceCollective)]
    summed = [name for name in names if name == "occurrences" or name.endswith("_ps")]
    return tuple(
        replace(of_name[-1], **{name: sum(getattr(part, name) for part in of_name) for name in summed})
        for of_name in by_name.values()
    )
