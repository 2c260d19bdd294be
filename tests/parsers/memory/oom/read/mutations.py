"""What happens to a text on its way into a log: prefixes, colours, escapes; the error in it stays the same."""

from __future__ import annotations

import gzip
import html
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence

Mutation = Callable[[str], bytes]


def prefixed(prefix: Callable[[int], str]) -> Mutation:
    """Every line begins with `prefix` of its number."""
    return lambda text: "".join(f"{prefix(number)}{line}\n" for number, line in enumerate(_lines(text))).encode()


def _lines(text: str) -> list[str]:
    return text.split("\n")[:-1]


def _clock(number: int) -> str:
    return f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}"


PREFIXES: dict[str, Callable[[int], str]] = {
    "glog": lambda n: f"E0101 {_clock(n)}.{n:06} 123 tpu_compiler.cc:12] ",
    "absl": lambda n: f"E1121 {_clock(n)}.{n:06} 140737353 pjrt.py:{n % 7 + 10}] ",
    "logging": lambda n: f"2026-11-21 15:{n // 60 % 60:02}:{n % 60:02},{n % 1000:03} - train - ERROR - ",
    "logging default": lambda n: "ERROR:jax._src.dispatch:",
    "vllm": lambda n: f"(EngineCore pid=123) ERROR 01-11 {_clock(n)} [core.py:12] ",
    "kubernetes": lambda n: f"2026-11-21T15:{n // 60 % 60:02}:{n % 60:02}.{n:09}Z stderr F ",
    "journald": lambda n: f"Nov 21 {_clock(n)} tpu-host-3 python[4242]: ",
    "rank": lambda n: "[rank0]: ",
    "docker": lambda n: "training-worker-1  | ",
    "ray": lambda n: "(RayTrainWorker pid=4711, ip=10.0.0.7) ",
    "quote": lambda n: "> ",
    "numbered": lambda n: f"{n + 41822}: ",
    "since start": lambda n: f"[{n + 100}.{n:06}] ",
    "epoch": lambda n: f"{1763740000 + n}.{n:03} host-a ",
    "kernel color": lambda n: "\x1b[36m(worker pid=1)\x1b[0m ",
    "tab": lambda n: "\t",
    "deep": lambda n: " " * 24,
    "own": lambda n: "*** my/log#7 >>> ",
}


def _colored(text: str) -> bytes:
    shown = re.sub(r"([0-9.]+[KMGB])\b", "\x1b[1;31m\\1\x1b[0m", text)
    return "".join(f"\x1b[31m{line}\x1b[0m\x1b[K\n" for line in _lines(shown)).encode()


def _fields(text: str) -> bytes:
    record = {"severity": "ERROR", "time": "2026-11-21T15:24:20Z", "message": text, "host": "tpu-vm-3"}
    return json.dumps(record).encode() + b"\n"


def _record_per_line(text: str) -> bytes:
    records = [
        {"insertId": f"id{number:x}", "textPayload": line, "resource": {"labels": {"pod_name": "train-0"}}}
        for number, line in enumerate(_lines(text))
    ]
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _named(*names: str) -> Mutation:
    """A record a line; the message is called so, inside of what the names before it say."""

    def mutation(text: str) -> bytes:
        records: list[object] = []
        for number, line in enumerate(_lines(text)):
            record: object = line
            for name in reversed(names):
                record = {"time": f"2026-11-21T15:24:20.{number:09}Z", name: record, "level": "error", "n": number}
            records.append(record)
        return "".join(json.dumps(record) + "\n" for record in records).encode()

    return mutation


def newest_first(indent: int | None) -> Mutation:
    """Records of a line each, and of a few lines before them, as a viewer exports them: in an array, or one a line."""

    def mutation(text: str) -> bytes:
        records = [
            {"insertId": f"a{n}", "textPayload": line, "labels": {"zone": "b"}, "timestamp": f"2026-06-01T{_clock(n)}Z"}
            for n, line in enumerate([*(f"step {n}" for n in range(5)), *_lines(text)])
        ][::-1]
        if indent is not None:
            return json.dumps(records, indent=indent).encode()
        return "".join(json.dumps(record) + "\n" for record in records).encode()

    return mutation


def _crlf(mutation: Mutation) -> Mutation:
    return lambda text: mutation(text).replace(b"\n", b"\r\n")


def docker_records(text: str, keys: Sequence[str] = ()) -> bytes:
    """Every line as Docker's json-file driver writes it; `keys` gives another order."""
    records = [
        {"log": f"{line}\n", "stream": "stderr", "time": f"2026-11-21T15:{_clock(n)[3:]}.{n:09}Z"}
        for n, line in enumerate(_lines(text))
    ]
    ordered = [{key: record[key] for key in keys or record} for record in records]
    return "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in ordered).encode()


