"""Entries of the list of allocations in an out-of-memory text, and the buffers that they describe."""

from __future__ import annotations

import re

from tpuprof.parsers.base.record import dataclass, fields, replace
from tpuprof.parsers.formats.hlo.shapes import parse_shape
from tpuprof.parsers.memory.model import Buffer, Category
from tpuprof.parsers.memory.oom.read.forms import SIZE, PrintedSize, exactly, printed, sharpened

LONGEST = 2000  # characters kept of a text, be it a label or a name
_QUOTED = re.compile(r'\b(op_type|op_name|source_file)="((?:[^"\\]|\\.)*)"')
_SOURCE_LINE = re.compile(r"\bsource_line=([0-9]{1,9})(?![0-9])")
_BREAKS = re.compile(r"(?:\\n|\s)+")
_NAME = re.compile(r"%?([\w.\-]+)\s*=\s")
_OPCODE = re.compile(r"(?<![\w.%{(:])([a-z][a-z0-9\-]*)\(")
_SIZE = re.compile(SIZE)
_TYPE = re.compile(r"HLO temp|[A-Za-z][\w-]*(?: [A-Za-z][\w-]*){0,3}")
_LOOSE = re.compile(rf"({SIZE})\s+(\S+)\s*(.*)")
_SHAPE_IN_QUOTES = re.compile(r"shape = '([^']{1,2000})'")
_TAG_IN_QUOTES = re.compile(r"tag = '(.{0,2000}?)'(?=\]|, [a-z])")
_OUTPUT_OF = re.compile(r"output of ([\w.\-]+)")
_ALLOCATION = re.compile(r"#(\w{1,80})")

_WINDOW_TAGS = ("scratch", "scoped", "input window", "output window", "internal scratch", "register allocator")
_KNOWN_TYPES = ("HLO temp", "scoped", "global", "parameter")
# words of an allocation's type, the first of which says what it is
_CATEGORIES: dict[str, Category] = {"parameter": "parameter", "argument": "parameter", "output": "output"}
_CATEGORIES |= {"live out": "output", "thread": "thread-local", "constant": "constant"}


@dataclass(frozen=True, slots=True)
class AllocationEntry:
    """What a text says of one allocation, as printed; None for what it does not say.

    Attributes:
        extra: what padding takes.
        name, opcode: of the instruction, where something else than the label names it.
        source_file, source_line: where the operator comes from.
        is_closed: whether its end was seen.
    """

    size: PrintedSize | None = None
    unpadded: PrintedSize | None = None
    extra: PrintedSize | None = None
    shape: str | None = None
    label: str | None = None
    op_name: str | None = None
    op_type: str | None = None
    tag: str | None = None
    type: str | None = None
    name: str | None = None
    opcode: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    is_closed: bool = False


def read_part(form: str, rest: str, ends_log: bool) -> dict[str, object]:
    """Attributes of `AllocationEntry` that a form fills.

    Where the log ends right behind it, what might go on is left out: half a shape looks like another one.
    """
    text = rest.strip()[:LONGEST]
    if form in ("size", "unpadded", "extra"):
        size = _SIZE.match(text)
        return {form: printed(size[0])} if size is not None else {}
    if form == "operator":
        return _operator(text, ends_log)
    if not text or (ends_log and form == "shape"):
        return {}
    if form == "label":
        return {} if ends_log and _NAME.match(text) is None else {"label": text}
    if form == "type":
        match = _TYPE.match(text)
        return {} if match is None or (ends_log and match[0] not in _KNOWN_TYPES) else {"type": match[0]}
    return {form: text}


def loose_entry(text: str) -> AllocationEntry:
    """An entry of a list that people write: size, shape, and perhaps what it is."""
    match = _LOOSE.match(text.strip()[:LONGEST])
    if match is None:
        return AllocationEntry()
    words = match[3].split()
    opcode = words[0] if len(words) > 1 and re.fullmatch(r"[a-z][a-z0-9\-]*", words[0]) else None
    rest = " ".join(words[1:] if opcode else words)
    is_path = "/" in rest
    return AllocationEntry(
        size=printed(match[1]),
        shape=match[2],
        op_name=rest if is_path else None,
        name=(rest.rsplit("/", 1)[-1] if is_path else rest) or None,
        opcode=opcode,
        is_closed=True,
    )


def stack_entry(text: str) -> AllocationEntry:
    """The instruction in ``while allocating on stack for %name = …``; its size stands elsewhere.

    The shape in it is that of its result, not of what it needs.
    """
    label = text.strip().rstrip(".").strip()[:LONGEST]
    name = re.match(r"%?([\w.\-]*\w)", label)
    return AllocationEntry(label=label or None, name=name[1] if name is not None else None, type="scoped")


