"""One out-of-memory text while it is read: which forms belong to it, what they say, where it ends."""

from __future__ import annotations

import re

from tpuprof.parsers.base.record import dataclass, field, replace
from tpuprof.parsers.memory.oom.read import entries as entry_lines
from tpuprof.parsers.memory.oom.read.forms import SIZE, TABLES, Piece, PrintedSize, exactly, printed

MOST_ENTRIES, MOST_CHARACTERS = 10_000, 1 << 22  # of a text: entries beyond either are counted only
MOST_DEVICES = 1000

# a group has the name of the attribute of `OomReport` that it fills
_RAN_IN = re.compile(r"Ran out of memory (?:in memory space|on) (\w{1,40})")
_TEMPORARIES = re.compile(
    rf"Ran out of memory on \w{{1,40}}, the total memory required for HLO temporaries \((?P<used_bytes>{SIZE})\)"
    rf"(?: exceeds available \w{{1,40}} \((?P<capacity_bytes>{SIZE})\))?"
)
"""What it calls temporaries is all that the program needs, its arguments included: nothing is known of the parts."""
_MODULE = re.compile(r"\. HLO module: ([\w.<>()-]{1,200}?)\.(?=[\s\\'\"]|$)")
_NAMED = "HLO module: "
_USED_CUT = re.compile(
    rf"(?<![\w./-])(Used (?P<used_bytes>{SIZE}))(?: (?:of?(?: [0-9.]{{0,24}})?)?)?(?:\.{{2,3}}|…)?[\s\"']*$"
)
_FIGURES = {
    "used": re.compile(rf"Used (?P<used_bytes>{SIZE}) of (?P<capacity_bytes>{SIZE}) ?(?P<space>\w*)"),
    "exceeded": re.compile(rf"Exceeded (?P<space>\w+) capacity by (?P<exceeded_bytes>{SIZE})"),
}
_SCOPED = re.compile(
    rf"Scoped allocation with size (?P<scoped_bytes>{SIZE})(?: and limit (?P<capacity_bytes>{SIZE})"
    rf"(?: exceeded scoped (?P<space>\w+) limit(?: by (?P<exceeded_bytes>{SIZE}))?)?)?"
)
_ALLOCATION = re.compile(
    r"Allocation \(size=([0-9]{1,20})\) would exceed memory"
    r"(?: \(size=([0-9]{1,20})\)|(?: \(size=[0-9]{0,20})?[.…\s]*$)"  # or the text ends in it
)
_SPACE = re.compile(r"\bspace=(\w{1,40})(?=[,\]])")
_ATTEMPT = re.compile(
    rf"Attempting to (?P<verb>allocate|reserve) (?P<requested_bytes>{SIZE})(?: at the bottom of memory)?\."
    rf"(?: That was not possible\.)?(?: There are (?P<free_bytes>{SIZE}) free"
    rf"(?:, (?P<reserved_bytes>{SIZE}) reserved, and {SIZE} reservable)?\.?)?"
    rf"(?: The largest contiguous region of free memory is (?P<largest>{SIZE})(?: due to fragmentation)?\.?)?"
)
_COULD_NOT = re.compile(
    r"Could not (?P<verb>allocate) (?P<requested_bytes>[0-9]{1,20}) bytes in memory \S{0,40}?(?=[;.\s]|$)"
    r"(?:; (?P<largest>[0-9]{1,20}) bytes allocatable(?:, (?P<free_bytes>[0-9]{1,20}) bytes available)?)?"
)
_OF_XRT = {
    "capacity": re.compile(rf"HBM capacity (?P<capacity_bytes>{SIZE})"),
    "live": re.compile(
        rf"Currently allocated:\s+(?:{SIZE} +\( *(?=[0-9,]+ bytes))?(?P<used_bytes>[0-9,]{{1,26}}(?= bytes)|{SIZE})"
    ),
}
"""What the runtime of XRT says behind an attempt, before it lists the program that was to be loaded."""
_CACHE_SIZE = r"[0-9]{1,9}(?:\.[0-9]{1,6})? ?[GM]"
_CACHE = (
    re.compile(r"max seq len \((?P<wanted_tokens>[0-9]{1,12})\)"),
    re.compile(rf"(?P<used_bytes>{_CACHE_SIZE})i?B KV cache is needed.{{0,80}}?(?P<capacity_bytes>{_CACHE_SIZE})i?B"),
    re.compile(r"(?:maximum model length is|stored in KV cache \() ?(?P<fitting_tokens>[0-9]{1,12})(?=[.)\s])"),
)
_DEVICE = re.compile(r"(?:\(|in memory )([0-9]{1,5}(?:x[0-9]{1,5}){0,4}_HBM[0-9]{1,5})(?=[);.\s]|$)")
_CORES = re.compile(
    rf"(?:TPU )?TensorCore Hbm usage:? (?P<tensor_core_bytes>{SIZE})(?:, SparseCore Hbm usage:? "
    rf"(?P<sparse_core_bytes>{SIZE})(?:, exceeding available bytes: (?P<capacity_bytes>{SIZE}))?)?"
)
_TABLE = re.compile(rf"(?:Total|Program) (\w+) (?:usage >=|requirement) ({SIZE})")
_OUTPUT = re.compile(rf"Output size (?P<output_bytes>{SIZE})(?:; shares (?P<shared_bytes>{SIZE}) with arguments)?")
_ROW = re.compile(rf"(reserved|program|arguments|output|global|scoped|overlays|HLO temp)\s+({SIZE}|unknown size)")
_UTILIZATION = re.compile(r"([0-9.]{1,12})% utilization")
_PADDED = re.compile(rf"Unpadded \((?P<unpadded_bytes>{SIZE})\) Padded \((?P<padded>{SIZE})\)")
_FRAGMENTATION = re.compile(rf"([0-9.]{{1,12}})% (?:fragmentation )?\((?P<fragmentation_bytes>{SIZE})\)")
_LOOSE_FRAGMENTATION = re.compile(
    rf"HLO temp fragmentation\s+([0-9.]{{1,12}})%(?: \((?P<fragmentation_bytes>{SIZE})\))?"
)
_NO_FIGURES = "It should not be possible to run out"

