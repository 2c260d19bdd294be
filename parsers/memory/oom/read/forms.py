"""The forms that out-of-memory texts are made of, found by their words wherever they stand in a line; printed sizes.

Sizes are printed in binary multiples and rounded: ``27.81G``, ``980.0K``, ``0B``.
"""

from __future__ import annotations

import re
from fractions import Fraction

from tpuprof.parsers.base.record import dataclass

SIZE = r"[0-9]{1,20}(?:\.[0-9]{1,6})?[BKMGTPE](?!i?B)"
"""Expression for a printed size, without groups. ``2.5GiB`` is none: other programs write that."""

_UNITS = {unit: 1024**power for power, unit in enumerate("BKMGTPE")}
_PARTS = re.compile(r"([0-9]+)(?:\.([0-9]+))?([BKMGTPE])")
_LIMIT = 2**63
_WORD = r"(?<![\w./-])"
_NUMBER = re.compile(r"([0-9]{1,9})\.")

ANCHORS = ("ran", "allocation", "attempt", "cores", "cache")
"""Forms that begin an error; `LEADS` stand in front of one, at times on a line of their own."""
LEADS = ("code", "load", "device_buffer")

TABLES = ("total", "requirement", "largest")
"""Forms that head a table of an error; those of `HEADLESS` identify an error whose beginning is not in the log."""
HEADLESS = (*TABLES, "scoped_limit")

_FORMS = {
    "payload": r"\[type\.googleapis\.com/",
    "code": r"\bE[0-9]{4}: ?(?=CompileTime|Runtime)\w*:?|\b(?:CompileTime(?:Hbm|ScopedVmem)Oom"
    r"|Runtime(?:Buffer|Program)AllocationFailure):",
    "load": r"Error loading program",
    "device_buffer": r"Error allocating device buffer",
    "ran": r"Ran out of memory (?=in memory space \w|on \w)",
    "allocation": r"Allocation \(size=",
    "attempt": rf"Attempting to (?:allocate|reserve) (?={SIZE})|Could not allocate (?=[0-9]{{1,20}} bytes in memory )",
    "capacity": rf"HBM capacity (?={SIZE})",
    "live": rf"Currently allocated: {{1,60}}(?={SIZE})",
    "cache": r"To serve at least one request with the model|The model\\{0,8}'s max seq len \("
    r"|No available memory for the cache|No free blocks are available|Cannot get (?=[0-9]{1,9} free blocks)"
    r"|Not enough memory\. Please try to increase --mem",
    "cores": r"(?:TPU )?TensorCore Hbm usage",
    "stack": r"while allocating on stack for ",
    "used": rf"{_WORD}Used (?={SIZE} of {SIZE})",
    "exceeded": rf"Exceeded (?=\w+ capacity by {SIZE})",
    "scoped_limit": rf"Scoped allocation with size (?={SIZE})",
    "total": r"Total (?=\w+ usage >= )",
    "requirement": rf"Program (?=\w+ requirement {SIZE})",
    "output": rf"Output size (?=unknown|{SIZE})",
    "row": rf"{_WORD}(?:reserved|program|arguments|output|global|scoped|overlays|HLO temp)"
    rf"\s{{1,60}}(?={SIZE}|unknown size)",
    "fragmentation": r"HLO temp fragmentation\s{1,60}(?=[0-9.]{1,12}%)",
    "largest": r"Largest program allocations in \w+",
    "loose_list": r"(?:Largest allocations?|Repeated large temps):",
    "size": rf"(?:{_WORD}[0-9]{{1,9}}\. {{0,4}}|(?<!\w))Size: {{0,4}}(?={SIZE})",
    "operator": r"(?<!\w)Operator: ",
    "shape": r"(?<!\w)Shape: ",
    "unpadded": rf"Unpadded size: (?={SIZE})",
    "extra": rf"Extra memory due to padding: (?={SIZE})",
    "tag": r"(?<!\w)Tag: ",
    "label": r"(?<!\w)XLA label: ",
    "type": r"Allocation type: ",
    "rule": r"={16,}",
    "loose": rf"(?<![\w.(]){SIZE}\s{{1,20}}(?=[a-z][a-z0-9]{{0,12}}\[[0-9,]{{0,200}}\])",
    "see": r"See https?://",
    "repeated": r"\[repeated (?=[0-9]{1,9}x across )",
}
# the look ahead, at how the forms begin, spares most places in a line a try of every form
_ANY = re.compile(
    r"(?=[0-9]|==|\[[tr]|wh|re|pr|ar|gl|sc|o[uv]|E[0-9rx]|C[aou]|R[aeu]|A[lt]|U[ns]|S[cehi]|T[Paeho]|Pr|O[pu]|No|H[BL]|La|XL)(?:"
    + "|".join(f"(?P<{name}>{form})" for name, form in _FORMS.items())
    + ")"
)

MESSAGES = frozenset(
    {"log", "message", "msg", "textpayload", "text", "body", "line", "lines", "data", "content", "payload", "event"}
    | {"error", "err", "exception", "exc_info", "exc_text", "traceback", "stack", "stacktrace", "stack_trace"}
    | {"error_message", "errormessage", "detail", "details", "reason"}
)
"""How loggers call what was logged, in lower case."""

_LITERAL = re.compile(r"(?:[\w :>=-]|\\\()+(?![?*{+])")


