r"""Puts the lines of a log together to out-of-memory texts, each line with the one that it belongs to.

Several processes may write into one log, line by line in turn. What stands in front of a line distinguishes them: the
lines of a text begin like its first line does, times aside, or have nothing in front at all.

What loggers, terminals and serialisers did to a line is undone first: colours, JSON around the message and line ends
that are written out (``\n``, ``\\n`` in the repr of a repr).
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.oom.read.forms import (
    ANCHORS,
    BEGINNING,
    HEADLESS,
    INTERESTING,
    LEADS,
    MESSAGES,
    Piece,
    pieces,
)
from tpuprof.parsers.memory.oom.read.partial_report import PartialReport
from tpuprof.parsers.memory.oom.read.stream import LogLine

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
_MEMBER = re.compile(r'\s{0,80}"(\w{1,40})"\s?:\s?"')
_ELEMENT = re.compile(r'\s{1,80}("(?:[^"\\]|\\.)*"),?\s*$')
_YAML = re.compile(r"\s{0,80}(\w{1,40}): (['\"])(.*)\2\s*$")
_YAML_PLAIN = "textPayload: "

_TAGS = "a|b|i|p|br|hr|li|ul|ol|td|th|tr|table|thead|tbody|div|pre|span|code|font|samp|strong|em|body|html"
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]{{0,500}})?/?>")
_MARKUP = re.compile(_TAG.pattern + "|&(?:quot|lt|gt|amp|nbsp|apos|#[0-9]{1,5}|#x[0-9A-Fa-f]{1,4});")
_TAG_OF_LINE = re.compile(r"<br\s?/?>|</(?:p|li|tr|div|pre)>")
_TAG_OF_CELL = re.compile(r"</t[dh]>|</span>(?=<span)")
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
    text = _without_markup(_without_colours(content.decode("utf-8", "surrogateescape")))
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


def _without_markup(text: str) -> str:
    """The text of a line of HTML; other lines, which have names such as ``<lambda>`` too, as they are."""
    if _MARKUP.search(text) is None:
        return text
    text = _TAG_OF_CELL.sub(" ", _TAG_OF_LINE.sub("\n", text))
    return html.unescape(_TAG.sub("", text)).replace("\xa0", " ")


def _unescape(match: re.Match[str]) -> str:
    if match[3]:
        return chr(int(match[3], 8))
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _LETTERS.get(match[4], match[4])


def _record(text: str) -> tuple[str, str | None]:
    """What stands for the origin of a JSON record, and its message without colours; None where the text is none.

    A record behind something else is one only if a name in it shows which the message is: labels have braces too.
    """
    text = _as_record(text)
    is_array = text[:80].lstrip().startswith("[") and text[-64:].rstrip().endswith("]")
    begin = 0 if is_array else text.find("{", 0, _LONGEST_PREFIX) if text[-64:].rstrip().endswith("}") else -1
    if begin < 0:
        return "", None
    before = "" if text[:begin].isspace() else text[:begin]
    origins, message = _from_json(text[begin:], not before)
    return before + origins, None if message is None else _without_colours(message)


def _as_record(text: str) -> str:
    """A line of a record over several lines, or of an array of texts, as a record of its own; others as they are."""
    if (member := _MEMBER.match(text)) is not None and member[1].lower() in MESSAGES:
        return f"{{{text.strip().rstrip(',')}}}"
    if (element := _ELEMENT.match(text)) is not None:
        return f'{{"line": {element[1]}}}'
    if (scalar := _YAML.match(text)) is not None and scalar[1].lower() in MESSAGES:
        value = json.dumps(scalar[3].replace("''", "'")) if scalar[2] == "'" else f'"{scalar[3]}"'
        return f'{{"line": {value}}}'
    return f'{{"line": {json.dumps(text.removeprefix(_YAML_PLAIN))}}}' if text.startswith(_YAML_PLAIN) else text


def _from_json(text: str, is_all: bool) -> tuple[str, str | None]:
    """The origin and the message of a JSON record, or of an array of them or of texts; None where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "", None
    if not isinstance(value, list):
        return _of_record(value, is_all)
    found = [("", each) if isinstance(each, str) else _of_record(each, True) for each in value]
    messages = [message.rstrip("\n") for _, message in found if message is not None]
    return (found[0][0], "\n".join(messages)) if messages else ("", None)


