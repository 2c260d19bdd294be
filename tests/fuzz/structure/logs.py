"""Logs with out-of-memory errors of every form, as loggers, terminals and containers write them."""

from __future__ import annotations

import gzip
import random

from tests.fuzz.mutate import mutated
from tests.parsers.memory.oom.read import texts
from tests.parsers.memory.oom.read.mutations import PREFIXES, STYLES, interleaved, noise, shuffled

_ERRORS = tuple(text for text, _ in texts.ALL.values())
_SIZES = ("0B", "1.5G", "unknown size", "99999999999999999999G", "1023.99P", "-1K", "16B", "0.0M", "12.5%")
_OTHERS = (
    "CUDA_ERROR_OUT_OF_MEMORY: out of memory\n",
    "terminate called after throwing an instance of 'std::bad_alloc'\n",
    "Out of memory: Killed process 4711 (python)\n",
    "MemoryError\n",
    "XLA_FLAGS=--xla_dump_to=/tmp/dump python train.py\n",
    "E1000: CompileTimeHbmOom: [type.googleapis.com/tpu.Error] RESOURCE_EXHAUSTED: \n",
    "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\n\n\n\n\nstep 1\n",
    "Error loading program 'jit_step': Error allocating device buffer: \n",
    '{"log": "no end", "stream": "stdout"}\n{"a": [{"b": 1}], "message": null, "rank": 3}\n{"out of memory": {}}\n',
    "{out of memory}\n{not JSON: ut of memory}\n",
    'Attempting to allocate 1.00G \\303\\274 op_name=\\"a\\" shape = \\"b\\"\\u00e9 \\x41\n',
    "2026-11-21T15:24:20.1Z stdout P half a line, out of memory\n",
    "9. Size: 1.0K\nLargest program allocations in hbm:\n",
    "Scoped allocation with size 17.0M and limit 16.0M exceeded scoped vmem limit by 1.0M.\n",
)
_DEEP = '{"log": ' * 12 + '"out of memory"' + "}" * 12 + "\n"


def log(rng: random.Random) -> bytes:
    """One to some errors with lines of a run between them, their lines changed, in one of the ways to write a log."""
    how = rng.random()
    if how < 0.01:
        return _many(rng)
    if how < 0.03:
        return _endless(rng)
    parts = [_part(rng) for _ in range(rng.choice((1, 1, 2, 3, 6)))]
    if how < 0.15:
        data = interleaved([(rng.choice((*PREFIXES.values(), lambda _: "")), part) for part in parts])
    elif how < 0.35:
        copies = [rng.choice(parts).encode()] * rng.choice((2, 3, 9)) + [part.encode() for part in parts]
        data = shuffled(copies, rng.randrange(1 << 30), rng.choice((1, 3, 20)))
    else:
        data = rng.choice(tuple(STYLES.values()))("".join(parts))
    if rng.random() < 0.2:
        data = mutated(rng, data)
    return _packed(rng, data)


def _part(rng: random.Random) -> str:
    how = rng.random()
    if how < 0.2:
        return noise(rng.randrange(80), rng.randrange(9)).decode()
    if how < 0.45:
        return rng.choice((*_OTHERS, _DEEP))
    lines = rng.choice(_ERRORS).splitlines(keepends=True)
    if rng.random() < 0.5:
        for _ in range(rng.choice((1, 2, 8))):
            _change(rng, lines)
    return "".join(lines) + ("" if rng.random() < 0.1 else "\n")


def _change(rng: random.Random, lines: list[str]) -> None:
    if not lines:
        return
    at, how = rng.randrange(len(lines)), rng.randrange(7)
    if how == 0:
        del lines[at : at + rng.choice((1, 3, 50))]
    elif how == 1:
        lines[at:at] = [lines[at]] * rng.choice((1, 40))
    elif how == 2:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif how == 3:
        lines.insert(at, rng.choice(rng.choice(_ERRORS).splitlines(keepends=True) or [""]))
    elif how == 4:
        lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
    elif how == 5:
        words = lines[at].split(" ")
        words[rng.randrange(len(words))] = rng.choice(_SIZES)
        lines[at] = " ".join(words)
    else:
        del lines[at:]


def _many(rng: random.Random) -> bytes:
    """More different errors than are kept, or entries than one may have."""
    if rng.random() < 0.5:
        one = "RESOURCE_EXHAUSTED: Attempting to allocate {}M. That was not possible. There are 1.00M free.\n"
        return "".join(one.format(n) for n in range(1, 230)).encode()
    head, entries, end = texts.HBM.text().partition("  1. Size: ")
    listed = "".join(f'  {n}. Size: {n}.0K\n     Operator: op_name="a{n}"\n' for n in range(1, 4000))
    return (head + listed + entries + end).encode()


def _endless(rng: random.Random) -> bytes:
    """A line longer than is read at once, with an error in it."""
    filler = rng.choice((b"x", b"x ", b"ab\\\\\\n ", b"ut of memory"))
    text = rng.choice(_ERRORS).replace("\n", "\\n").encode()
    data = filler * (rng.choice((1 << 20, 1_300_000)) // len(filler)) + text + filler * 100
    return gzip.compress(data, 1) if rng.random() < 0.5 else data


def _packed(rng: random.Random, data: bytes) -> bytes:
    """In gzip at times, whole or in members, with zeros between them, damaged or cut."""
    if rng.random() > 0.15:
        return data
    cut = rng.randrange(len(data) + 1)
    made = gzip.compress(data[:cut], 1) + bytes(rng.choice((0, 7, 512))) + gzip.compress(data[cut:], 1)
    how = rng.random()
    return made[: rng.randrange(2, len(made))] if how < 0.2 else mutated(rng, made) if how < 0.4 else made
