"""Out-of-memory errors as JSON (`tpuprof.oom/1`): sizes in bytes, `null` never without a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.model import Advice, OomLog, OomReport
from tpuprof.parsers.memory.oom.triage import Triage, space_words
from tpuprof.tui.draw.buffers.keys import shared_record
from tpuprof.tui.report.json import document, head

_SIZES = (
    "used_bytes",
    "capacity_bytes",
    "exceeded_bytes",
    "requested_bytes",
    "free_bytes",
    "reserved_bytes",
    "program_bytes",
    "arguments_bytes",
    "outputs_bytes",
    "shared_bytes",
    "global_bytes",
    "scoped_bytes",
    "overlays_bytes",
    "hlo_temp_bytes",
    "tensor_core_bytes",
    "sparse_core_bytes",
    "unpadded_bytes",
    "padding_bytes",
    "utilization",
    "fragmentation",
    "fragmentation_bytes",
)

_RENAMED: Mapping[str, str] = {"outputs_bytes": "output_bytes"}
"""Names as on the memory page, and how the error's own figures call them."""

_NOT_SAID = "the message does not say"
_NOT_IN_TEXT = "only a profile or a dump of the module tells"

_REASONS = {
    **dict.fromkeys(
        (f"reports[].{name}" for name in (*_SIZES, "memory_space", "program", "device", "code")), _NOT_SAID
    ),
    **dict.fromkeys(
        (
            f"reports[].buffers[].{name}"
            for name in (
                "unpadded_bytes",
                "expansion",
                "padding_bytes",
                "shape",
                "framework_op",
                "source",
                "allocation_type",
                "operator",
                "tag",
                "xla_label",
            )
        ),
        _NOT_SAID,
    ),
    **dict.fromkeys((f"reports[].buffers[].{name}" for name in ("offset_bytes", "born", "dies")), _NOT_IN_TEXT),
    "reports[].advice[].saving_bytes": "it can't be estimated from what the message says",
    "reports[].advice[].source": "the message names no source line for these buffers",
}


def oom_json(log: OomLog, triages: Sequence[Triage], path: str, limit: int = 0) -> str:
    """The errors as JSON text, with a newline at the end; at most `limit` buffers each, 0 for all."""
    pairs = list(zip(log.reports, triages, strict=True))
    body = {
        "log": {"lines": log.lines, "bytes": log.bytes_read},
        "reports": [_report(report, triage, limit) for report, triage in pairs],
    }
    reasons = dict(_REASONS)
    for report in log.reports:
        called = {attribute: name for name, attribute in _RENAMED.items()}
        reasons |= {f"reports[].{called.get(name, name)}": why for name, why in report.unknown.items()}
    name = path.rstrip("/").rpartition("/")[2] or path
    return document(head("oom", Run(name, path, (), ()), (), log.notes), body, reasons)


def _report(report: OomReport, triage: Triage, limit: int) -> dict[str, object]:
    buffers = triage.need.buffers
    return {
        "kind": report.kind,
        "memory_space": None if report.memory_space is None else space_words(report.memory_space),
        "code": report.code,
        "sentence": report.sentence,
        "program": report.program,
        "device": report.device,
        "at_line": report.at_line,
        "count": report.count,
        **{name: getattr(report, _RENAMED.get(name, name)) for name in _SIZES},
        "is_cut": report.is_cut,
        "notes": list(triage.notes),
        "advice": [_advice(advice) for advice in triage.advice],
        "buffers": [_buffer(buffer) for buffer in (buffers[:limit] if limit else buffers)],
    }


def _advice(advice: Advice) -> dict[str, object]:
    return {
        "kind": advice.kind,
        "saving_bytes": advice.saving_bytes,
        "sentence": advice.sentence,
        "how": advice.how,
        "arithmetic": advice.arithmetic,
        "source": advice.source,
        "buffers": list(advice.buffers),
    }


def _buffer(buffer: Buffer) -> dict[str, object]:
    return {
        **shared_record(buffer),
        "operator": buffer.operator,
        "tag": buffer.tag,
        "xla_label": buffer.label,
    }