def _of_record(record: object, is_all: bool) -> tuple[str, str | None]:
    """A record's origin and its message: the longest of the texts that are called so, else of all but times."""
    origins: list[str] = []
    named: list[str] = []
    others = [""]
    for name, value in itertools.islice(_leaves(record, 0) if isinstance(record, dict) else (), _MOST_TEXTS):
        if _PROCESS.search(name):
            origins.append(f"{name}={str(value)[:100]}")
        elif isinstance(value, str):
            if name.lower().rpartition(".")[2] in MESSAGES:
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
        elif isinstance(value, list) and all(isinstance(each, str) for each in value):
            yield str(name), "\n".join(each.rstrip("\n") for each in value)
        elif isinstance(value, str | int):
            yield str(name), value


_MOST_OPEN = 256
_MOST_CHARACTERS = 1 << 25
_LEAD_LINES = 3
_STEPS_A_LINE, _STEPS_A_FORM = 50, 150
"""Turns of a loop that cleaning a line takes, and a form in it."""

_PROGRAM = re.compile(r"Error loading program '([^'\n]{1,500})'")
_CODE = re.compile(r"E[0-9]{4}")
_OOM_CODES = ("CompileTimeHbmOom", "CompileTimeScopedVmemOom", "BufferAllocationFailure", "ProgramAllocationFailure")

_SPACE_NAMES = ("hbm", "vmem", "smem")
_BEGINNINGS = (
    *("reserved", "program", "arguments", "global", "scoped", "overlays", "HLO temp", "Size: ", "Operator: "),
    *("Shape: ", "Unpadded size: ", "Extra memory due to padding: ", "Tag: ", "XLA label: ", "Allocation type: "),
    *("Used ", "Scoped allocation with size ", "while allocating on stack for ", "Output size unknown"),
    *(f"Total {space} usage >= " for space in _SPACE_NAMES),
    *(f"Program {space} requirement " for space in _SPACE_NAMES),
    *(f"Largest program allocations in {space}" for space in _SPACE_NAMES),
    *(f"Exceeded {space} capacity by " for space in _SPACE_NAMES),
)
_PARTIAL = re.compile(
    r"(?:^|\s)(?:[0-9]{1,6}(?:\. ?(?:S[ize]{0,3}:? ?)?)?|="
    + "".join(f"|{re.escape(text[:end])}" for text in _BEGINNINGS for end in range(len(text), 0, -1))
    + r")[0-9.]{0,20}\s*$"
)


@dataclass(slots=True)
class _Lead:
    """What stood in front of an error that is still to come."""

    head: str
    number: int
    code: str | None = None
    code_name: str = ""
    program: str | None = None
    loading: bool = False
    is_device_buffer: bool = False


