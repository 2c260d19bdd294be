r"""What a line of a log says, without what loggers, terminals and serialisers did to it.

Undone are colours, JSON around the message and line ends that are written out (``\n``, ``\\n`` in the repr of a repr).
Prefixes stay: they show which of several processes wrote a line, and what follows them is found by its words. Before
all that, `Joiner` puts lines together again that a container's runtime wrote in parts, as it does with all over 16 KiB.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.oom.read.stream import LONGEST_LINE, LogLine

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|\x1b[@-Z\\^_=>78]"
    r"|(?:#033|\^\[)?\[[0-9]{1,3}(?:;[0-9]{1,3}){0,5}m|(?:#033|\^\[)\[[mK]"  # as syslog or a pager writes them
)
_MAY_HAVE_ANSI = re.compile(r"\x1b|\[[0-9;]{1,20}m|(?:#033|\^\[)\[")

_HEADS = (
    r"(?:Total |Program |Largest |[0-9]{1,9}\. Size|Output size|Operator:|Shape:|Unpadded size|Extra memory|Tag:"
    r"|XLA label|Allocation type|Allocation \(|==========|reserved |program |arguments |global |scoped |overlays "
    r"|HLO temp|Exceeded |Used |Scoped alloc|Ran out|See http|Attempting |Error alloc|Error load|while alloc"
    r"|E[0-9]{4}: |CompileTime|Runtime)"
)
_WRITTEN_END = re.compile(
    r"(?<!\\)(\\{1,16})n(?:\\{1,16}[nrt]){0,4}[ \t]{0,80}(?:\\{1,16}[nrt]){0,4}[ \t]{0,80}" + _HEADS
)
_WRITTEN_QUOTE = re.compile(
    r"(?:op_name=|op_type=|source_file=|shape = |tag = |custom_call_target=|loading program )\\{1,15}[\"']"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-3][0-7]{2})|([\s\S]))")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": " ", "v": " ", "a": " "}
_MOST_ROUNDS = 5

_LINE_END = re.compile(r"\r?\n|\r")

_PROCESS = re.compile(
    r"(?i)(?:^|[._-])(?:hostname|host|node|pod|rank|pid|process|instance|worker|replica|task|container|thread|job)"
)
_MESSAGES = frozenset(
    {"log", "message", "msg", "textpayload", "text", "body", "line", "data", "content", "payload", "event"}
    | {"error", "err", "exception", "exc_info", "exc_text", "traceback", "stack", "stacktrace", "stack_trace"}
    | {"error_message", "errormessage", "detail", "details", "reason"}
)
"""How loggers call what was logged, in lower case."""
_ERROR = "ut of memory"
_MOST_DEPTH, _MOST_TEXTS, _MOST_RECORDS = 8, 64, 3
_A_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]*(?:Z|[+-][0-9:]{4,6})?$")

_TIME = re.compile(
    r"[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}[T ]?"
    r"|\b[0-9]{2}[-/][0-9]{2}(?= [0-9]{2}:)"
    r"|\b[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z\b|[+-][0-9]{2}:?[0-9]{2}\b)?"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +[0-9]{1,2}\b"
    r"|\b[IWEF][0-9]{4}(?= )"  # glog: severity and date
    r"|\b[0-9]{10}(?:[0-9]{3}|[0-9]{6}|[0-9]{9})?(?:\.[0-9]+)?\b"  # since 1970
    r"|\[ *[0-9]+\.[0-9]+\]"  # since the machine or the container started
)
_SPACES = re.compile(r"\s+")
_DIGITS = re.compile(r"[0-9]+")
_LONGEST_PREFIX = 400

_MOST_STREAMS, _MOST_WAIT = 8, 64
_SPLIT_AT = 16_000  # a record this long without a line end in it is a part, whatever the others are like

# Docker: a record is a part of a line where what was logged has no line end
_RECORD = re.compile(rb'\{[^{}]*?"log"\s{0,9}:\s{0,9}"([^"\\]*(?:\\.[^"\\]*)*)"\s{0,9}[,}]')
_STREAM = re.compile(rb'"(?:stream|source)"\s*:\s*"(\w{1,20})"')
_TAG = re.compile(rb'"logtag"\s*:\s*"([PF])"')
# the container runtime interface: P marks a part, F the last one
_MARKED = re.compile(rb"(?:\S{1,80} )?[0-9]{4}-[0-9]{2}-[0-9]{2}T\S{1,40} (stdout|stderr) ([PF])(?: |$)")


def clean_lines(content: bytes) -> list[str]:
    """The lines that a line of the log stands for: one, more where line ends are written out."""
    text = _without_colours(content.decode("utf-8", "surrogateescape"))
    prefix = ""
    for _ in range(_MOST_RECORDS):
        before, message = _record(text)
        if message is None:
            break
        prefix, text = prefix + before, message
    for _ in range(_MOST_ROUNDS):
        if "\\" not in text or not (_WRITTEN_END.search(text) or _WRITTEN_QUOTE.search(text)):
            break
        text = _without_colours(_ESCAPE.sub(_unescape, text))
    return [prefix + line for line in _LINE_END.split(text)]


def origin(prefix: str) -> str:
    """What in front of a line shows which process wrote it: times replaced, since they differ from line to line."""
    return _SPACES.sub(" ", _TIME.sub("~", prefix[:_LONGEST_PREFIX])).strip()


def without_digits(prefix: str) -> str:
    """An origin with all numbers replaced: line numbers of the source or the log, sequence numbers, …"""
    return _DIGITS.sub("#", prefix)


def _without_colours(text: str) -> str:
    return _ANSI.sub("", text) if _MAY_HAVE_ANSI.search(text) else text


def _unescape(match: re.Match[str]) -> str:
    if match[3]:
        return chr(int(match[3], 8))
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _LETTERS.get(match[4], match[4])


def _record(text: str) -> tuple[str, str | None]:
    """What stands for the origin of a JSON record, and its message without colours; None where the text is none.

    A record behind something else is one only if a name in it shows which the message is: labels have braces too.
    """
    begin = text.find("{", 0, _LONGEST_PREFIX) if text[-64:].rstrip().endswith("}") else -1
    if begin < 0:
        return "", None
    before = "" if text[:begin].isspace() else text[:begin]
    origins, message = _from_json(text[begin:], not before)
    return before + origins, None if message is None else _without_colours(message)


def _from_json(text: str, is_all: bool) -> tuple[str, str | None]:
    """A JSON record's origin and its message; None where it is no such record.

    The message is the longest of the texts that are called so, else of all but times.
    """
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return "", None
    origins: list[str] = []
    named: list[str] = []
    others = [""]
    for name, value in itertools.islice(_leaves(record, 0) if isinstance(record, dict) else (), _MOST_TEXTS):
        if _PROCESS.search(name):
            origins.append(f"{name}={str(value)[:100]}")
        elif isinstance(value, str):
            if name.lower().rpartition(".")[2] in _MESSAGES:
                named.append(value)
            elif not _A_TIME.match(value):
                others.append(value)
    message, longest = max(named, key=len, default=None), max(others, key=len)
    if is_all and (message is None or (_ERROR in longest and _ERROR not in message)):
        message = longest or None
    return f"{{{' '.join(origins)}}} ", message


def _leaves(record: Mapping[object, object], depth: int) -> Iterator[tuple[str, object]]:
    for name, value in record.items():
        if isinstance(value, dict):
            if depth < _MOST_DEPTH:
                yield from _leaves(value, depth + 1)
        elif isinstance(value, str | int):
            yield str(name), value


@dataclass(slots=True)
class _Open:
    """A line of which parts were read.

    Attributes:
        first, end: the line of the log with the first part, and where that part ends in it.
        parts, texts: the other lines, and what they add.
        size: bytes so far.
        length: of every part as it was written.
        is_sure: whether these are parts at all.
    """

    first: LogLine
    end: int
    parts: list[LogLine]
    texts: list[bytes]
    size: int
    length: int
    is_sure: bool

    def whole(self) -> LogLine:
        """One line with all parts."""
        content = self.first.content
        return replace(self.first, content=b"".join([content[: self.end], *self.texts, content[self.end :]]))


class Joiner:
    """Takes lines and gives them, parts put together; those of standard output and error may take turns."""

    def __init__(self) -> None:
        self._open: dict[bytes, _Open] = {}
        self._has_line_ends: bool | None = None  # whether records have those of their lines

    @property
    def is_waiting(self) -> bool:
        """Whether the rest of a line is to come."""
        return bool(self._open)

    def add(self, line: LogLine) -> Iterator[LogLine]:
        """What is complete with a line."""
        if self._open:
            yield from self._flush(line.number - _MOST_WAIT)
        content = line.content
        if line.continues:
            yield line
        elif content[:1] == b"{" and content[-9:].rstrip().endswith(b"}"):
            yield from self._record(line)
        elif not line.is_whole:
            yield from self._flush(None)
            yield line
        elif b" P" in content[:200] or (self._open and b" F" in content[:200]):
            yield from self._marked(line)
        else:
            yield line

    def finish(self) -> Iterator[LogLine]:
        """What is left at the end."""
        yield from self._flush(None)

    def _record(self, line: LogLine) -> Iterator[LogLine]:
        match = _RECORD.match(line.content)
        if match is None:
            yield line
            return
        stream, tag = _STREAM.search(line.content), _TAG.search(line.content)
        text, ended = match[1], match[1].endswith(b"\\n")
        if tag is not None:
            is_part, is_sure = tag[1] == b"P", True
        else:
            self._has_line_ends = ended or self._has_line_ends
            is_long = len(text) >= _SPLIT_AT
            is_part = not ended and (self._has_line_ends is not False or is_long)
            is_sure = self._has_line_ends is True or is_long
        yield from self._part(line, stream[1] if stream is not None else b"", match.end(1), text, is_part, is_sure)

    def _marked(self, line: LogLine) -> Iterator[LogLine]:
        match = _MARKED.match(line.content)
        if match is None:
            yield line
            return
        text = line.content[match.end() :].rstrip(b"\r")
        # put together, it is like all other lines
        line = replace(line, content=line.content[: match.start(2)] + b"F" + line.content[match.end(2) :])
        yield from self._part(line, b"cri " + match[1], match.end() + len(text), text, match[2] == b"P", True)

    def _part(
        self, line: LogLine, key: bytes, end: int, text: bytes, is_part: bool, is_sure: bool
    ) -> Iterator[LogLine]:
        open_ = self._open.get(key)
        if open_ is None:
            if is_part and len(self._open) < _MOST_STREAMS:
                self._open[key] = _Open(line, end, [], [], len(line.content), _length(text), is_sure)
            else:
                yield line
            return
        if not open_.is_sure and (_length(text) != open_.length if is_part else _length(text) > open_.length):
            # parts are of one length, a last one is shorter: these are lines whose ends were taken away
            self._has_line_ends = self._has_line_ends or False
            yield from self._flush(None)
            yield line
            return
        open_.parts.append(line)
        open_.texts.append(text)
        open_.size += len(text)
        open_.is_sure |= is_sure
        if not is_part or open_.size > LONGEST_LINE:
            del self._open[key]
            yield open_.whole()

    def _flush(self, before: int | None) -> Iterator[LogLine]:
        """Gives up what has waited since a line, or all."""
        waited = [key for key, open_ in self._open.items() if before is None or open_.first.number < before]
        for open_ in map(self._open.pop, waited):
            yield from (open_.whole(),) if open_.is_sure else (open_.first, *open_.parts)


def _length(text: bytes) -> int:
    """Bytes of a part before it was written as JSON."""
    try:
        return len(json.loads(b'"' + text + b'"').encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return len(text)
