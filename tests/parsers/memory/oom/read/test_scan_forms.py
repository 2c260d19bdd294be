"""Every form of an out-of-memory text, and each real one, is read the same, however it got into the log."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.oom.read.mutations import STYLES, cuts, interleaved, noise, prefixed, shuffled
from tests.parsers.memory.oom.read.texts import ALL, CODED, HBM, OLD_HBM, ONE_LINERS, VMEM
from tests.support.golden import check_golden
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.model import OomLog, OomReport
from tpuprof.parsers.memory.oom.read.forms import BEGINNING, BEGINNINGS, INTERESTING, NEEDLES, OF_OTHERS
from tpuprof.parsers.memory.oom.read.scan import scan_log
from tpuprof.parsers.memory.oom.triage import triage_of_report


def read(content: bytes) -> OomLog:
    return scan_log(io.BytesIO(content))


def bare(report: OomReport, at_line: bool = False) -> OomReport:
    """A report without reasons, and on line 1."""
    return replace(report, unknown={}, at_line=report.at_line if at_line else 1)


LOGS: dict[str, list[str]] = json.loads(Path(__file__).with_name("logs.json").read_text("utf-8"))
"""The lines of logs by what they show; those of errors are of `HBM` and the like, cut, mixed or in other words."""


def known(of: OomReport | Buffer) -> Iterator[tuple[str, object]]:
    """The fields that are not as in a report of which nothing is known."""
    for field in of.__dataclass_fields__.values():
        value = getattr(of, field.name)
        if field.name == "buffers":
            yield from ((f"buffer {number}", dict(known(each))) for number, each in enumerate(value))
        elif field.name != "unknown" and value != field.default:
            yield field.name, value


def told(log: OomLog) -> Iterator[str]:
    """All that is read of a log, and what is noted of its errors."""
    yield f"{log.lines} lines, {log.bytes_read} bytes"
    yield from (f"note: {note}" for note in log.notes)
    for report in log.reports:
        yield from (f"{field}: {value}" for field, value in known(report))
        for reason in dict.fromkeys(report.unknown.values()):
            names = [name for name, why in report.unknown.items() if why == reason]
            yield f"unknown, as {reason}: {', '.join(names)}"
        triage = triage_of_report(report, "log")
        yield f"over by {triage.over_bytes}{' as a request' * triage.is_request}"
        yield from (f"triage: {note}" for note in triage.notes)


def test_what_is_read_is_what_it_was_word_by_word() -> None:
    """Of errors of one line, and of logs that are named by what they show."""
    contents = ONE_LINERS | {name: "\n".join(lines) for name, lines in LOGS.items()}
    texts = ("\n".join([f"# {name}", *told(read(text.encode())), ""]) for name, text in contents.items())
    check_golden(Path(__file__).with_name("logs.txt"), "\n".join(texts))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("form", ALL)
def test_reads_the_same_however_it_is_printed(form: str, style: str) -> None:
    text, expected = ALL[form]
    log = read(STYLES[style](text))
    assert [bare(report) for report in log.reports] == [expected]
    turned = "The log has its newest lines first: it is read from its end."
    told = {"utf-16": "The log is UTF-16, and is read as such.", "newest": turned}
    assert log.notes == tuple(note for word, note in told.items() if word in style)


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (HBM.text() * 300, 300),
        ((HBM.text() + "std::bad_alloc\n") * 5, 5),
        ("".join(f"(w pid=1) {line}\n(w pid=2) {line} [repeated 3x across cluster]\n" for line in HBM.lines()), 4),
        ("RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom:\n" + "\n" * 9 + HBM.text(), 1),
    ],
)
def test_counts_what_was_printed(content: str, count: int) -> None:
    log = read(content.encode())
    assert [replace(bare(each), code=None) for each in log.reports] == [replace(HBM.report(), count=count)]
    assert all(f"one of {count}:" in note for note in log.notes)


@given(st.sampled_from([*BEGINNINGS, *OF_OTHERS]).flatmap(st.from_regex))
def test_whatever_is_looked_for_is_looked_at(line: str) -> None:
    """A log is searched for some texts before anything else: they are in all that a form matches."""
    content = line.encode("utf-8", "surrogateescape")
    assert any(needle in content for needle in NEEDLES) and BEGINNING.search(content) and INTERESTING.search(content)


@pytest.mark.parametrize("style", ["newest first", "newest first, a record a line"])
def test_a_log_from_its_end_names_the_lines_of_the_file(style: str) -> None:
    content = STYLES[style](HBM.text())
    (report,) = read(content).reports
    assert b"Ran out of memory" in content.splitlines()[report.at_line - 1]


@pytest.mark.parametrize("form", ALL)
def test_a_cut_text_tells_a_part_of_the_truth(form: str) -> None:
    text, expected = ALL[form]
    content = text.encode()
    step = 1 if len(content) < 1000 else 7
    for cut in cuts(content, step):
        log = read(cut)
        if not log.reports:
            continue
        (report,) = log.reports
        where = f"cut behind {cut[-40:]!r}"
        assert bare(report) == expected or is_part(bare(report), expected), where
        # behind a whole sentence or entry nothing shows that there was more
        ends = re.search(r"(?:[.)]|[0-9][KMGB]|={16,}|\] :: \S*|<[\w-]*>?|scoped vmem limit.*)\s*$", cut.decode())
        assert report.is_cut or ends is not None or bare(report) == expected, where
    assert read(content[: len(content) * 3 // 4]).reports


def is_part(report: OomReport, whole: OomReport) -> bool:
    """Whether a report says nothing that the whole one doesn't."""
    inferred = {
        "count",
        "is_cut",
        "sentence",
        "buffers",
        "padding_bytes",
        "program",
        "unknown",
        "kind",
        "exceeded_bytes",
    }
    for name in whole.__dataclass_fields__:
        value, true = getattr(report, name), getattr(whole, name)
        if name not in inferred and value is not None and value != true:
            return False
    buffers = sorted(whole.buffers, key=lambda each: -each.size_bytes)
    names = [each.name for each in buffers]
    for buffer in report.buffers:
        if not any(is_part_of_buffer(buffer, each) for each in buffers):
            return False
    return report.program in (None, whole.program) and len(report.buffers) <= len(names)


