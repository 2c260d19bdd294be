"""Feeds the compiled core valid, damaged and nonsensical input; meant for a build with sanitizers.

    python fuzz_core.py PATH_OF_MODULE CASES SEED

Prints a line with the number of cases when all of them have run. The buffers are exactly as long as they claim, each in
a block of memory of its own (run with PYTHONMALLOC=malloc), so that a sanitizer sees every access past an end. The
encoders are used by the tests too.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from array import array
from collections.abc import Callable
from types import ModuleType
from typing import Any

MARKER = "all cases ran:"
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
EXTREMES = (INT64_MIN, INT64_MIN + 1, -(1 << 32), -1, 0, 1, 7, 8, 1 << 31, 1 << 32, 1 << 62, INT64_MAX - 1, INT64_MAX)


def varint(value: int, padding: int = 0) -> bytes:
    """A varint of the low 64 bits, with this many superfluous bytes as far as ten allow."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    for _ in range(min(padding, 10 - len(out))):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def field(number: int, wire: int, payload: bytes, padding: int = 0, longest: int = 5) -> bytes:
    """A field; `payload` is the value's bytes, without the length.

    Tag and length get `padding` superfluous bytes, up to 5 and `longest` in all; protobuf itself takes no more than 5.
    """
    tag = varint(number << 3 | wire)
    tag = varint(number << 3 | wire, min(padding, 5 - len(tag)))
    if wire != 2:
        return tag + payload
    length = varint(len(payload))
    return tag + varint(len(payload), min(padding, longest - len(length))) + payload


def random_stat(rng: random.Random) -> bytes:
    """An XStat with one of all kinds of values, at times in an unusual order."""
    number, wire = rng.choice(((2, 1), (3, 0), (4, 0), (5, 2), (6, 2), (7, 0), (8, 2), (9, 5)))
    if wire == 0:
        value = varint(rng.getrandbits(rng.randrange(65)), rng.randrange(3))
    else:
        value = rng.randbytes({1: 8, 2: rng.randrange(12), 5: 4}[wire])
    parts = [field(1, 0, varint(rng.randrange(5))), field(number, wire, value, rng.choice((0, 0, 1)))]
    if rng.random() < 0.2:
        rng.shuffle(parts)
    return b"".join(parts)


def random_event(rng: random.Random) -> bytes:
    """An XEvent of about the usual shape."""
    parts = [
        field(1, 0, varint(rng.randrange(3000))),
        field(rng.choice((2, 2, 2, 5)), 0, varint(rng.getrandbits(rng.randrange(65)))),
        field(3, 0, varint(rng.getrandbits(24))),
    ]
    parts += [field(4, 2, random_stat(rng)) for _ in range(rng.randrange(4))]
    if rng.random() < 0.1:
        rng.shuffle(parts)
    return b"".join(parts)


