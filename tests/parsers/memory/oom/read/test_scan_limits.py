"""Logs of any size and content: bounded memory, no error, nothing found twice."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.oom.read.mutations import PREFIXES, STYLES, noise, prefixed
from tests.parsers.memory.oom.read.test_scan_forms import read
from tests.parsers.memory.oom.read.texts import ALL, GIB, HBM, MIB, Allocation, CompileError, printed_bytes, size_text
from tests.support.build import present
from tpuprof.parsers.base.budget import steps_room
from tpuprof.parsers.memory.oom.read import partial_report, reports
from tpuprof.parsers.memory.oom.read.forms import printed
from tpuprof.parsers.memory.oom.read.partial_report import MOST_CHARACTERS, MOST_ENTRIES
from tpuprof.parsers.memory.oom.read.reports import MOST_REPORTS
from tpuprof.parsers.memory.oom.read.scan import scan, scan_log
from tpuprof.parsers.memory.oom.read.stream import CHUNK, LONGEST_LINE, LogReader


class Repeated(io.RawIOBase):
    """A long stream that holds only a piece of itself: `before`, `piece` again and again, `after`."""

    def __init__(self, before: bytes, piece: bytes, times: int, after: bytes) -> None:
        super().__init__()
        self._parts = [before, *([piece] * times), after]
        self._rest = b""
        self.reads: list[int] = []

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes."""
        self.reads.append(size)
        while self._parts and len(self._rest) < size:
            self._rest += self._parts.pop(0)
        given, self._rest = self._rest[:size], self._rest[size:]
        return given


LINE_ENDS = {
    "lines": b"step 17 of 4096, all is well, memory use 12.1G\n",
    "one line": b"step 17 of 4096, all is well. ",
}


@pytest.mark.parametrize("filler", LINE_ENDS)
def test_keeps_few_bytes_of_a_long_log(filler: str) -> None:
    piece = LINE_ENDS[filler] * (MIB // len(LINE_ENDS[filler]))
    stream = Repeated(b"", piece, 64, b"\n" + HBM.text().encode())
    reader = LogReader(stream)  # type: ignore[arg-type]  # it reads, which is all that is asked of it
    log = scan(reader)
    assert [replace(report, unknown={}, at_line=1) for report in log.reports] == [HBM.report()]
    assert log.bytes_read == 64 * len(piece) + 1 + len(HBM.text())
    assert log.lines == 64 * piece.count(b"\n") + 1 + HBM.text().count("\n")
    assert reader.most_kept <= LONGEST_LINE + CHUNK
    assert set(stream.reads) == {CHUNK}
    assert len(stream.reads) <= log.bytes_read // CHUNK + 3  # nothing is read twice


def test_keeps_few_bytes_of_a_well_compressed_log() -> None:
    text = b"\0" * (64 * MIB) + b"\n" + HBM.text().encode()
    content = gzip.compress(text[: 32 * MIB]) + bytes(512) + gzip.compress(text[32 * MIB :])
    reader = LogReader(io.BytesIO(content))
    log = scan(reader)
    assert [replace(report, unknown={}, at_line=1) for report in log.reports] == [HBM.report()]
    assert (log.bytes_read, log.notes) == (len(content), ())
    assert log.lines == text.count(b"\n")
    assert reader.most_kept <= LONGEST_LINE + CHUNK


def test_damaged_and_cut_compressed_logs_are_read_up_to_there() -> None:
    text = HBM.text().encode() + noise(20_000)
    content = gzip.compress(text)
    half = len(content) // 2
    damaged = content[:half] + b"\xff" * 100 + content[half + 100 :]
    for data, problem in ((content[:half], "ends in the middle"), (damaged, "is damaged")):
        log = read(data)
        assert [replace(report, unknown={}) for report in log.reports] == [HBM.report()]
        assert log.notes == (f"The log's compressed data {problem}; the rest is not read.",)


def test_a_log_of_two_bytes_a_character_in_small_pieces() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(7, size or 0))

    content = (HBM.text() * 3).encode("utf-16")
    for data in (content, gzip.compress(content)):
        log = scan_log(Slow(data))
        assert [replace(report, unknown={}) for report in log.reports] == [replace(HBM.report(), count=3)]
        assert log.lines == 3 * HBM.text().count("\n")