class Blocks:
    """Takes lines and gives finished partial reports to `on_partial`, and every line's text and number to
    `on_other`.

    Attributes:
        steps: turns of a loop that the lines have taken so far, about.
        began: the line with which the latest error began.
    """

    def __init__(self, on_partial: Callable[[PartialReport], None], on_other: Callable[[str, int], None]) -> None:
        self._on_partial = on_partial
        self._on_other = on_other
        self._open: list[PartialReport] = []  # the one that got the latest line last
        self._leads: list[_Lead] = []
        self._here: PartialReport | None = None  # what this line of the log goes on with
        self._in_payload = False
        self._check_at = self.began = 0
        self.steps = 0

    @property
    def is_idle(self) -> bool:
        return not self._open and not self._leads

    def add(self, line: LogLine, ends_log: bool) -> None:
        """Takes a line; `ends_log` where the log ends in the middle of it."""
        if not line.continues:
            self._here, self._in_payload = None, False
        if line.number >= self._check_at:
            self._expire(line.number)
        # a cut word is no interesting one yet
        wanted = BEGINNING if self.is_idle else INTERESTING
        if wanted.search(line.content) is None and not ends_log:
            return
        parts = clean_lines(line.content)
        self.steps += len(parts) * (_STEPS_A_LINE + len(self._open) + len(self._leads))
        for left, part in enumerate(parts, 1 - len(parts)):
            self._add_part(part, line.number, ends_log and left == 0)

    def begun(self, number: int) -> PartialReport | None:
        """The error that a line began, where nothing else is open."""
        return self._open[0] if self.began == number and len(self._open) == 1 and not self._leads else None

    def finish(self) -> None:
        self._expire(None)

    def _add_part(self, text: str, number: int, ends_log: bool) -> None:
        self._on_other(text, number)
        prefix, forms = pieces(text, ends_log)
        self.steps += len(forms) * _STEPS_A_FORM
        if not forms:
            if ends_log and self._open and number - self._open[-1].last_line <= 3 and _PARTIAL.search(text):
                self._open[-1].cut_here()
            return
        key = origin(prefix)
        for piece in forms:
            if piece.form == "payload":
                self._in_payload = True
            elif piece.form == "repeated":
                self._repeat(piece)
            elif piece.form in LEADS:
                self._lead(piece, key, prefix, number)
            elif piece.form in ANCHORS:
                self._begin(piece, key, prefix, number)
            else:
                self._continue(piece, key, number)

    def _repeat(self, piece: Piece) -> None:
        """Ray prints a line that several workers have once, and how many there were behind it."""
        if self._here is not None and self._here.bound is None:
            self._here.count = int(piece.rest.partition("x")[0])

    def _lead(self, piece: Piece, key: str, prefix: str, number: int) -> None:
        lead = next((each for each in self._leads if each.head == key and number - each.number < _LEAD_LINES), None)
        if lead is None:
            lead = _Lead(key, number)
            self._leads = [*self._leads[-_MOST_OPEN:], lead]
        if piece.form == "code":
            code = _CODE.match(piece.text)
            lead.code = code[0] if code is not None else lead.code
            if code is not None and "RESOURCE_EXHAUSTED" in prefix and not self._in_payload:
                lead.code_name = piece.text[: piece.head].rstrip(":").rsplit(" ", 1)[-1]
        elif piece.form == "load":
            name = _PROGRAM.match(piece.text)
            lead.loading, lead.program = True, name[1] if name is not None else lead.program
        else:
            lead.is_device_buffer = True
        self._check_at = min(self._check_at, number + _LEAD_LINES + 1)

    def _begin(self, piece: Piece, key: str, prefix: str, number: int) -> None:
        lead = next((each for each in reversed(self._leads) if each.number == number or _same(each.head, key)), None)
        if piece.form == "attempt" and lead is None and not _is_failure(piece.text, prefix):
            return
        partial = PartialReport(piece.form, key, number, number, is_payload=self._in_payload)
        if not partial.take(piece):
            return
        if lead is not None:
            self._leads.remove(lead)
            partial.at_line = min(number, lead.number)
            partial.code, partial.loading = lead.code, lead.loading
            partial.program = lead.program or partial.program
            if piece.form == "attempt":
                program = f" '{lead.program}'" if lead.program is not None else ""
                buffer = "Error allocating device buffer:" if lead.is_device_buffer else ""
                partial.sentence.insert(0, f"Error loading program{program}:" if lead.loading else buffer)
        if piece.ends_log and partial.form == "ran" and "short" not in partial.seen:
            partial.cut_here()
        before = [  # of the same process, which is through with them then
            each for each in self._open if each.head == key or (each.bound is not None and _begins(key, each.bound))
        ]
        self._close(before)
        self._open.append(partial)
        self._here, self.began = partial, number
        self._close(self._open[:-_MOST_OPEN])
        if sum(each.characters for each in self._open) > _MOST_CHARACTERS:
            self._close(self._open[:-1])
        self._check_at = min(self._check_at, number + 30)

    def _continue(self, piece: Piece, key: str, number: int) -> None:
        partial = self._here if self._here is not None else self._owner(key)
        took = partial is not None and partial.take(piece)
        if not took and (begun := self._without_beginning(piece, key, number)) is not None:
            partial, took = begun, True
        if partial is None:
            return
        if piece.ends_log and (not took or piece.form not in ("scoped_limit", "exceeded", "rule", "type")):
            partial.cut_here()
        if not took:
            return
        if partial.last_line != number:
            partial.last_line = number
            if partial.at_line != number and partial.bound is None:
                partial.bound = key
        self._here = partial
        if self._open and self._open[-1] is not partial:
            self._open.remove(partial)
            self._open.append(partial)

    def _without_beginning(self, piece: Piece, key: str, number: int) -> PartialReport | None:
        """Opens a text whose beginning is not in the log, where a form identifies it."""
        if piece.form not in HEADLESS:
            return None
        begun = PartialReport(piece.form, key, number, number, is_payload=self._in_payload)
        if not begun.take(piece):
            return None
        self._open.append(begun)
        self.began = number
        self._close(self._open[:-_MOST_OPEN])
        return begun

    def _owner(self, key: str) -> PartialReport | None:
        latest = self._open[::-1]
        bound = next((partial for partial in latest if partial.bound == key), None)
        unbound = (partial for partial in latest if partial.bound is None and _begins(partial.head, key))
        partial = bound or next(unbound, None)
        if partial is not None or not key:
            return partial or (latest[0] if len(latest) == 1 else None)
        plain = without_digits(key)
        alike = [
            partial
            for partial in latest
            if (
                without_digits(partial.bound) == plain
                if partial.bound
                else _begins(without_digits(partial.head), plain)
            )
        ]
        return max(alike, key=lambda partial: _shared(partial.bound or partial.head, key), default=None)

    def _expire(self, number: int | None) -> None:
        """Ends what has waited too long at a line; all at the end of the log."""
        for lead in [each for each in self._leads if number is None or number - each.number > _LEAD_LINES]:
            self._leads.remove(lead)
            if lead.code_name.endswith(_OOM_CODES):
                self._on_partial(_only_code(lead))
        self._close([each for each in self._open if number is None or number - each.last_line > each.patience])
        if number is not None:
            self._check_at = number + (30 if not self._leads else 1)

    def _close(self, partials: list[PartialReport]) -> None:
        if not partials:
            return
        closed = {id(partial) for partial in partials}
        self._open = [each for each in self._open if id(each) not in closed]
        for partial in partials:
            partial.finish()
            self._on_partial(partial)