def is_part_of_buffer(buffer: Buffer, whole: Buffer) -> bool:
    """Whether a buffer says nothing that the whole one doesn't, but for what stands in for what it lacks."""
    close = abs(buffer.size_bytes - whole.size_bytes) <= whole.size_bytes // 100
    texts = all(
        getattr(buffer, name) is None or (getattr(whole, name) or "").startswith(getattr(buffer, name))
        for name in ("shape", "opcode", "framework_op", "source", "allocation_type", "operator", "tag", "label")
    )
    return close and texts and (buffer.name == whole.name or buffer.label is None)


def test_interleaved_hosts_are_kept_apart() -> None:
    one, other = HBM, replace(OLD_HBM, lead="XlaRuntimeError: RESOURCE_EXHAUSTED: ")
    log = read(
        interleaved(
            [
                (lambda n: f"[host-1] 15:00:{n % 60:02} ", one.text()),
                (lambda n: f"[host-12] 15:00:{n % 60:02} ", other.text()),
                (lambda n: f"[host-2] 15:01:{n % 60:02} ", one.text()),
            ]
        )
    )
    assert [bare(report) for report in log.reports] == [replace(one.report(), count=2), other.report()]


def test_different_errors_stay_apart_in_order() -> None:
    errors = [HBM, VMEM, CODED, OLD_HBM]
    log = read("".join(error.text() for error in errors).encode())
    assert [bare(report) for report in log.reports] == [error.report() for error in errors]
    lines = [len(error.text().splitlines()) for error in errors]
    assert [report.at_line for report in log.reports] == [1, 1 + lines[0], 1 + sum(lines[:2]), 1 + sum(lines[:3])]