def test_finds_errors_inside_of_one_endless_line() -> None:
    text = HBM.text().replace("\n", "\\n")
    stream = Repeated(b'{"all": "', (b"x " * (MIB // 4)) + text.encode(), 8, b'"}')
    reader = LogReader(stream)  # type: ignore[arg-type]
    log = scan(reader)
    assert [replace(report, unknown={}) for report in log.reports] == [replace(HBM.report(), count=8)]
    assert (log.lines, reader.most_kept <= LONGEST_LINE + CHUNK) == (1, True)


@pytest.mark.parametrize("inside", [1, 2, 20, 50, 60, 100, 500, 1500])
def test_an_error_across_two_chunks(inside: int) -> None:
    before = b"." * 99 + b"\n"
    rest = (CHUNK - inside) % 100
    content = before * ((CHUNK - inside) // 100) + (b"." * (rest - 1) + b"\n" if rest else b"") + HBM.text().encode()
    assert content.index(b"jax.errors") == CHUNK - inside
    assert [replace(report, unknown={}, at_line=1) for report in read(content).reports] == [HBM.report()]


def test_too_many_different_errors_are_left_out_and_said() -> None:
    lines = "".join(ALL["runtime"][0].replace("100.00M", f"{n}.00M") for n in range(100, 100 + MOST_REPORTS + 50))
    log = read(lines.encode())
    assert len(log.reports) == MOST_REPORTS
    assert log.notes == ("The log has too many different errors: 50 further errors are left out.",)


def test_an_error_is_compared_only_with_those_of_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def counting(known: partial_report.PartialReport, other: partial_report.PartialReport) -> bool:
        nonlocal compared
        compared += 1
        return is_copy(known, other)

    is_copy = reports._is_copy
    monkeypatch.setattr(reports, "_is_copy", counting)
    errors = 2 * MOST_REPORTS
    log = read("".join(ALL["runtime"][0].replace("100.00M", f"{n}.00M") for n in range(100, 100 + errors)).encode())
    assert len(log.reports) == MOST_REPORTS
    assert compared < errors


def test_too_long_a_list_is_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 500
    monkeypatch.setattr(partial_report, "MOST_ENTRIES", most)
    head, _, rest = HBM.text().partition("  1. Size:")
    entry = (" Size:" + rest.partition("  2. Size:")[0]).replace("4096", "1")
    log = read((head + "".join(f"  {number}.{entry}" for number in range(1, most + 11))).encode())
    (report,) = log.reports
    kept = sum(len(each.label or "") + len(each.shape or "") + len(each.framework_op or "") for each in report.buffers)
    assert len(report.buffers) <= most
    assert kept <= MOST_CHARACTERS
    left = f"{most + 10 - len(report.buffers):,} listed allocations"
    assert log.notes == (f"{left} of the errors' lists are left out: too many to keep.",)


HOSTILE = {
    "sizes": b"Ran out of memory in memory space hbm. " + b"Size: 1B " * 20_000,
    "digits": b"Ran out of memory in memory space hbm. Used " + b"9" * 100_000 + b"G of 1G hbm.",
    "large": b"Ran out of memory in memory space hbm. Used 99999999999999999999.99T of 1G hbm. Exceeded hbm",
    "backslashes": b"RESOURCE_EXHAUSTED Ran out of memory in memory space hbm." + b"\\" * 200_000 + b"n",
    "written ends": b"RESOURCE_EXHAUSTED Ran out of memory in memory space hbm. " + b"\\n " * 50_000,
    "braces": b'{"RESOURCE_EXHAUSTED":' + b'{"a":' * 50_000 + b"}" * 50_001,
    "lists": b'{"RESOURCE_EXHAUSTED":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "quotes": b'RESOURCE_EXHAUSTED Operator: op_name="' + b'\\"' * 50_000,
    "label": b"Largest program allocations in hbm:\n 1. Size: 1.00G\n XLA label: " + b"%a = (" * 50_000,
    "spaces": b"Program hbm requirement 1.00G:\n  HLO temp" + b" " * 200_000 + b"1.00G",
    "escapes": b"RESOURCE_EXHAUSTED \x1b]0;" + b"\x1b[" * 50_000,
    "tag": b"Allocation (size=1) would exceed memory (size=0) :: #a [tag = '" + b"', a" * 50_000,
    "rule": b"Largest program allocations in hbm:\n" + b"=" * 300_000,
    "odd size": b"Allocation (size=99999999999999999999) would exceed memory (size=0)\n",
    "leads": b"E1000: CompileTimeHbmOom: " * 10_000,
    "payloads": b"[type.googleapis.com/ Ran out of memory in memory space hbm. " * 5_000,
    "prefixes": b"".join(b"[host %d] Ran out of memory in memory space hbm.\n" % n for n in range(2_000)),
    "shape": b"Largest program allocations in hbm:\n1. Size: 1.00G\nShape: f32[" + b"9" * 100_000 + b"]{0}\n",
    "nul": b"\0" * 100_000 + b"RESOURCE_EXHAUSTED\0\n",
    "sixteen bits": HBM.text().encode("utf-16"),
    "a mark": b"\xff\xfe",
    "half a character": b"\xff\xfea\0b",
    "gzip's head": gzip.compress(b"")[:5],
    "tiny members": gzip.compress(b"") * 20_000,
    "records": b'{"log":"Ran out of memory in memory space hbm. ","stream":"stderr"}\n' * 2_500,
    "open record": b'{"log":"' + b'RESOURCE_EXHAUSTED "log":"\\"' * 20_000 + b"}\n",
    "parts": b"2026-11-21T15:24:20Z stderr P Ran out of memory in memory space hbm. \n" * 2_500,
    "one beginning": b"Ran out of memory in memory space hbm. Used 2.00G of 1.00G hbm.\n" * 2_500,
    "tables": b"Ran out of memory in memory space hbm.\n" * 2 + b"Total hbm usage >= 1.00G:\n" * 2_500,
    "mixed": b"Ran out of memory in memory space hbm.\n" * 60
    + b"".join(b"  1. Size: 1.00G\nShape: f32[8]\n%d. Size: 2.00G\nXLA label: a = b(c)\n" % n for n in range(1_500)),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_logs_stay_bounded(content: bytes) -> None:
    log = read(content)
    assert log.bytes_read == len(content)
    assert len(log.reports) <= MOST_REPORTS
    assert all(len(report.sentence) <= 500 and report.sentence.isprintable() for report in log.reports)
    assert all(len(report.buffers) <= MOST_ENTRIES for report in log.reports)


def test_control_characters_are_shown() -> None:
    (report,) = read(ALL["load"][0].replace("jit_f", "jit\x07_\u202ef").encode()).reports
    assert "jit␇_\\u202ef" in report.sentence


def test_tells_how_far_it_is() -> None:
    told: list[int] = []
    stream = Repeated(b"", b"x" * MIB, 10, b"")
    scan_log(stream, told.append)  # type: ignore[arg-type]
    assert told[:2] == [CHUNK, 2 * CHUNK] and told[-1] == 10 * MIB


@given(st.binary(max_size=300))
def test_random_bytes_never_raise(content: bytes) -> None:
    assert read(content).bytes_read == len(content)


ARRAYS = st.builds(
    lambda rows, columns, name, op, line, kind: Allocation(
        name=name,
        shape=f"f32[{rows},{columns}]{{1,0:T(8,128)}}",
        padded=-(-rows // 8) * 8 * -(-columns // 128) * 128 * 4,
        unpadded=rows * columns * 4,
        op_name=f"jit(f)/{op}" if op else None,
        file="a/b.py" if line else None,
        line=line,
        type=kind,
    ),
    st.integers(1, 1 << 16),
    st.integers(1, 1 << 16),
    st.from_regex(r"[a-z][a-z_\-]{0,20}\.[0-9]{1,5}", fullmatch=True),
    st.from_regex(r"[a-z()_/\[\]=:,>-]{0,30}[a-z]", fullmatch=True) | st.none(),
    st.integers(1, 99999) | st.none(),
    st.sampled_from(["HLO temp", "scoped", "global"]),
)


@given(
    st.lists(ARRAYS, min_size=1, max_size=8),
    st.integers(1, 200 * GIB),
    st.integers(1, 100 * GIB),
    st.sampled_from(["hbm", "vmem", "smem"]),
    st.none() | st.integers(0, GIB),
    st.sampled_from(sorted(PREFIXES)),
    st.sampled_from(sorted(STYLES)),
)
def test_what_is_written_is_read(
    allocations: list[Allocation], capacity: int, over: int, space: str, arguments: int | None, prefix: str, style: str
) -> None:
    program = "jit_f" if any(each.op_name for each in allocations) else None
    error = CompileError(
        used=capacity + over,
        capacity=capacity,
        space=space,
        arguments=arguments,
        allocations=tuple(allocations),
        program=program,
    )
    expected = error.report()
    for content in (prefixed(PREFIXES[prefix])(error.text()), STYLES[style](error.text())):
        (report,) = read(content).reports
        assert replace(report, unknown={}, at_line=1) == expected


@given(st.integers(0, 1 << 50))
def test_sizes_are_read_within_their_rounding(value: int) -> None:
    size = present(printed(size_text(value)))
    assert size.agrees(value)
    assert size.value == printed_bytes(value)


@pytest.mark.parametrize(
    "text", ["", "5", "5.G", "G", "unknown size", "5.00GiB", "-5.00G", "1e3G", "99999999999999999999T"]
)
def test_other_texts_are_no_sizes(text: str) -> None:
    assert printed(text) is None


@pytest.mark.parametrize("line", ["Largest program allocations in hbm:", "out of memory"])
def test_a_few_bytes_that_stand_for_millions_of_lines_are_read_as_far_as_their_size_allows(line: str) -> None:
    """Each such line takes a time, and gzip makes a thousandth of them."""
    text = f"{line}\n".encode()
    content = gzip.compress(text * (20 * MIB // len(text)), 9)
    reader = LogReader(io.BytesIO(content))
    log = scan(reader)
    (note,) = (each for each in log.notes if "stand for more lines" in each)
    last = int(note.split()[-2].replace(",", ""))
    assert log.lines - 1 <= last <= log.lines and 50 * last < steps_room(len(content))
    if line.startswith(HBM.text()[:20]):
        assert [replace(report, unknown={}, count=1) for report in log.reports] == [HBM.report()]


def test_lines_of_a_log_that_is_not_compressed_are_all_read() -> None:
    text = f"{HBM.text()}Largest program allocations in hbm:\nout of memory\n"
    log = read(text.encode() * 500)
    assert log.lines == 500 * text.count("\n") and not any("stand for" in note for note in log.notes)