def random_line(rng: random.Random, events: int) -> bytes:
    """An XLine with this many events."""
    head = field(1, 0, varint(7)) + field(2, 2, b"XLA Ops") + field(3, 0, varint(1))
    return head + b"".join(field(4, 2, random_event(rng)) for _ in range(events))


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The bytes with some of them changed, cut out or cut off."""
    out = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        if not out:
            break
        at = rng.randrange(len(out))
        action = rng.randrange(4)
        if action == 0:
            out[at] = rng.choice((0, 0x22, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif action == 1:
            del out[at : at + rng.randrange(1, 4)]
        elif action == 2:
            out[at:at] = rng.randbytes(rng.randrange(1, 4))
        else:
            del out[at:]
    return bytes(out)


def random_bytes(rng: random.Random) -> bytes:
    """Bytes of one of several sorts, up to some hundreds."""
    sort = rng.randrange(4)
    if sort == 0:
        return rng.randbytes(rng.randrange(120))
    if sort == 1:
        return bytes(rng.choices((0x08, 0x10, 0x18, 0x22, 0x0A, 0x80, 0xFF, 0x01, 0x03, 0x09), k=rng.randrange(80)))
    if sort == 2 and rng.random() < 0.3:  # sizes around the limits of what an offset can be
        return (
            field(4, 2, rng.randbytes(3)) + b"\x22" + varint(rng.choice(EXTREMES) - rng.randrange(24), rng.randrange(3))
        )
    line = random_line(rng, rng.randrange(8))
    return line if sort == 2 else damaged(rng, line)


# --- the driver ---


def _zeros(code: str, count: int) -> array[int]:
    return array(code, [0]) * count  # this, and an array made from a list, takes no more memory than it holds


def _spans(rng: random.Random, core: ModuleType, data: array[int]) -> tuple[array[int], array[int]]:
    """Begins and ends: those of the fields that are there, or arbitrary ones inside or outside the bytes."""
    sort = rng.choice((0, 0, 0, 0, 0, 1, 2, 3, 3))
    if sort == 0:
        n = len(data)
        number, wire, begin, end = _zeros("I", n), _zeros("B", n), _zeros("q", n), _zeros("q", n)
        count, _, _ = core.split(data, number, wire, begin, end, 0)
        whole = [i for i in range(count) if end[i] <= len(data)]
        return array("q", [begin[i] for i in whole]), array("q", [end[i] for i in whole])
    n = rng.randrange(6)
    pairs = [sorted((rng.randint(0, len(data)), rng.randint(0, len(data)))) for _ in range(n)]
    if sort == 1:
        pairs = [[rng.choice(EXTREMES), rng.choice(EXTREMES)] if rng.random() < 0.5 else pair for pair in pairs]
    if sort == 2 and pairs:
        pairs[-1][1] = len(data) + rng.randrange(3)
    return array("q", [pair[0] for pair in pairs]), array("q", [pair[1] for pair in pairs])


def _split(rng: random.Random, core: ModuleType, data: array[int]) -> None:
    n = rng.choice((0, 1, 3, len(data)))
    near, inside = rng.randint(-2, len(data) + 2), rng.randint(0, len(data))
    start = rng.choice((0, 0, 0, len(data), inside, near, rng.choice(EXTREMES)))
    core.split(data, _zeros("I", n), _zeros("B", n), _zeros("q", n), _zeros("q", n + (rng.random() < 0.02)), start)


def _stats(rng: random.Random, core: ModuleType, data: array[int]) -> None:
    begin, end = _spans(rng, core, data)
    wanted = array("q", [rng.choice((0, 1, 2, 3, 4, *EXTREMES)) for _ in range(rng.randrange(5))])
    n = len(begin) * len(wanted) + (rng.random() < 0.1) * rng.randrange(3)
    stats_field = rng.choice((4, 4, 4, 5, 1, -3))
    core.stats(data, begin, end, wanted, _zeros("B", n), _zeros("q", n), _zeros("q", n), stats_field)


def _scan(rng: random.Random, core: ModuleType, data: array[int]) -> None:
    n = rng.choice((0, 1, 3, 8, len(data)))
    wanted = array("q", list({rng.choice((0, 1, 2, 3, 4, *EXTREMES)) for _ in range(rng.randrange(4))}))
    cells = n * len(wanted) + (rng.random() < 0.03)
    placed = n if rng.random() < 0.5 else rng.choice((0, 0, 0, n + 1))
    start = rng.choice((0, 0, 0, len(data), rng.randint(0, len(data)), rng.randint(-2, len(data) + 2)))
    at = rng.choice((0, 0, 0, n, rng.randint(-1, n + 1), rng.choice(EXTREMES)))
    events = (_zeros(rng.choice("iq"), n), _zeros("q", n), _zeros("q", n), _zeros("B", n))
    places, values = (_zeros("q", placed), _zeros("I", placed)), (_zeros(code, cells) for code in "BqI")
    chosen = array("B", [rng.randrange(2) for _ in range(rng.choice((0, 0, 1, 4, 40)))])
    core.scan(
        data, wanted, chosen, *events, *places, *values, rng.choice((0, 1 << 40, rng.choice(EXTREMES))), start, at
    )


def _times(rng: random.Random, n: int) -> list[int]:
    return [rng.choice(EXTREMES) if rng.random() < 0.3 else rng.randrange(20) for _ in range(n)]


def _ordered(rng: random.Random, n: int) -> tuple[array[int], array[int]]:
    """Starts and ends, in most cases in the order of nesting."""
    pairs = list(zip(_times(rng, n), _times(rng, n), strict=True))
    if rng.random() < 0.8:
        pairs.sort(key=lambda pair: (pair[0], -pair[1]))
    return array("q", [start for start, _ in pairs]), array("q", [end for _, end in pairs])


def _nest(rng: random.Random, core: ModuleType, _data: array[int]) -> None:
    n = rng.randrange(12)
    start, end = _ordered(rng, n)
    core.nest(start, end, _zeros("q", n), _zeros("i", n), _zeros("q", n + (rng.random() < 0.02)))


def _lanes(rng: random.Random, core: ModuleType, _data: array[int]) -> None:
    n, places = rng.randrange(12), rng.choice((2, 4, 8, 16, 3, 0))
    start, end = _ordered(rng, n)
    tree = array("q", _times(rng, places) if rng.random() < 0.3 else [INT64_MIN] * places)
    at = rng.choice((0, 0, 0, n, rng.randint(0, n), rng.randint(-1, n + 1), rng.choice(EXTREMES)))
    core.lanes(start, end, _zeros("i", n + (rng.random() < 0.02)), tree, at)


def _laid(rng: random.Random) -> tuple[list[array[int]], array[int], int]:
    """Start, end, key and lane of some events, where each lane begins, and how many keys there are."""
    n, keys, lanes = rng.randrange(10), rng.randrange(1, 5), rng.randrange(1, 4)
    lane = sorted(rng.randrange(lanes) for _ in range(n))
    bounds = array("q", [lane.index(at) if at in lane else 0 for at in range(lanes)])
    rng.shuffle(lane)
    if rng.random() < 0.1 and n:
        lane[rng.randrange(n)] = rng.choice((-1, lanes, 1 << 20))
    if rng.random() < 0.1:
        bounds[rng.randrange(lanes)] = rng.choice((-1, n, n - 1, *EXTREMES))
    key = [rng.randrange(keys) if rng.random() < 0.98 else rng.choice((-1, keys)) for _ in range(n)]
    start = _times(rng, n) if rng.random() < 0.5 else sorted(rng.randrange(20) for _ in range(n))
    end = _times(rng, n) if rng.random() < 0.3 else [rng.randrange(20, 40) for _ in range(n)]
    no_lanes = rng.random() < 0.3
    columns = [array("q", start), array("q", end), array("i", key), array("i", [] if no_lanes else lane)]
    return columns, bounds, keys


def _runs(rng: random.Random, core: ModuleType, _data: array[int]) -> None:
    columns, bounds, keys = _laid(rng)
    n = len(columns[0]) + (rng.random() < 0.02)
    groups = sorted(_times(rng, 2 * rng.randrange(4)))
    core.runs(
        *(*columns, array("i", [rng.randrange(-1, 3) for _ in range(keys)])),
        *(array("q", groups[0::2]), array("q", groups[1::2]), bounds),
        *(_zeros("q", n), _zeros("q", n), _zeros("i", n), _zeros("B", n), rng.choice((2, *EXTREMES)), rng.randrange(2)),
    )


def _self_sums(rng: random.Random, core: ModuleType, _data: array[int]) -> None:
    columns, bounds, keys = _laid(rng)
    core.self_sums(*columns, bounds, _zeros("q", rng.choice((0, 3, 6, 40))), _zeros("q", keys))


def _hash_packets(rng: random.Random, core: ModuleType, data: array[int]) -> None:
    whole = len(data) if rng.random() < 0.1 else len(data) - len(data) % 32
    core.hash_packets(data[:whole], _zeros("Q", 16 + (rng.random() < 0.05)))


STATE = (
    *(0, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0, 0, 0, 0, -1, 0, 0),
    *(INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, 0, 0, 0, 0, 0, 0, *(0,) * 9),
    *((INT64_MIN,) * 8),
)
"""The state before the first event, see OpPass."""


def _op_pass(rng: random.Random, core: ModuleType, _data: array[int]) -> None:
    """Blocks of events into outputs of some rooms; most are sound, some have a place in the state that lies outside."""
    n, ids, steps, times, k = rng.randrange(12), rng.randrange(1, 6), rng.randrange(4), rng.randrange(4), 3
    span, odd = sorted(rng.randrange(60) for _ in range(2 * steps)), 0.03 if rng.random() < 0.3 else 0.0
    state = array("q", STATE)
    if rng.random() < 5 * odd:
        state[rng.choice((11, 12, 13, 14, *range(25, 43)))] = rng.choice((-1, 1, 3, 1 << 40, *EXTREMES))
    rooms = [rng.choice((0, 1, 2, 40)) if rng.random() < 5 * odd else 60 for _ in range(9)]
    columns = rng.randrange(ids + 1)
    outputs = [_zeros("q", room * width) for room, width in zip(rooms, (3, 2, 2, 2, 2, 3, 5, 3, 3), strict=True)]
    kept = [
        *(state, _zeros("q", rng.choice((0, n)))),
        *(*(_zeros("q", size) for size in (ids, ids, ids, ids, steps * columns)), _zeros("i", steps * columns)),
        *(array("i", [rng.choice((-1, 0, ids)) if rng.random() < odd else -1 for _ in range(ids)]), _zeros("q", steps)),
        *(_zeros("q", 5 * rng.choice((0, 1, 8, 40) if odd else (40,))), *outputs),
        _zeros("q", 4 * times),
    ]
    if rng.random() < 0.3:
        kept[5] = array("q", [INT64_MAX] * ids)
    off_duty, code = array("B", _bits(rng, ids)), array("B", [rng.choice((0, 1, 2, 2, 255)) for _ in range(ids)])
    traced = code if rng.random() < 0.7 else array("B", [])
    spans, rows = rng.choice((0, 1, 2, 3, 3)), [rng.choice((0, 0, -1)), rng.choice((1, 1, -1)), rng.choice((2, -1))]
    if rng.random() < odd:
        rows[rng.randrange(3)] = rng.choice((-2, k))
    for is_end in (0, 0, rng.choice((1, 2, -1) if odd else (1,))):
        offset = sorted(rng.randrange(60) for _ in range(n)) if rng.random() > odd * 5 else _times(rng, n)
        moved = rng.choice((0, 5))
        value = [*(min(at, 1 << 61) + moved for at in offset), *(rng.randrange(20) for _ in range(n)), *_times(rng, n)]
        kinds = (3, 3, 3, 4, 0) if rng.random() < 0.2 else (rng.choice((3, 3, 0)),)
        try:
            core.add_ops(
                array("i", [rng.randrange(ids) if rng.random() > odd else rng.choice((-1, ids)) for _ in range(n)]),
                array("q", offset),
                array("q", [rng.randrange(20) if rng.random() > odd else rng.choice(EXTREMES) for _ in range(n)]),
                array("B", [rng.choice(kinds) if rng.random() > odd else 2 for _ in range(k * n)]),
                *(array("q", value), off_duty, traced),
                *(array("q", span[0::2]), array("q", span[1::2]), array("q", sorted(_times(rng, times)))),
                *(*kept, rng.choice((0, 0, 3, *EXTREMES) if odd else (0, 3))),
                *(rng.choice((0, n, n + 1)) if rng.random() < odd else 0, n, is_end, spans, *rows),
            )
        except ValueError:
            if not odd:
                raise


def _bits(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(2) for _ in range(count)]


class Mistaking:
    """The core, of which some calls have a mistaken argument: another one, not aligned, too short, no buffer, missing.

    What the interpreter refuses of those is a ValueError too.
    """

    def __init__(self, core: ModuleType, rng: random.Random) -> None:
        self._core, self._rng = core, rng

    def __getattr__(self, name: str) -> Callable[..., object]:
        function, rng = getattr(self._core, name), self._rng

        def call(*given: object) -> object:
            if rng.random() > 0.1:
                return function(*given)
            args = list(given)
            at, other = rng.randrange(len(args)), rng.randrange(len(args))
            if isinstance(args[at], array | memoryview):
                args[at] = _mistaken(rng, memoryview(args[at]), args[other])  # type: ignore[arg-type]
            else:
                args[at] = rng.choice((-1, 1, 2, 1 << 20, 1 << 70, None, *EXTREMES))
            try:
                return function(*(args if rng.random() < 0.97 else args[:-1]))
            except (TypeError, BufferError, OverflowError) as error:
                raise ValueError from error

        return call


def _mistaken(rng: random.Random, held: memoryview, other: object) -> object:
    """Something in the place of an argument."""
    sort = rng.randrange(6)
    if sort == 0:
        return other
    if sort == 1:
        return memoryview(_zeros("B", held.nbytes + 1))[1:]
    if sort == 2:
        return held[: rng.randrange(len(held) + 1)]
    if sort == 3:
        return array(held.format, [*held.tolist(), 0])
    if sort == 4:
        return rng.choice((None, 3, bytes(held.nbytes), held[::-1]))
    return array(held.format, [*held.tolist()] * 2)


def run(core: ModuleType, cases: int, seed: int) -> tuple[int, int]:
    """Runs the cases; how many were accepted and how many refused with ValueError."""
    rng = random.Random(seed)
    mistaking: Any = Mistaking(core, rng)
    kinds: list[Callable[[random.Random, ModuleType, array[int]], None]] = [_nest, _lanes]
    kinds += [_hash_packets, _runs, _self_sums]
    kinds += [_split, _op_pass] * 2 + [_stats, _scan] * 3
    accepted = refused = 0
    for _ in range(cases):
        data = array("B", list(random_bytes(rng)))
        try:
            rng.choice(kinds)(rng, mistaking, data)
            accepted += 1
        except ValueError:
            refused += 1
    return accepted, refused


def load(path: str) -> ModuleType:
    """The compiled module at this path."""
    spec = importlib.util.spec_from_file_location("_core", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """See the module's text."""
    path, cases, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    accepted, refused = run(load(path), cases, seed)
    print(MARKER, accepted + refused, "accepted:", accepted, "refused:", refused)


if __name__ == "__main__":
    main()