def _same(first: str, second: str) -> bool:
    """Whether two lines that both begin an error, or lead to one, come from the same process."""
    return _begins(first, second) or _begins(second, first) or without_digits(first) == without_digits(second)


def _begins(head: str, key: str) -> bool:
    """Whether a line that begins with `head` may have the origin `key`."""
    is_cut = 0 < len(key) < len(head) and key[-1].isalnum() and head[len(key)].isalnum()
    return head.startswith(key) and not is_cut


def _shared(first: str, second: str) -> int:
    """How many words two origins have in common, place by place."""
    words = (re.split(r"[\s\[\]():=,|]+", text) for text in (first, second))
    return sum(one == other for one, other in zip(*words, strict=False))


def _is_failure(text: str, prefix: str) -> bool:
    """Whether an attempt to allocate failed; programs that count their attempts print the same words."""
    has_failed = "RESOURCE_EXHAUSTED" in prefix or "That was not possible" in text
    return has_failed or re.search(r"There are \S+ free", text) is not None


def _only_code(lead: _Lead) -> PartialReport:
    """An error of which there is nothing but its code."""
    form = "ran" if lead.code_name.startswith("CompileTime") else "attempt"
    partial = PartialReport(form, lead.head, lead.number, lead.number, code=lead.code, program=lead.program)
    partial.space = "vmem" if "Vmem" in lead.code_name else "hbm"
    partial.loading = lead.loading or "Program" in lead.code_name
    partial.sentence.append(f"{lead.code}: {lead.code_name}.")
    partial.cut_here()
    return partial
