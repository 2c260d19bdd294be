r"""What a line of a log says, without what loggers, terminals and serialisers did to it.

Undone are colours, JSON around the message and line ends that are written out (``\n``, ``\\n`` in the repr of a repr).
Prefixes stay: they show which of several processes wrote a line, and what follows them is found by its words.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping

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
_MEMBER = re.compile(r'\s{0,80}"(\w{1,40})"\s?:\s?"')
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
    if (member := _MEMBER.match(text)) is not None and member[1].lower() in _MESSAGES:  # of a record over several lines
        text = f"{{{text.strip().rstrip(',')}}}"
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