STYLES: dict[str, Mutation] = {
    "notebook": lambda text: json.dumps({"outputs": [{"text": text.splitlines(keepends=True)}]}, indent=1).encode(),
    "array of records": lambda text: json.dumps([{"log": line, "n": 1} for line in _lines(text)]).encode() + b"\n",
    "html": lambda text: f"<html><pre>{html.escape(text)}</pre></html>\n".encode(),
    "html, a cell a line": lambda text: prefixed(lambda n: f"<tr><td>{n}</td>\t<td><b>")(html.escape(text)),
    "table": lambda text: (
        b"timestamp,jsonPayload.message,labels\n"
        + prefixed(lambda n: f"2026-06-01T{_clock(n)}Z,")('"' + text.replace('"', '""').replace("\n", '"\n"')[:-1])
    ),
    "table, one row": lambda text: ('"n","message"\n1,"' + text.replace('"', '""') + '"\n2,"end"\n').encode(),
    "yaml": lambda text: "".join(f"---\ntextPayload: {json.dumps(line)}\nn: 1\n" for line in _lines(text)).encode(),
    "plain": str.encode,
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "no end": lambda text: text.rstrip("\n").encode(),
    "first line only": lambda text: b"2026-11-21 15:24:20,123 ERROR trainer.py:12 step failed: " + text.encode(),
    "indent lost": lambda text: "".join(line.strip() + "\n" for line in _lines(text)).encode(),
    "one line": lambda text: " ".join(filter(None, map(str.strip, _lines(text)))).encode() + b"\n",
    "one line, spaces kept": lambda text: text.replace("\n", "").encode() + b"\n",
    "escaped": lambda text: text.replace("\n", "\\n").encode() + b"\n",
    "escaped crlf": lambda text: text.replace("\n", "\\r\\n").encode() + b"\n",
    "repr": lambda text: f"XlaRuntimeError({text!r})\n".encode(),
    "repr of a repr": lambda text: f"{{'error': {repr(text)!r}}}\n".encode(),
    "json": _fields,
    "json in a prefixed line": lambda text: b"2026-11-21 15:24:20 INFO sent " + _fields(text),
    "json in json": lambda text: json.dumps({"log": _fields(text).decode()}).encode() + b"\n",
    "json a line": _record_per_line,
    "docker": docker_records,
    "docker, other order": lambda text: docker_records(text, keys=("time", "stream", "log")),
    "docker in a prefixed line": lambda text: prefixed(lambda n: f"pod-1 {n} ")(docker_records(text).decode()),
    "json in docker": lambda text: docker_records(_named("message")(text).decode()),
    "record with message": _named("message"),
    "record with msg": _named("msg"),
    "record with jsonPayload": _named("jsonPayload", "message"),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16, big end first": lambda text: b"\xfe\xff" + text.replace("\n", "\r\n").encode("utf-16-be"),
    "utf-8 with a mark": lambda text: b"\xef\xbb\xbf" + docker_records(text),
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip of utf-16": lambda text: gzip.compress(text.encode("utf-16")),
    "colored": _colored,
    "color codes without escapes": lambda text: "".join(f"[31m{line}[0m\n" for line in _lines(text)).encode(),
    "newest first": newest_first(1),
    "newest first, a record a line": newest_first(None),
    "tabs": lambda text: text.replace("    ", "\t").encode(),
    "undecodable": lambda text: b"\xff\xfe\x80 noise\n" + text.encode() + b"\xc3\x28\n",
    "carriage returns": lambda text: b" 10%|#   |\r 20%|##  |\r" + text.encode(),
    **{f"prefix: {name}": prefixed(prefix) for name, prefix in PREFIXES.items()},
    **{f"prefix, crlf: {name}": _crlf(prefixed(prefix)) for name, prefix in PREFIXES.items()},
}


def interleaved(texts: Sequence[tuple[Callable[[int], str], str]]) -> bytes:
    """Texts line by line in turn, each line with its text's prefix."""
    columns = [prefixed(prefix)(text).splitlines(keepends=True) for prefix, text in texts]
    longest = max(len(column) for column in columns)
    return b"".join(column[row] for row in range(longest) for column in columns if row < len(column))


def cuts(content: bytes, step: int) -> Iterator[bytes]:
    """The beginning of a text, at every so many bytes."""
    for end in range(step, len(content), step):
        yield content[:end]


def noise(lines: int, seed: int = 0) -> bytes:
    """Lines that a training run prints, with words that errors have too."""
    kinds = (
        "step {n}: loss {x:.3f}, memory use {y}M of 15.75G, 3 requirements met",
        "I1121 15:24:20.{n:06} 17 buffer.cc:12] Allocated {n} bytes; program {y}K loaded, reserved",
        "[rank{y}]: Attempting to allocate slot {n}; Shape: (8, 128)",
        '{{"level": "info", "msg": "saved\\nstep {n}", "size": {y}}}',
        "    arguments: {n} {y}M",
    )
    return "".join(
        kinds[(n + seed) % len(kinds)].format(n=n, x=1 / (n + 1), y=(n * 7 + seed) % 97) + "\n" for n in range(lines)
    ).encode()


def shuffled(contents: Sequence[bytes], seed: int, burst: int = 1) -> bytes:
    """Lines of several writers as they happen to come, up to `burst` of one at once; each writer's in its order."""
    chance = random.Random(seed)
    rest = [content.splitlines(keepends=True) for content in contents]
    lines: list[bytes] = []
    while any(rest):
        writer = chance.choice([lines for lines in rest if lines])
        count = chance.randint(1, burst)
        lines += writer[:count]
        del writer[:count]
    return b"".join(lines)
