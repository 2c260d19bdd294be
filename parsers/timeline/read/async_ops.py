"""Which ops begin, end and wait for asynchronous ones.

XLA writes an asynchronous op as two ops, such as ``copy-start.2`` and ``copy-done.2``; the second names the first in
its HLO text. The span is an event of the line ``Async XLA Ops``, from the begin of the first op to the end of the
second. Its HLO text is that of the first op, and its stat ``hlo_op`` names the second.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, no_ints
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.timeline.model import EventNames, Track

_AWAITS = "-done("
_INSTRUCTION = pattern(r"%([^\s,)]+)")

OpPairs = tuple[Int64s, Int64s]
"""Events of one track and the events of another track that belong to them, int64[n] each."""


def latest(group: Int64s, time: Int64s, of_group: Int64s, at_time: Int64s) -> Int64s:
    """The last item of each question's group that is not later than the question, -1 for none.

    Args:
        group, time: int64[n], group and time of the items.
        of_group, at_time: int64[m], group and time of the questions.

    Returns:
        int64[m], indices of items; the last of several at one time.
    """
    n = len(group)
    groups, is_question = np.concatenate([group, of_group]), np.arange(n + len(of_group)) >= n
    # mostly the times of either are in order already, and the groups few: two sorts that are fast then
    by_time = np.argsort(np.concatenate([time, at_time]), kind="stable")
    few = len(groups) and int(groups.min()) >= 0 and int(groups.max()) < 1 << 15
    order = by_time[np.argsort(groups[by_time].astype(np.int16 if few else np.int64), kind="stable")]
    asks = is_question[order]
    item = order[np.maximum.accumulate(np.where(asks, 0, np.arange(len(order))))]  # the last one so far
    latest_item = np.where(~is_question[item] & (groups[item] == groups[order]), item, -1)
    out = np.empty(len(of_group), np.int64)
    out[order[asks] - n] = latest_item[asks]
    return out


def op_pairs(ops: Track) -> OpPairs:
    """The events of a track of ops that start something, and the events that wait for it.

    An op waits for the last run before it of the op that its HLO text names. Two ops that name the same op wait for
    different runs, or the second waits for none.
    """
    waits = _waited_for(ops.names)
    numbers = {name: number for number, name in enumerate(sorted(set(waits.values())))}
    starts, of_start = _events_named(ops, numbers)
    of_key = np.full(len(ops.names), -1, np.int64)
    for key, name in waits.items():
        of_key[key] = numbers[name]
    dones = _with_number(ops, of_key)
    of_done = latest(of_start, ops.start_ps[starts], of_key[ops.key[dones]], ops.start_ps[dones])
    dones, of_done = dones[of_done >= 0], of_done[of_done >= 0]
    first = np.lexsort((ops.start_ps[dones], of_done))
    first = first[np.append(True, np.diff(of_done[first]) != 0)[: len(first)]]
    return starts[of_done[first]], dones[first]


def span_ends(spans: Track, ops: Track, done_names: Mapping[int, str]) -> tuple[OpPairs, OpPairs]:
    """The ops that begin and end asynchronous events.

    Args:
        spans: the asynchronous events.
        ops: the ops of the same core.
        done_names: the op that ends the events of each key of `spans`; where it is missing, the name of the op that
            begins them records it.

    Returns:
        Events of `ops` and the events of `spans` that begin with them; then events of `spans` and those of `ops` that
        they end with.
    """
    begins, ends = {}, {}
    for key in np.flatnonzero(spans.counts).tolist():
        begins[key] = _instruction(spans.names, key)
        ends[key] = done_names.get(key) or begins[key].replace("-start", "-done")
    numbers = {name: number for number, name in enumerate(sorted({*begins.values(), *ends.values()}))}
    events, of_event = _events_named(ops, numbers)
    by_key = np.zeros((2, len(spans.names)), np.int64)
    for key in begins:
        by_key[:, key] = numbers[begins[key]], numbers[ends[key]]
    start, end = ops.start_ps[events], ops.end_ps[events]
    op_of_span = latest(of_event, start, by_key[0, spans.key], spans.start_ps)
    held = np.flatnonzero(op_of_span >= 0)
    held = held[end[op_of_span[held]] >= spans.start_ps[held]]
    first = events[op_of_span[held]], held
    op_of_span = latest(of_event, -end, by_key[1, spans.key], -spans.end_ps[:])  # the first that ends no earlier
    held = np.flatnonzero(op_of_span >= 0)
    held = held[start[op_of_span[held]] <= spans.end_ps[held]]
    return first, (held, events[op_of_span[held]])


def _waited_for(names: EventNames) -> dict[int, str]:
    """What waiting ops wait for, by key: the first instruction in the brackets of their HLO text."""
    out: dict[int, str] = {}
    for key in range(names.metadata_rows):
        text = names.long_name(key) if "-done" in names.name(key) else ""
        instruction = _INSTRUCTION.search(text, text.find(_AWAITS)) if _AWAITS in text else None
        if instruction is not None:
            out[key] = instruction[1]
    return out


def _instruction(names: EventNames, key: int) -> str:
    """The name of an HLO instruction: the beginning of its text, else its own name."""
    head, is_text, _ = (names.long_name(key) or names.name(key)).partition(" = ")
    return head.lstrip("%") if is_text else names.name(key)


def _events_named(track: Track, numbers: Mapping[str, int]) -> tuple[Int64s, Int64s]:
    """The events with one of some names, and the numbers of these."""
    of_key = np.full(len(track.names), -1, np.int64)
    for key in range(len(of_key)) if numbers else ():
        of_key[key] = numbers.get(track.names.name(key), -1)
    events = _with_number(track, of_key)
    return events, of_key[track.key[events]]


def _with_number(track: Track, of_key: Int64s) -> Int64s:
    """The events whose keys have a number."""
    wanted: Bools = of_key >= 0
    return np.flatnonzero(wanted[track.key]).astype(np.int64) if wanted.any() else no_ints()
