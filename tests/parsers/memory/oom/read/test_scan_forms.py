"""Every form of an out-of-memory text, and each real one, is read the same, however it got into the log."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.oom.read.mutations import STYLES, cuts, interleaved, noise, prefixed, shuffled
from tests.parsers.memory.oom.read.texts import ALL, BRIEF, CODED, GIB, HBM, MIB, OLD_HBM, ONE_LINERS, VMEM
from tests.support.golden import check_golden
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.model import OomLog, OomReport
from tpuprof.parsers.memory.oom.read.forms import BEGINNING, BEGINNINGS, INTERESTING, NEEDLES, OF_OTHERS
from tpuprof.parsers.memory.oom.read.scan import scan_log
from tpuprof.parsers.memory.oom.triage import triage_of_report

XRT = """RuntimeError: Resource exhausted: From /job:worker/replica:0/task:0:
Attempting to reserve 3.00G at the bottom of memory. That was not possible. There are 1.50G free, 0B reserved, and \
1.50G reservable.;
HBM capacity 8.00G:
          Currently allocated:    6.00G (   6,442,450,944 bytes)
          Program requirement:    3.00G (   3,221,225,472 bytes)
; attempting reservation for program memory

Total hbm usage >= 9.50G:
    reserved(Infeed/Outfeed/Continuations) 512.00M
    program                    3.00G
Persistent allocations include some or all of:
    arguments                512.00M (88.1% utilization)
    output                     5.00G (70.2% utilization) [may share some memory with arguments]

