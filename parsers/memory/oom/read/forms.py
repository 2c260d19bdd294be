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
    r"|No available memory for the cache",
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
}
# the look ahead, at how the forms begin, spares most places in a line a try of every form
_ANY = re.compile(
    r"(?=[0-9]|==|\[t|wh|re|pr|ar|gl|sc|o[uv]|E[0-9rx]|C[ou]|R[aeu]|A[lt]|U[ns]|S[cehi]|T[Paeho]|Pr|O[pu]|No|H[BL]|La|XL)(?:"
    + "|".join(f"(?P<{name}>{form})" for name, form in _FORMS.items())
    + ")"
)

INTERESTING = re.compile(
    rb"emory|llocat|[Ss]ize|oading program|CompileTime|Runtime|Operator:|Shape:|Tag:|label:|====|[0-9][BKMGTPE]"
    rb"|unknown size|requirement|OOM|Killed|bad_alloc|HBM capacity|max seq len"
)
"""A line without any of these holds no form and no other program's error."""

BEGINNING = re.compile(
    rb"ut of memory|Error (?:loading|allocating)|CompileTime|AllocationFailure|Attempting to [ar]\w+ [0-9\x1b\[#^]"
    rb"|Allocation \(size=|Hbm usage|usage >=|requirement [0-9\x1b\[#^]|Largest program|Scoped allocation with"
    rb"|Could not allocate|OUT_OF_MEMORY|OOM|bad_alloc|MemoryError|max seq len|for the cache"
)
"""A line without any of these begins no error."""


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