def needle_of(form: str) -> str:
    """The longest text without special characters in a regular expression: it stands in all that this matches."""
    return max((match[0] for match in _LITERAL.finditer(form)), key=len).replace("\\", "")


OTHERS = {
    "gpu": (
        r"BufferAssignment OOM Debugging|CUDA_ERROR_OUT_OF_MEMORY|CUDA out of memory|hipErrorOutOfMemory"
        r"|HIP out of memory|ran out of memory trying to allocate|Out of memory while trying to allocate"
        r"|Failed to allocate request for .{1,40} on device ordinal",
        "a GPU's memory ran out (or the host's, allocated like a GPU's)",
    ),
    "bad_alloc": (
        r"std::bad_alloc",
        "a C++ program on the host got no memory (std::bad_alloc): the host's own memory ran out",
    ),
    "killed": (
        r"[Oo]ut of memory: Kill(?:ed)? process|oom-kill:|OOMKilled",
        "the system killed a process because the host's own memory, or a container's share of it, ran out",
    ),
    "python": (r"(?<![A-Za-z])_?(?:Array)?MemoryError(?![^:(])", "Python got no memory on the host (MemoryError)"),
}
"""Other programs' errors: their forms, and what they say."""

OF_OTHERS = tuple(form for forms, _ in OTHERS.values() for form in forms.split("|"))
BEGINNINGS = (
    *("ut of memory", "Error loading program", "Error allocating device buffer", "CompileTime", "AllocationFailure"),
    *(r"Attempting to (?:allocate|reserve) [0-9\x1b\[#^]", r"Allocation \(size=", "Hbm usage", "usage >= "),
    *("Largest program", r"requirement [0-9\x1b\[#^]", "Scoped allocation with", "Could not allocate"),
    *("max seq len", "for the cache", "free blocks", "Not enough memory", *map(needle_of, OF_OTHERS)),
)
BEGINNING = re.compile("|".join(BEGINNINGS).encode())
"""A line without any of these begins no error."""

INTERESTING = re.compile(
    rb"emory|llocat|[Ss]ize|oading program|CompileTime|Runtime|Operator:|Shape:|Tag:|label:|====|[0-9][BKMGTPE]"
    rb"|unknown size|requirement|HBM capacity|[Tt]okens|" + BEGINNING.pattern
)
"""A line without any of these holds no form and no other program's error."""

DUMP = re.compile(rb"xla_dump_to[\"']? ?[=:] ?[\\\"']{0,4}([^\s\"'\\,;)]{1,1000})")
"""Where a log's flags name a folder of dumps."""

_NEEDLES = {needle_of(form).encode() for form in (*BEGINNINGS, DUMP.pattern.decode())}
NEEDLES = tuple(sorted(each for each in _NEEDLES if not any(other in each for other in _NEEDLES - {each})))
"""One of these stands in the first line of everything that is to be found."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A form and what follows it up to the next one.

    Attributes:
        form: key of the forms above.
        text, head: from the form's first character on, and the length of the form itself.
        ends_log: whether the log ends with it, in the middle of a line.
    """

    form: str
    text: str
    head: int
    ends_log: bool

    @property
    def rest(self) -> str:
        return self.text[self.head :]

    @property
    def number(self) -> int | None:
        """The number of the listed allocation that begins with it; None where it has none, and for what begins none."""
        match = _NUMBER.match(self.text) if self.form == "size" else None
        return int(match[1]) if match is not None else None


def pieces(line: str, ends_log: bool = False) -> tuple[str, list[Piece]]:
    """What stands before the first form in a line, and the forms."""
    matches = list(_ANY.finditer(line))
    ends = [match.start() for match in matches[1:]] + [len(line)]
    parts = [
        Piece(match.lastgroup or "", line[match.start() : end], len(match[0]), ends_log and end == len(line))
        for match, end in zip(matches, ends, strict=False)
    ]
    return line[: matches[0].start()] if matches else line, parts


@dataclass(frozen=True, slots=True)
class PrintedSize:
    """A size and how far off it may be.

    Attributes:
        value: bytes.
        slack: the true size lies at most this many bytes away; 0 for sizes in bytes.
    """

    value: int
    slack: Fraction

    def agrees(self, exact: int) -> bool:
        """Whether `exact` bytes would be printed like this."""
        return abs(exact - self.value) <= self.slack


def printed(text: str | None) -> PrintedSize | None:
    """Reads a printed size; None for anything else, ``unknown size`` say, and for what no int64 holds."""
    match = _PARTS.fullmatch(text or "")
    if match is None:
        return None
    decimals, unit = match[2] or "", _UNITS[match[3]]
    value = round(Fraction(int(match[1] + decimals), 10 ** len(decimals)) * unit)
    # the printed digits are the nearest, and the value above is rounded to whole bytes
    slack = Fraction(unit, 2 * 10 ** len(decimals)) + 1 if unit > 1 else Fraction(0)
    return PrintedSize(value, slack) if value < _LIMIT else None


def exactly(value: int) -> PrintedSize | None:
    """A size given in bytes; None for what no int64 holds."""
    return PrintedSize(value, Fraction(0)) if 0 <= value < _LIMIT else None


def sharpened(size: PrintedSize | None, exact: int | None) -> int | None:
    """`exact` where the printed size agrees with it, else the printed one; None without a printed one."""
    if size is None:
        return None
    return exact if exact is not None and size.agrees(exact) else size.value