@pytest.mark.parametrize("form", ALL)
def test_is_found_in_noise(form: str) -> None:
    text, expected = ALL[form]
    before, after = noise(5_000), noise(5_000, seed=3)
    log = read(before + text.encode() + after)
    assert [bare(report, at_line=True) for report in log.reports] == [replace(expected, at_line=5_001)]
    assert log.lines == 10_000 + text.count("\n")
    assert log.bytes_read == len(before) + len(text.encode()) + len(after)


@pytest.mark.parametrize("form", ["hbm", "vmem", "old hbm"])
def test_noise_between_the_lines(form: str) -> None:
    text, expected = ALL[form]
    others = noise(10 * text.count("\n")).decode().splitlines(keepends=True)
    lines = [f"[rank0] {line}\n" for line in text.split("\n")[:-1]]
    mixed = "".join(line + "".join(others[10 * row : 10 * row + 10]) for row, line in enumerate(lines))
    assert [bare(report) for report in read(mixed.encode()).reports] == [expected]


def test_records_of_several_pods_are_kept_apart() -> None:
    errors = {"train-0": HBM, "train-1": CODED}
    columns = [
        [json.dumps({"n": n, "pod_name": pod, "log": line + "\n"}) + "\n" for n, line in enumerate(error.lines())]
        for pod, error in errors.items()
    ]
    log = read("".join(line for row in zip(*columns, strict=True) for line in row).encode())
    assert [bare(report) for report in log.reports] == [HBM.report(), CODED.report()]


@pytest.mark.parametrize("copies", [2, 3, 8])
@pytest.mark.parametrize("burst", [1, 4, 10])
def test_no_buffer_is_listed_twice_where_copies_are_mixed(copies: int, burst: int) -> None:
    reports = read(shuffled([HBM.text().encode()] * copies, seed=copies, burst=burst)).reports
    for report in reports:
        sizes = [buffer.size_bytes for buffer in report.buffers]
        assert len(sizes) == len(set(sizes)) and set(sizes) <= {buffer.size_bytes for buffer in HBM.report().buffers}


@pytest.mark.parametrize("prefixes", ["host{}: ", "[rank{}]: ", "{} ", "(worker {}, pid=7) "])
@pytest.mark.parametrize("seed", range(3))
def test_hosts_that_take_turns_at_random(prefixes: str, seed: int) -> None:
    hosts = [prefixed(lambda _, host=host: prefixes.format(host))(HBM.text()) for host in range(4)]  # type: ignore[misc]
    (report,) = read(shuffled(hosts, seed)).reports
    assert bare(report) == replace(HBM.report(), count=4)


@pytest.mark.parametrize("prefixes", ["host{}: ", "[rank{}]: "])
def test_one_text_of_which_every_other_line_has_another_number_in_front(prefixes: str) -> None:
    (report,) = read(prefixed(lambda n: prefixes.format(n % 2))(HBM.text())).reports
    assert bare(report) == HBM.report()


WHOLE = (
    "01_tf1_tpuv3_detection_resnet152_au2018.txt",
    "compile_libtpu0017_v5e_activations_transformer.txt",
    "compile_libtpu0017_v5e_params_adam_scan.txt",
    "compile_libtpu0017_v5e_smem_scratch.txt",
    "compile_libtpu0017_v5e_vmem_blocks.txt",
    "compile_v5e_activations_scan.txt",
    "compile_v5e_vmem_blocks.txt",
    "compile_v5e_vmem_scratch.txt",
    "compile_v6e_params_adam_scan.txt",
)


@pytest.mark.shared
@pytest.mark.parametrize("name", WHOLE)
def test_real_texts_read_the_same_however_they_are_printed(shared: Path, name: str) -> None:
    text = (shared / "oom" / name).read_text()
    (expected,) = scan_log(io.BytesIO(text.encode())).reports
    for style, printed in STYLES.items():
        (report,) = scan_log(io.BytesIO(printed(text))).reports
        assert replace(report, at_line=1) == replace(expected, at_line=1), style