def allocation_entry(text: str, size: int) -> AllocationEntry:
    """The allocation in ``:: #allocation2 [shape = '…', space=vmem, …, tag = '…'] :: name``."""
    shape, tag = _SHAPE_IN_QUOTES.search(text), _TAG_IN_QUOTES.search(text)
    output_of = _OUTPUT_OF.match(tag[1]) if tag is not None else None
    name = re.search(r"\] :: ([\w.\-]+)", text) or output_of or _ALLOCATION.search(text)
    # `scoped` stands among the attributes, but a tag may have the word as well
    attributes = text[: tag.start()] if tag is not None else text
    return AllocationEntry(
        size=exactly(size),
        shape=shape[1] if shape is not None else None,
        tag=tag[1] if tag is not None else None,
        type="scoped" if re.search(r", scoped\b", attributes) else None,
        name=name[1] if name is not None else None,
        is_closed=True,
    )


def merged(first: AllocationEntry, second: AllocationEntry) -> AllocationEntry:
    """Everything that either says; `first` has the say, but for texts that `second` has more of."""
    changes: dict[str, object] = {}
    for each in fields(AllocationEntry):
        mine, other = getattr(first, each.name), getattr(second, each.name)
        longer = isinstance(mine, str) and isinstance(other, str) and len(other) > len(mine) and other.startswith(mine)
        if mine is None or longer:
            changes[each.name] = other
    changes["is_closed"] = first.is_closed or second.is_closed
    return replace(first, **changes)  # type: ignore[arg-type]  # the names and types are Entry's own


def conflict(first: AllocationEntry, second: AllocationEntry, are_whole: bool = True) -> bool:
    """Whether two entries can't be the same; of such as may be cut only sizes count, which end with their unit."""
    pairs = [(first.shape, second.shape), (_instruction(first), _instruction(second))] if are_whole else []
    return any(None not in pair and pair[0] != pair[1] for pair in [(first.size, second.size), *pairs])


def buffer_of(entry: AllocationEntry) -> Buffer | None:
    """The buffer that an entry describes; None without a size.

    Printed sizes are rounded: where the shape gives one that would be printed like that, it is used.
    """
    if entry.size is None:
        return None
    size, unpadded = _sizes(entry, entry.size)
    by_label = AllocationEntry(**_operator(entry.label or "", ends_log=True))  # type: ignore[arg-type]
    op_name = entry.op_name if entry.op_name is not None else by_label.op_name
    return Buffer(
        name=_instruction(entry) or (entry.label or (op_name or "").rsplit("/", 1)[-1])[:200] or "unnamed",
        category=_category(entry),
        size_bytes=size,
        unpadded_bytes=unpadded,
        shape=entry.shape,
        opcode=entry.opcode or _opcode(entry.label),
        framework_op=op_name,
        source=_source(entry) or _source(by_label),
        allocation_type=entry.type,
        operator=entry.op_type if entry.op_type is not None else by_label.op_type,
        tag=entry.tag,
        label=entry.label,
    )


def _sizes(entry: AllocationEntry, size: PrintedSize) -> tuple[int, int | None]:
    """Size and unpadded size in bytes."""
    shape = parse_shape(entry.shape) if entry.shape is not None else None
    padded, elements = (shape.padded_bytes, shape.unpadded_bytes) if shape is not None else (None, None)
    if shape is not None and not shape.layout_known and elements is not None and size.agrees(elements):
        padded = elements  # no layout, and no padding to be seen
    exact = sharpened(size, padded) or 0
    unpadded = sharpened(entry.unpadded, elements)
    if unpadded is None and entry.extra is not None:
        unpadded = max(0, exact - entry.extra.value)
    if unpadded is None and padded == exact:
        unpadded = elements
    # both rounded, the smaller one may come out larger
    return exact, min(unpadded, exact) if unpadded is not None else None


def _instruction(entry: AllocationEntry) -> str | None:
    match = _NAME.match(entry.label or "")
    return entry.name if entry.name is not None else match and match[1]


def _opcode(label: str | None) -> str | None:
    """``fusion`` of ``%a = (f32[8]{0:T(8)}, s32[]) fusion(…)``: the first lower-case word with an argument list."""
    start = _NAME.match(label or "")
    match = _OPCODE.search(label or "", start.end()) if start is not None else None
    return match[1] if match is not None else None


def _operator(text: str, ends_log: bool) -> dict[str, object]:
    """``op_type="…" op_name="…" source_file="…" source_line=N``, any of them; a bare text is a name."""
    attributes: dict[str, object] = {key: _BREAKS.sub(" ", value)[:LONGEST] for key, value in _QUOTED.findall(text)}
    line = _SOURCE_LINE.search(text)
    if line is not None and not (ends_log and line.end() == len(text)):
        attributes["source_line"] = int(line[1])
    if not attributes and text and not ends_log and not re.search(r'=|"', text):
        attributes["op_name"] = text
    return attributes


def _source(entry: AllocationEntry) -> str | None:
    line = "" if entry.source_line is None else f":{entry.source_line}"
    return f"{entry.source_file}{line}" if entry.source_file else None


def _category(entry: AllocationEntry) -> Category:
    kind = (entry.type or "").lower()
    if kind == "scoped" or (not kind and (entry.tag or "").lower().startswith(_WINDOW_TAGS)):
        return "scoped"
    if kind == "global":  # what is there for the whole program: the compiler's constants
        return "constant"
    return next((category for word, category in _CATEGORIES.items() if word in kind), "temporary")