_ENTRY_PARTS = ("size", "operator", "shape", "unpadded", "extra", "tag", "label", "type")
_LISTING = ("ran", *TABLES)  # what may have a list of allocations


@dataclass(slots=True)
class PartialReport:
    """An error as far as it was read.

    Attributes:
        form: what it began with: an anchor, or the head of a table whose beginning is lost.
        head: origin and all else in front of it in its first line.
        at_line, last_line: numbers of that line, and of the last line that belongs to it.
        bound: origin of its further lines, once one was read.
        is_payload: whether it is a copy that an error's details hold, printed with it.
        code, program: what stood in front of it.
        loading: whether a program was being loaded.
        sentence: its parts in order.
        sizes, fractions: by attribute of `OomReport`, and of what it is worked out from: ``largest``, ``total``, ….
        said_unknown: attributes that the text calls unknown.
        devices: where it happened, in order, each once.
        entries, entries_dropped: the listed allocations, and how many more there were than are kept.
        stack: the instruction that was being given memory.
        count: how many copies of it were read.
        verb, is_running: whether memory was to be allocated or reserved, and whether it says that the program ran.
        table, seen: which table the latest rows were of, and which parts were there.
        entry, numbered: the entry that is being read, and the number of the latest one.
        open_allocation: whether the attributes of an allocation lack their end.
        characters: roughly how much the entries hold.
    """

    form: str
    head: str
    at_line: int
    last_line: int
    bound: str | None = None
    is_payload: bool = False
    code: str | None = None
    program: str | None = None
    loading: bool = False
    space: str | None = None
    sentence: list[str] = field(default_factory=list)
    sizes: dict[str, PrintedSize] = field(default_factory=dict)
    fractions: dict[str, float] = field(default_factory=dict)
    said_unknown: set[str] = field(default_factory=set)
    devices: dict[str, None] = field(default_factory=dict)
    entries: list[entry_lines.AllocationEntry] = field(default_factory=list)
    entries_dropped: int = 0
    stack: entry_lines.AllocationEntry | None = None
    count: int = 1
    verb: str = ""
    is_running: bool = False
    table: str = ""
    seen: set[str] = field(default_factory=set)
    entry: entry_lines.AllocationEntry | None = None
    open_allocation: bool = False
    characters: int = 0
    numbered: int = 0

    def take(self, piece: Piece) -> bool:
        """Adds what a form says; False where it can't belong here: another space, or said before."""
        if piece.form in _ENTRY_PARTS:
            return self._entry_part(piece)
        if piece.form in _FIGURES:
            return self._figures(piece)
        if piece.form in _OF_XRT:
            return self._of_xrt(piece)
        reader = getattr(self, "_table" if piece.form in ("total", "requirement") else f"_{piece.form}", None)
        return bool(reader(piece)) if reader is not None else False

    def cut_here(self) -> None:
        self.seen.add("tail")

    def finish(self) -> None:
        """Ends the last entry; leaves out all entries if those of several copies are mixed."""
        self._close_entry(False)
        if "mixed" in self.seen:
            self.entries, self.characters = [], 0

    @property
    def is_cut(self) -> bool:
        if {"tail", "gap", "mixed"} & self.seen:
            return True
        if self.form == "ran":
            if {"short", "no_figures"} & self.seen:
                return False
            has_figures = bool({"exceeded", "scoped_limit"} & self.seen)
            list_ends = bool(self.entries) and self.entries[-1].is_closed and self.entry is None
            return not has_figures or (bool({"total", "requirement"} & self.seen) and not list_ends)
        if self.form == "allocation":
            return self.open_allocation
        if self.form == "cache":
            return "short" not in self.seen
        if self.form == "attempt":
            return "free" not in self.seen
        return self.form not in ("cores", "scoped_limit")

    @property
    def patience(self) -> int:
        """How many foreign lines may follow before nothing more is expected."""
        if self.form in ("attempt", "allocation", "cores", "cache") or {"short", "scoped_limit"} & self.seen:
            return 30
        return 2000

    def _ran(self, piece: Piece) -> bool:
        match = _RAN_IN.match(piece.text)
        if match is None or (piece.ends_log and match.end() == len(piece.text)):
            self.sentence.append("Ran out of memory.")
            return True
        self.space = match[1].lower()
        if _NO_FIGURES in piece.text:
            self.seen.add("no_figures")
        temporaries, used = _TEMPORARIES.match(piece.text), _USED_CUT.search(piece.text)
        self.sentence.append((temporaries or match)[0] + ".")
        if temporaries is not None:
            self._put_named(temporaries)
            self.seen.add("short")
            module = _MODULE.search(piece.text)
            self.program = module[1] if module is not None else self.program
            tail = piece.text[temporaries.end() :].lstrip(". ")
            is_naming = _NAMED.startswith(tail) if len(tail) < len(_NAMED) else tail.startswith(_NAMED)
            is_in_module = piece.ends_log and bool(tail) and is_naming and module is None
            if temporaries["capacity_bytes"] is None or is_in_module:
                self.cut_here()
        elif used is not None:
            self._put_named(used)
            self._say("used", used[1])
            self.cut_here()
        return True

    def _stack(self, piece: Piece) -> bool:
        if self.form != "ran" or self.stack is not None:
            return False
        self.stack = entry_lines.stack_entry(piece.rest)
        if self.stack.name is None or (piece.ends_log and self.stack.name == piece.rest.strip().lstrip("%")):
            self.stack = None
        elif self.sentence:
            self.sentence[-1] = self.sentence[-1].rstrip(".") + f" while allocating on stack for %{self.stack.name}."
        return True

    def _figures(self, piece: Piece) -> bool:
        match = _FIGURES[piece.form].match(piece.text)
        if match is None or self.form != "ran" or piece.form in self.seen or not self._same_space(match["space"]):
            return False
        self._put_named(match)
        self._say(piece.form, match[0])
        return True

    def _scoped_limit(self, piece: Piece) -> bool:
        match = _SCOPED.match(piece.text)
        if match is None or self.form not in ("ran", "scoped_limit") or "scoped_limit" in self.seen:
            return False
        space, is_cut = match["space"] or "", match["capacity_bytes"] is None
        if not piece.ends_log if is_cut else not self._same_space(space):
            return False
        if is_cut:
            self.cut_here()
        self.space = self.space or space.lower() or None
        self._put_named(match)
        self._put(used_bytes=printed(match["scoped_bytes"]))
        if is_cut or match["exceeded_bytes"]:
            self._say("scoped_limit", match[0])
        return True

    def _allocation(self, piece: Piece) -> bool:
        match = _ALLOCATION.match(piece.text)
        if match is None:
            return False
        size, limit = int(match[1]), match[2]
        self._put(used_bytes=exactly(size))
        if limit is None:
            self.sentence.append(f"Allocation (size={match[1]}) would exceed memory.")
            self.cut_here()
            return True
        self._put(capacity_bytes=exactly(int(limit)))
        space = _SPACE.search(piece.text)
        self.space = space[1].lower() if space is not None else None
        self.sentence.append(match[0] + ".")
        rest = piece.text[match.end() :]
        if rest.startswith((" ::", "::")) or (piece.ends_log and rest.strip() == ":"):
            entry = entry_lines.allocation_entry(rest, size)
            self.open_allocation = not re.search(r"\] :: [\w<]", rest)
            self.entries.append(entry if not self.open_allocation else replace(entry, name=None))
        return True

    def _attempt(self, piece: Piece) -> bool:
        match = _ATTEMPT.match(piece.text) or _COULD_NOT.match(piece.text)
        if match is None:
            return False
        self.verb, self.space = match["verb"], "hbm"
        self._put_named(match)
        if match["free_bytes"]:
            self.seen.add("free")
        self.is_running = "while running replica" in piece.text
        device = _DEVICE.search(piece.text)
        if device is not None and len(self.devices) < MOST_DEVICES:
            self.devices[device[1]] = None
        self.sentence.append(match[0].rstrip(".") + ".")
        if piece.ends_log and not piece.text.rstrip().endswith((".", ")", "'", '"', "available")):
            self.cut_here()
        return True

    def _of_xrt(self, piece: Piece) -> bool:
        match, is_later = _OF_XRT[piece.form].match(piece.text), "capacity" in self.seen
        if match is None or self.form != "attempt" or piece.form in self.seen or is_later != (piece.form == "live"):
            return False
        self._put_named(match)
        self.seen.add(piece.form)
        return True

    def _cache(self, piece: Piece) -> bool:
        """A serving engine has too little memory for the keys and values of one request."""
        self.space = "hbm"
        for match in filter(None, (form.search(piece.text) for form in _CACHE)):
            self._put_named(match)
        if "fitting_tokens" in self.sizes or not piece.text.startswith(("To ", "The ")):
            self.seen.add("short")
        sentence = re.split(r"(?<=[a-z0-9)]\.) ", piece.text, maxsplit=1)[0].rstrip(".")
        self.sentence.append(re.sub(r"\\+(?=')", "", sentence) + ".")
        return True

    def _cores(self, piece: Piece) -> bool:
        match = _CORES.match(piece.text)
        if match is None or not (match["capacity_bytes"] or piece.ends_log):
            return False
        if not match["capacity_bytes"]:
            self.cut_here()
        self._put_named(match)
        tensor, sparse = printed(match["tensor_core_bytes"]), printed(match["sparse_core_bytes"])
        if tensor is not None and sparse is not None:
            self._put(used_bytes=PrintedSize(tensor.value + sparse.value, tensor.slack + sparse.slack))
        self.space = "hbm"
        self.sentence.append(match[0] + ".")
        return True

    def _table(self, piece: Piece) -> bool:
        match, name = _TABLE.match(piece.text), piece.form
        if match is None or not self._may_have(name, match[1]):
            return False
        self._put(**{name: printed(match[2])})
        self.space, self.table = self.space or match[1].lower(), name
        self.seen.add(name)
        if not self.sentence:
            self.sentence.append(match[0] + ".")
        return True

    def _output(self, piece: Piece) -> bool:
        if self.form not in ("ran", "total") or "output" in self.seen:
            return False
        match = _OUTPUT.match(piece.text)
        if match is None:
            self.said_unknown |= {"output_bytes", "shared_bytes"}
        else:
            self._put_named(match)
        self.seen.add("output")
        self.table = ""
        return True

    def _row(self, piece: Piece) -> bool:
        match = _ROW.match(piece.text)
        if match is None or not self.table:
            return False
        name = {"HLO temp": "hlo_temp_bytes"}.get(match[1], f"{match[1]}_bytes")
        in_total = match[1] in ("reserved", "program", "arguments", "output")
        if in_total != (self.table == "total"):
            return self.table == "requirement"  # what the program itself reserves has no place in the model
        if match[2] == "unknown size":
            self.said_unknown.add(name)
        elif name not in self.sizes:
            self._put(**{name: printed(match[2])})
        self.seen.add(match[1])
        if match[1] == "HLO temp":
            self._temporaries(piece.text)
        return True

    def _temporaries(self, text: str) -> None:
        self._fraction("utilization", _UTILIZATION.search(text))
        self._fraction("fragmentation", fragmentation := _FRAGMENTATION.search(text))
        for match in (_PADDED.search(text), fragmentation):
            if match is not None:
                self._put_named(match)

    def _fragmentation(self, piece: Piece) -> bool:
        match = _LOOSE_FRAGMENTATION.match(piece.text)
        if match is None or not self.table:
            return False
        self._fraction("fragmentation", match)
        self._put_named(match)
        return True

    def _largest(self, piece: Piece) -> bool:
        space = piece.text[: piece.head].split()[-1]
        if piece.ends_log or not self._may_have("largest", space):
            return False
        self.space = self.space or space.lower()
        self.seen.add("largest")
        self.table = ""
        if not self.sentence:
            self.sentence.append(piece.text[: piece.head] + ".")
        return True

    def _loose_list(self, _: Piece) -> bool:
        self.seen.add("loose_list")
        self.table = ""
        return self.form == "ran"

    def _loose(self, piece: Piece) -> bool:
        if "loose_list" not in self.seen or (piece.ends_log and "]" not in piece.text):
            return False
        self._close_entry(False)
        self.entry = entry_lines.loose_entry(piece.text)
        self._close_entry(True)
        return True

    def _rule(self, _: Piece) -> bool:
        had = self.entry is not None
        self._close_entry(True)
        return had

    def _see(self, _: Piece) -> bool:
        return True

    def _entry_part(self, piece: Piece) -> bool:
        if not self._lists:
            return False
        if piece.form == "size" and not {"largest", "requirement", "total"} & self.seen:
            return False
        if piece.number is not None:
            if piece.number != self.numbered + 1:  # some are missing, or those of a copy are among them
                self.seen.add("gap" if piece.number > self.numbered else "mixed")
            self.numbered = piece.number
        attributes = entry_lines.read_part(piece.form, piece.rest, piece.ends_log)
        entry = self.entry or entry_lines.AllocationEntry()
        if piece.form == "size" or any(getattr(entry, name) is not None for name in attributes):
            self._close_entry(False)
            entry = entry_lines.AllocationEntry()
        self.entry = replace(entry, **attributes)  # type: ignore[arg-type]  # the names and types are Entry's own
        return True

    def _close_entry(self, is_closed: bool) -> None:
        entry, self.entry = self.entry, None
        if entry is None or (entry.size is None and entry.label is None and entry.op_name is None):
            return
        if len(self.entries) < MOST_ENTRIES and self.characters < MOST_CHARACTERS:
            self.entries.append(replace(entry, is_closed=is_closed))
            texts = (entry.label, entry.shape, entry.op_name, entry.tag)
            self.characters += 200 + sum(len(text or "") for text in texts)
        else:
            self.entries_dropped += 1

    @property
    def _lists(self) -> bool:
        """Whether it may go on with tables and a list of allocations."""
        return self.form in _LISTING or "capacity" in self.seen

    def _same_space(self, space: str) -> bool:
        return not space or self.space is None or space.lower() == self.space

    def _may_have(self, part: str, space: str) -> bool:
        return self._lists and not {part, "short"} & self.seen and self._same_space(space)

    def _say(self, part: str, text: str) -> None:
        self.seen.add(part)
        self.sentence.append(text + ".")

    def _put(self, **sizes: PrintedSize | None) -> None:
        self.sizes.update({name: size for name, size in sizes.items() if size is not None})

    def _put_named(self, match: re.Match[str]) -> None:
        """Adds what the groups that have the name of an attribute matched; a number without a unit is a whole one."""
        found = {name: re.sub("[ ,]", "", text) for name, text in match.groupdict().items() if text and name != "space"}
        self._put(**{name: printed(text + "B" * text[-1:].isdigit()) for name, text in found.items()})

    def _fraction(self, name: str, match: re.Match[str] | None) -> None:
        if match is not None and re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,5})?", match[1]):
            self.fractions[name] = round(float(match[1]) / 100, 8)