Program hbm requirement"""


def read(content: bytes) -> OomLog:
    return scan_log(io.BytesIO(content))


def bare(report: OomReport, at_line: bool = False) -> OomReport:
    """A report without reasons, and on line 1."""
    return replace(report, unknown={}, at_line=report.at_line if at_line else 1)


def test_errors_of_one_line_are_read_as_ever() -> None:
    """Each field that is known, in the words of the text or in bytes."""
    lines: list[str] = []
    for name in ONE_LINERS:
        report = ALL[name][1]
        lines += [f"# {name}", *(f"{field}: {value}" for field, value in known(report)), ""]
    check_golden(Path(__file__).with_name("one_liners.txt"), "\n".join(lines))


def known(report: OomReport | Buffer) -> Iterator[tuple[str, object]]:
    """The fields that are not as in a report of which nothing is known."""
    for field in report.__dataclass_fields__.values():
        value = getattr(report, field.name)
        if field.name == "buffers":
            yield from ((f"buffer {number}", dict(known(each))) for number, each in enumerate(value))
        elif field.name != "unknown" and value != field.default:
            yield field.name, value


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("form", ALL)
def test_reads_the_same_however_it_is_printed(form: str, style: str) -> None:
    text, expected = ALL[form]
    log = read(STYLES[style](text))
    assert [bare(report) for report in log.reports] == [expected]
    turned = "The log has its newest lines first: it is read from its end."
    told = {"utf-16": "The log is UTF-16, and is read as such.", "newest": turned}
    assert log.notes == tuple(note for word, note in told.items() if word in style)


def test_what_the_runtime_lists_behind_a_request_is_of_one_error() -> None:
    """As XRT's does where a program can't be loaded: a request, what is live, and the program's own list."""
    (report,) = read((XRT + HBM.text().partition("Program hbm requirement")[2]).encode()).reports
    used: dict[str, Any] = {
        "used_bytes": 6 * GIB,
        "capacity_bytes": 8 * GIB,
        "program_bytes": 3 * GIB,
        "reserved_bytes": 0,
    }
    request: dict[str, Any] = {"requested_bytes": 3 * GIB, "free_bytes": 3 * GIB // 2, "exceeded_bytes": 3 * GIB // 2}
    parts: dict[str, Any] = {"arguments_bytes": 512 * MIB, "output_bytes": 5 * GIB, "shared_bytes": None}
    sentence = XRT.splitlines()[1].rstrip(";")
    assert bare(report) == replace(HBM.report(), kind="load", sentence=sentence, **used, **request, **parts)
    triage = triage_of_report(report, "log")
    assert triage.is_request and triage.over_bytes == report.exceeded_bytes
    assert triage.notes == ("HBM has 8.00 GiB: 6.00 GiB are live, of which outputs take 5.00 GiB.",)


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


def test_copies_count_and_the_complete_one_wins() -> None:
    text = HBM.text()
    cut = text[: len(text) // 2].rstrip("\n") + "...\n"
    log = read((cut + "Traceback\n" + text + "During handling\n" + BRIEF.text() + repr(text) + "\n").encode())
    # the brief one is what another program may have printed: nothing in it differs
    expected = replace(HBM.report(), count=3, used_bytes=HBM.report().used_bytes)
    found = [bare(report) for report in log.reports]
    assert found[0].buffers == expected.buffers
    assert (found[0].count, found[0].is_cut, len(found)) == (4, False, 1)


def test_details_that_repeat_the_message_are_no_copy() -> None:
    details = repr(VMEM.text()[60:400])[1:-1]
    text = VMEM.text() + f" [type.googleapis.com/tensorflow.tpu.CompilationResultProto='\\x08\\x12{details}...']\n"
    assert [bare(report) for report in read(text.encode()).reports] == [VMEM.report()]


def test_different_errors_stay_apart_in_order() -> None:
    errors = [HBM, VMEM, CODED, OLD_HBM]
    log = read("".join(error.text() for error in errors).encode())
    assert [bare(report) for report in log.reports] == [error.report() for error in errors]
    lines = [len(error.text().splitlines()) for error in errors]
    assert [report.at_line for report in log.reports] == [1, 1 + lines[0], 1 + sum(lines[:2]), 1 + sum(lines[:3])]


def test_devices_of_one_error_are_listed() -> None:
    text = ALL["runtime"][0]
    (report,) = read("".join(text.replace("0x0x0", f"{n}x0x0") for n in range(5)).encode()).reports
    assert report.count == 5
    assert report.device == "0x0x0_HBM0, 1x0x0_HBM0, 2x0x0_HBM0 and 2 more"


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


def test_names_what_is_no_tpu_error() -> None:
    log = read(
        b"2026-01-01 W bfc_allocator.cc:497 Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB\n"
        b"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 214748364800 bytes.\n"
        b"BufferAssignment OOM Debugging.\n"
        b"terminate called after throwing an instance of 'std::bad_alloc'\n"
        b"kernel: Out of memory: Killed process 4242 (python) total-vm:1kB\n"
        b"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB\n"
        b"MemoryError\n"
    )
    assert log.reports == ()
    assert [note.split(":")[0] for note in log.notes] == ["Line 1, one of 3", "Line 4", "Line 5", "Line 6, one of 2"]
    assert all("not a TPU error" in note for note in log.notes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "RESOURCE_EXHAUSTED: quota exceeded\n",
        "Attempting to allocate 16M chunks for the loader\n",
        "I0101 12:00:00.0 1 a.cc:1] Ran out of memory.\n",
        "Size: 5.00G\nShape: f32[8]\nXLA label: x = y(z)\nAllocation type: HLO temp\n",
        "no CompileTimeHbmOom, no RuntimeBufferAllocationFailure\n",
    ],
)
def test_ordinary_lines_are_no_error(text: str) -> None:
    assert read(text.encode()) == OomLog((), (), text.count("\n"), len(text))


def test_only_a_code_is_an_error_too() -> None:
    (report,) = read(b"RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: XLA:TPU compile perm").reports
    assert (report.kind, report.memory_space, report.code, report.is_cut) == ("compile", "hbm", "E1000", True)


def test_a_tail_without_its_beginning() -> None:
    text = HBM.text()
    (report,) = read(text[text.index("Total hbm") :].encode()).reports
    assert report.used_bytes is not None
    assert report.buffers == HBM.report().buffers
    assert report.is_cut


def test_records_of_several_pods_are_kept_apart() -> None:
    errors = {"train-0": HBM, "train-1": CODED}
    columns = [
        [json.dumps({"n": n, "pod_name": pod, "log": line + "\n"}) + "\n" for n, line in enumerate(error.lines())]
        for pod, error in errors.items()
    ]
    log = read("".join(line for row in zip(*columns, strict=True) for line in row).encode())
    assert [bare(report) for report in log.reports] == [HBM.report(), CODED.report()]


def test_breaks_and_escapes_inside_of_an_operator() -> None:
    name = "jit(f)/broadcast_in_dim[ broadcast_dimensions=(  )\\n    shape=(8, 4) ]"
    allocation = replace(HBM.allocations[0], op_name=name)
    expected = "jit(f)/broadcast_in_dim[ broadcast_dimensions=( ) shape=(8, 4) ]"
    text = replace(HBM, allocations=(allocation,)).text()
    for content in (text, repr(text) + "\n", json.dumps({"message": text}) + "\n"):
        (report,) = read(content.encode()).reports
        assert (report.program, report.buffers[0].framework_op) == ("jit_f", expected)


def test_lists_of_old_compilers_without_sizes() -> None:
    log = read(
        b"Compilation failure: Ran out of memory in memory space vmem. It should not be possible to run out of vmem -"
        b" please file a bug against XLA.\n\nLargest program allocations in vmem:\n\n"
        b"  XLA label: register allocator spill slots\n  Allocation type: scoped\n\n"
        b"  XLA label: %fusion.177 = (bf16[], f32[256]{0}) fusion(f32[256]{0})\n  Allocation type: scoped\n\n"
    )
    (report,) = log.reports
    assert (report.memory_space, report.used_bytes, report.buffers, report.is_cut) == ("vmem", None, (), False)
    assert report.unknown["buffers"] == "the error's text gives no size for 2 of the allocations that it names"


def test_sentences_on_lines_of_their_own() -> None:
    log = read(
        b"RESOURCE_EXHAUSTED: Error loading program 'jit_step':\nAttempting to allocate 1.75G. That was not possible."
        b" There are 1.50G free.\n"
        b"> RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\n> Ran out of memory in memory space vmem\n"
        b"> while allocating on stack for %dkv.1\n> (block=2048)\n"
        b"> Scoped allocation with size 34.00M and limit 32.00M exceeded scoped vmem limit by 2.00M.\n"
    )
    load, scoped = log.reports
    assert (load.kind, load.program, load.at_line, load.exceeded_bytes) == ("load", "jit_step", 1, 256 * MIB)
    assert (scoped.kind, scoped.code, scoped.at_line, scoped.scoped_bytes) == ("compile", "E1001", 3, 34 * MIB)
    assert [buffer.name for buffer in scoped.buffers] == ["dkv.1"]


@pytest.mark.parametrize("end", ["", "\n", "...\n", "\nstep 5\n"])
@pytest.mark.parametrize("cut", ["Used 28.00G of 15.7", "Used 28.00G of", "Used 28.00G"])
def test_a_line_that_ends_behind_the_use(cut: str, end: str) -> None:
    text = HBM.text()
    (report,) = read((text[: text.index("Used ")] + cut + end).encode()).reports
    assert (report.used_bytes, report.capacity_bytes, report.is_cut) == (HBM.report().used_bytes, None, True)


@pytest.mark.parametrize(
    ("form", "end"),
    [("short", "exceeds available HBM (15.7"), ("stack", "and limit 32.0"), ("allocation", "(size=104")],
)
def test_other_lines_that_end_behind_the_use(form: str, end: str) -> None:
    text, expected = ALL[form]
    (report,) = read(text[: text.rindex(end) + len(end)].encode()).reports
    assert (report.used_bytes, report.capacity_bytes, report.is_cut) == (expected.used_bytes, None, True)


@pytest.mark.parametrize("copies", [2, 3, 8])
@pytest.mark.parametrize("burst", [1, 4, 10])
def test_no_buffer_is_listed_twice_where_copies_are_mixed(copies: int, burst: int) -> None:
    reports = read(shuffled([HBM.text().encode()] * copies, seed=copies, burst=burst)).reports
    for report in reports:
        sizes = [buffer.size_bytes for buffer in report.buffers]
        assert len(sizes) == len(set(sizes)) and set(sizes) <= {buffer.size_bytes for buffer in HBM.report().buffers}


def test_mixed_lists_are_unknown() -> None:
    lines = [line for line in HBM.lines() for _ in range(2 if line.strip()[:2] in ("1.", "2.") else 1)]
    (report,) = read("\n".join(lines).encode()).reports
    assert report.is_cut and not report.buffers and "mixed" in report.unknown["buffers"]


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


def test_a_message_that_is_not_called_so() -> None:
    record = {"message": "step failed", "context": {"what": HBM.text()}, "stream": "stderr"}
    assert [bare(report) for report in read(json.dumps(record).encode() + b"\n").reports] == [HBM.report()]


def test_only_the_code_of_a_gpu() -> None:
    log = read(b"2026-11-21 E cuda.cc:12] CUDA_ERROR_OUT_OF_MEMORY\n")
    assert (log.reports, [note.split(":")[0] for note in log.notes]) == ((), ["Line 1"])


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
