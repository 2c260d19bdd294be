"""The quantities of out-of-memory errors: what each says, the advice on it, and the buffers that it lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.memory.oom.model import Advice, OomLog
from tpuprof.parsers.memory.oom.triage import Triage, space_words
from tpuprof.tui.report.fields import Field, Metric, Table, attribute, column, object_table, of_each
from tpuprof.tui.report.shared.buffers import BUFFER_FIELDS, SHARED_KEYS, BufferRows
from tpuprof.tui.report.units import BYTES, BYTES_BY_NAME, COUNT, COUNTS, FLAG, NUMBER, SHARE, TEXTS, VERBATIM, Unit

if TYPE_CHECKING:
    from tpuprof.parsers.memory.live_arrays import LiveArrays

_NOT_SAID = "the message does not say"


@dataclass(frozen=True, slots=True)
class OomErrors(Sized):
    """The errors of a log.

    Attributes:
        path: of the log; ``-`` for standard input.
        arrays: the device memory profile that was given with it.
    """

    sized_by = "triages"
    log: OomLog
    triages: Sequence[Triage]
    path: str
    arrays: LiveArrays | None = None


LOG: tuple[Metric[OomErrors], ...] = (
    attribute("log.lines", COUNT, "lines of the log"),
    attribute("log.bytes", BYTES, "its size, uncompressed", name="log.bytes_read"),
)


def _said(
    key: str, meaning: str, called: str = "", unit: Unit = BYTES, null: str = _NOT_SAID, name: str = ""
) -> Field[OomErrors]:
    """What an error says.

    Args:
        called: how help calls it; as its meaning where it is empty.
        name: of the attribute, where it is not the key.
    """
    return Field(key, unit, of_each(name or key, "log.reports"), meaning, null, called or meaning)


_SPACES = of_each(lambda report: report.memory_space and space_words(report.memory_space), "log.reports")
_NOTES = of_each(lambda triage: list(triage.notes), "triages")

_ERROR_FIELDS: tuple[Field[OomErrors], ...] = (
    _said("kind", "when it was", "", VERBATIM, ""),
    Field("memory_space", VERBATIM, _SPACES, "which memory it is", _NOT_SAID, "which memory it is"),
    _said("code", "the error's code", "", VERBATIM),
    _said("sentence", "its first sentence", "", VERBATIM, ""),
    _said("program", "the compiled module's name", "program", VERBATIM),
    _said("device", "whose memory it is", "device", VERBATIM),
    _said("at_line", "the first line of the log that has it", "", NUMBER, ""),
    _said("count", "how often the log has it", "", COUNT, ""),
    _said("used_bytes", "memory in use"),
    _said("capacity_bytes", "the limit"),
    _said("exceeded_bytes", "how much too large it is"),
    _said("requested_bytes", "the requested size"),
    _said("free_bytes", "free memory"),
    _said("reserved_bytes", "memory reserved by the system"),
    _said("program_bytes", "memory of the program"),
    _said("arguments_bytes", "arguments"),
    _said("outputs_bytes", "outputs", name="output_bytes"),
    _said("shared_bytes", "outputs that share memory with arguments"),
    _said("global_bytes", "global data"),
    _said("scoped_bytes", "scoped memory"),
    _said("overlays_bytes", "code that is loaded when it is needed", "overlays"),
    _said("hlo_temp_bytes", "temporaries"),
    _said("tensor_core_bytes", "memory of TensorCores"),
    _said("sparse_core_bytes", "memory of SparseCores"),
    _said("unpadded_bytes", "temporaries without padding"),
    _said("padding_bytes", "padding of the temporaries, or of the listed buffers", "padding"),
    _said("wanted_tokens", "tokens of the longest request of a serving engine", "", COUNT),
    _said("fitting_tokens", "tokens that fit into its KV cache", "", COUNT),
    _said("utilization", "the used share of the memory set aside", "utilization", SHARE),
    _said("fragmentation", "the share of gaps", "", SHARE),
    _said("fragmentation_bytes", "gaps between buffers"),
    _said("is_cut", "whether the text is cut off", "", FLAG, ""),
    Field(
        "plan",
        VERBATIM,
        of_each("plan.sentence", "triages"),
        "the cheapest combination of changes that fits, or the one that comes closest",
        "nothing is too large, or the message names no buffers",
    ),
    Field(
        "owners_bytes",
        BYTES_BY_NAME,
        of_each("account.owners", "triages"),
        "bytes by owner, which add up to the memory in use",
        _NOT_SAID,
    ),
    Field("notes", TEXTS, _NOTES, "further notes, one sentence each"),
)

ERRORS: Table[OomErrors] = Table("reports", _ERROR_FIELDS, len)
"""Errors; each has its advice and its buffers besides."""

CALLED: dict[str, str] = {
    **{field.key: field.heading for field in ERRORS.fields},
    "capacity": "the limit",
    "output_bytes": "outputs",
    "peak_unpadded_bytes": "the peak without padding",
    "scoped_instruction": "the largest user of scoped memory",
    "peak_instruction": "the program that runs at the peak",
    "buffers": "some buffers",
}
"""What people call the figures that an error or a compiled module may lack, by attribute."""

_NO_SAVING = "the message does not say enough to estimate it"
_NO_SOURCE = "the message names no source line for these buffers"
_ADVICE: Table[Sequence[Advice]] = object_table(
    "advice",
    (
        attribute("kind", VERBATIM, "the kind of advice"),
        attribute("saving_bytes", BYTES, "the saving, estimated from the listed buffers", null=_NO_SAVING),
        attribute("sentence", VERBATIM, "what takes memory"),
        attribute("how", VERBATIM, "what to do about it"),
        attribute("arithmetic", VERBATIM, "how the saving is computed"),
        attribute("source", VERBATIM, "the line of code to change", null=_NO_SOURCE),
        Metric("buffers", COUNTS, lambda advice: list(advice.buffers), "ranks of the buffers that it concerns"),
    ),
)
ADVICE = replace(_ADVICE, places=("reports[].advice[]",))
_IN_MODULES = frozenset(("offset_bytes", "born", "dies"))
_ALWAYS = frozenset(("name", "category", "size_bytes", "at_peak"))


def _of_errors(field: Field[BufferRows]) -> Field[BufferRows]:
    """A buffer's field with the reason that an error's text has for what is unknown."""
    why = "only a profile or a dump of the module has it" if field.key in _IN_MODULES else _NOT_SAID
    return field if field.key in _ALWAYS else replace(field, null=why)


BUFFERS: Table[BufferRows] = Table(
    "buffers",
    tuple(map(_of_errors, BUFFER_FIELDS)),
    len,
    json=(*SHARED_KEYS, "operator", "tag", "xla_label"),
    places=("reports[].buffers[]",),
)


@dataclass(frozen=True, slots=True)
class SourceLines(BufferRows):
    """The buffers of each source line as one; `counts` says how many they are."""

    counts: Sequence[int] = ()


_BY_LINE = ("name", "size_bytes", "share_percent", "unpadded_bytes", "expansion", "padding_bytes")
_OF_LINES: tuple[Field[Any], ...] = (
    replace(BUFFERS.by_key["name"], meaning="the source line"),
    *(BUFFERS.by_key[key] for key in _BY_LINE[1:]),
)
SOURCE_LINES: Table[SourceLines] = Table(
    "source_lines",
    (*_OF_LINES, Field("buffer_count", COUNT, column("counts"), "how many buffers it has")),
    len,
    markdown=("size_bytes", "share_percent", "expansion", "buffer_count", "name"),
)

SEARCHED = ("name", "category", "shape", "framework_op", "source", "allocation_type", "operator", "tag", "label")
