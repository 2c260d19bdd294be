"""The report on how a model runs: MFU, HFU and the way from the peak to them, tokens a second, blocks and layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import NO_PEAK_FLOPS, NO_TIMED_STEPS
from tpuprof.parsers.pages.overview.model_use import model_use
from tpuprof.parsers.pages.overview.model_use.blocks import NO_LAYER, ROW_WORDS, BlockRow
from tpuprof.parsers.pages.overview.model_use.page import MODEL, ModelPage
from tpuprof.parsers.pages.overview.model_use.samples import Samples
from tpuprof.tui.draw.format import UNKNOWN, duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.report.declared import Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import NO_REASON, Metric, Table, attribute, metric_rows, object_table
from tpuprof.tui.report.page import Head, ReportRequest, page_of
from tpuprof.tui.report.units import BYTES, COUNT, GFLOPS, SHARE_PERCENT, TEXT, TIME_MS, VERBATIM, Unit, plain

FLOPS = Unit("count", plain, lambda value, _: "n/a" if value is None else f"{value:.4g}")  # ``1.23e+15``


def _amount(value: float | None, _: bool = False) -> str:
    """A number of tokens or samples, without decimals if it is large: ``63,371``."""
    return "n/a" if value is None else f"{value:,.0f}" if value >= _MANY else f"{value:.4g}"


_MANY = 1_000
RATE = Unit("count a second", plain, _amount)
TOKENS = Unit("count", plain, _amount)


def largest_op(row: BlockRow) -> str | None:
    """The op with most of a block's time."""
    return row.largest[0][0] if row.largest else None


_NOT_COUNTED = "the FLOPs of these ops are not counted, or no op ran"
_NO_BYTES = "the bytes of these ops are not counted, or no op ran"
_NO_PHASE = "the optimizer is in no pass, and other ops may not name theirs"
_BLOCKS = "; ".join(f"{block}: {words}" for block, words in ROW_WORDS.items())
_BLOCK = attribute("block", VERBATIM, _BLOCKS)
_FIGURES: tuple[Metric[BlockRow], ...] = (
    attribute("time_ms", TIME_MS, "of the mean step; over all rows they add up to it", "of a step"),
    attribute("percent", SHARE_PERCENT, "its share of the mean step", "share", name="fraction"),
    attribute("flops", FLOPS, "in a step, over all cores; over all rows they add up to step_flops", null=_NOT_COUNTED),
    attribute(
        "peak_percent",
        SHARE_PERCENT,
        "these FLOPs as a share of what the cores could compute at their peak in that time",
        "of the peak",
        null=_NOT_COUNTED,
        name="peak_fraction",
    ),
    attribute("hbm_bytes", BYTES, "to and from HBM in a step, over all cores", "HBM", null=_NO_BYTES),
    attribute("uncounted_ms", TIME_MS, "the part of it in ops of unknown work", "not counted"),
    attribute("ops", COUNT, "distinct ops", "ops"),
    Metric("op", TEXT, largest_op, "the op with most of the time", "no op ran", "most in"),
    attribute(
        "by_name_ms",
        TIME_MS,
        "the part of it in ops whose names give the block; other ops are assigned by what they compute and by "
        "their neighbours",
        "by name",
    ),
)
_SHOWN = ("time_ms", "percent", "flops", "peak_percent", "hbm_bytes", "by_name_ms")

BLOCKS: Table[Sequence[BlockRow]] = object_table(
    "blocks",
    (
        _BLOCK,
        attribute("pass", TEXT, "forward, backward or recomputed, by names", "pass", null=_NO_PHASE, name="phase"),
        *_FIGURES,
    ),
    csv=("block", "pass", *(metric.key for metric in _FIGURES)),
    markdown=("block", "pass", *_SHOWN),
)
LAYERS: Table[Sequence[BlockRow]] = object_table(
    "layers",
    (
        attribute("layer", VERBATIM, f"by names; those that a loop runs over are one; {NO_LAYER}: in none"),
        _BLOCK,
        *_FIGURES,
    ),
    csv=("layer", "block", *(metric.key for metric in _FIGURES)),
    markdown=("layer", "block", *_SHOWN),
)


def _of_steps(key: str, unit: Unit, name: str, meaning: str, heading: str) -> Metric[Any]:
    """A figure of the steps; None where the profile has no steps."""
    return attribute(key, unit, meaning, heading, null=NO_REASON, name=f"model.step_time.{name}")


_DEVIATION = "standard deviation of the steps: how far they spread"
PAGE_METRICS: tuple[Metric[Any], ...] = (
    _of_steps("step_median_ms", TIME_MS, "median_ps", "median of the steps", "median step"),
    _of_steps("step_minimum_ms", TIME_MS, "minimum_ps", "the shortest step", "shortest step"),
    _of_steps("step_maximum_ms", TIME_MS, "maximum_ps", "the longest step", "longest step"),
    _of_steps("step_deviation_ms", TIME_MS, "standard_deviation_ps", _DEVIATION, "standard deviation"),
    _of_steps("step_count", COUNT, "count", "number of steps", "steps"),
)


_pictures = drawn_by("tpuprof.tui.pages.overview.ledger.picture:use_pictures")
_waterfall = drawn_by("tpuprof.tui.pages.overview.ledger.model_use.drawing:waterfall")
_model_lines = drawn_by("tpuprof.tui.pages.overview.ledger.model_use.drawing:model_lines")


@dataclass(frozen=True)
class ModelUseContent:
    """What is printed.

    Attributes:
        model: the page; use: its `use`, with what the call gives for a step.
        tokens_are_given: whether the call gives the number of tokens or samples of a step.
    """

    model: ModelPage
    use: model_use.ModelUse
    tokens_are_given: bool


_GIVEN = "no FLOPs are counted, and none are given"
_NO_TOKENS = "--tokens does not say how many a step has, and neither does the compiled program"


def _counted_by(of: ModelUseContent) -> str | None:
    return "given" if of.use.is_given else None if of.use.model_flops is None else "hlo"


def _tokens_by(of: ModelUseContent) -> str | None:
    return "given" if of.tokens_are_given else None if of.use.tokens is None else "hlo"


def _kind(of: ModelUseContent) -> str | None:
    samples = of.model.samples
    return None if of.tokens_are_given or not isinstance(samples, Samples) else samples.kind


def _source_words(read: Callable[[ModelUseContent], str | None]) -> Callable[[ModelUseContent], str | None]:
    """What a number is from, in words."""
    words = {"hlo": "the compiled program", "given": "the command line"}
    return lambda of: words.get(read(of) or "", UNKNOWN)


def _peak_words(of: ModelUseContent) -> str:
    words = GFLOPS.words(of.use.peak, False)
    return words if of.use.peak is None else f"{words}FLOP/s"


_MFU = (
    "model FLOPs utilization: the model's FLOPs, without recomputed ones, as a share of what the cores could "
    "compute at their peak in the mean step"
)
_BY_HLO = "where the model's FLOPs are from: --model-flops (given), or the compiler's count of all ops of a step (hlo)"
_AT_LEAST = "share of the mean step in ops of unknown work: above 0, HFU and MFU by HLO are lower bounds"
_HFU = "hardware FLOPs utilization: the same with all FLOPs that ran"
_MODEL_FLOPS = "the model's FLOPs in a step, over all cores"
_STEP = "mean duration of a step on its slowest core, the sum of the parts"
_RATE = "tokens, or samples, of a step over the time from one step to the next"
_TOKENS = "tokens, or samples, of a step, over all cores"
_TOKENS_BY = (
    "where the tokens, or samples, of a step are from: --tokens (given), or the compiled program's arguments (hlo)"
)
_KIND = "tokens or samples, by the program: tokens if it has attention and integer inputs, else samples"
_KIND_GIVEN = "--tokens gives only the number; or the program does not say"
METRICS: tuple[Metric[ModelUseContent], ...] = (
    attribute("mfu_percent", SHARE_PERCENT, _MFU, "MFU", null=_GIVEN, name="use.mfu"),
    attribute("hfu_percent", SHARE_PERCENT, _HFU, "HFU", name="use.hfu"),
    Metric(
        *("model_flops_from", VERBATIM, _counted_by, _BY_HLO),
        heading="model FLOPs from",
        words=_source_words(_counted_by),
    ),
    attribute("model_flops", FLOPS, _MODEL_FLOPS, "model FLOPs a step", name="use.model_flops"),
    attribute("step_flops", FLOPS, "FLOPs that ran in a step, over all cores", "FLOPs a step", name="use.step_flops"),
    attribute("uncounted_percent", SHARE_PERCENT, _AT_LEAST, "not counted", name="use.uncounted"),
    attribute("tokens_per_second", RATE, _RATE, "tokens a second", null=_NO_TOKENS, name="use.tokens_per_second"),
    attribute("tokens", TOKENS, _TOKENS, "tokens a step", null=_NO_TOKENS, name="use.tokens"),
    Metric(
        *("tokens_from", VERBATIM, _tokens_by, _TOKENS_BY, _NO_TOKENS, "tokens from"), words=_source_words(_tokens_by)
    ),
    Metric("tokens_are", VERBATIM, _kind, _KIND, _KIND_GIVEN, "tokens or samples"),
    attribute("step_time_ms", TIME_MS, _STEP, "mean step", name="use.step_ps"),
    attribute("period_ms", TIME_MS, "mean step plus the time to the next step", "a step every", name="use.period_ps"),
    attribute("cores", COUNT, "cores that ran the steps", "cores", name="use.cores"),
    Metric(
        *("core_peak_gflops_per_second", GFLOPS, lambda of: of.use.peak, "the peak of one core"),
        heading="peak of a core",
        words=_peak_words,
    ),
    *PAGE_METRICS,
)

WATERFALL: Table[Sequence[model_use.Part]] = object_table(
    "parts",
    (
        attribute("part", VERBATIM, "; ".join(f"{part}: {model_use.PART_WORDS[part]}" for part in model_use.PARTS)),
        attribute("percent", SHARE_PERCENT, "of the peak; over all parts they add up to 100", "share", name="fraction"),
        attribute("time_ms", TIME_MS, "time of the mean step", "of a step"),
    ),
    (Metric("title", VERBATIM, lambda of: model_use.PART_TITLES[of.part], "its name on the page", heading="part"),),
    csv=("part", "percent", "time_ms"),
    markdown=("title", "percent", "time_ms"),
)


def read(request: ReportRequest) -> ModelUseContent:
    """Reads the page, and adds what the call gives for a step."""
    return content_of(page_of(MODEL)(request), request.options.get("model_flops"), request.options.get("tokens"))


def content_of(page: ModelPage, model_flops: float | None = None, tokens: float | None = None) -> ModelUseContent:
    """The page with what a call gives for a step; without tokens, with the tokens or samples of its program."""
    by_program = page.samples.count if isinstance(page.samples, Samples) else None
    use = model_use.with_given(page.use, model_flops, by_program if tokens is None else tokens)
    return ModelUseContent(page, use, tokens is not None)


def declare(content: ModelUseContent, request: ReportRequest) -> Declared:
    """Figures, the waterfall, and the step by block and by layer."""
    page, use = content.model, content.use
    parts = Section(WATERFALL, use.parts, "From the peak to MFU" if use.parts else "")
    title = f"Model of {request.run.name}"
    return Declared(
        Head(title, request.run, page.hosts, page.warnings, (), page.simulated),
        statement=statement(use),
        metrics=lambda: metric_rows(METRICS, content),
        parts=(
            Metrics(METRICS, content),
            parts,
            Section(BLOCKS, page.blocks, "Blocks" if page.blocks else ""),
            Section(LAYERS, page.layers, "Layers" if page.layers else "", request.most_rows),
        ),
        csv=_csv(content, request) or parts,
        text=lambda pen: _text(content, request, pen),
        unknown=all_reasons(content),
    )


TABLES: Mapping[str, Table[Any]] = {"block": BLOCKS, "layer": LAYERS}
"""The table of CSV with ``--by``, whose rows and columns can be chosen."""


def _csv(content: ModelUseContent, request: ReportRequest) -> Section[Any] | None:
    """The table of ``--by``; None for the waterfall."""
    by = request.options.get("by")
    if by is None:
        return None
    table = TABLES[by]
    return Section(table, getattr(content.model, table.key), limit=request.most_rows)


def statement(use: model_use.ModelUse) -> str:
    """MFU and HFU in a sentence, and what takes most of the rest."""
    if use.hfu is None and use.mfu is None:
        return f"MFU and HFU are unknown: {use.unknown.get('hfu', '')}."
    mfu, hfu = (percent(None if value is None else 100 * value) for value in (use.mfu, use.hfu))
    both = f"MFU and HFU are {mfu}" if mfu == hfu else f"MFU is {mfu}, HFU {hfu}"
    words = f"{both} ({counted(use.cores or 0, 'core')}, step of {duration(use.step_ps)})"
    largest = max((part for part in use.parts if part.part != "mfu"), key=lambda part: part.fraction, default=None)
    if largest is not None and largest.fraction > 0:
        words += f"; the largest loss is {model_use.PART_TITLES[largest.part]}, {percent(100 * largest.fraction)}"
    if use.mfu is not None and use.mfu > 1:
        return (
            f"{words}. That is impossible: --model-flops counts one step over all cores, and is too large for "
            "this step."
        )
    if use.is_given and use.mfu is not None and use.hfu is not None and use.mfu > use.hfu:
        return f"{words}. --model-flops gives more FLOPs than are counted for the ops that ran."
    return f"{words}."


def reasons(content: ModelUseContent) -> Mapping[str, str]:
    """Why figures are unknown, by their keys."""
    use, page = content.use, content.model
    keys = {"mfu": "mfu_percent", "hfu": "hfu_percent", "uncounted": "uncounted_percent"}
    found = {keys.get(name, name): why for name, why in use.unknown.items()}
    found |= {"model_flops_from": found["model_flops"]} if "model_flops" in found else {}
    if use.peak is None:
        found["core_peak_gflops_per_second"] = NO_PEAK_FLOPS
    if use.step_ps is None:
        found |= dict.fromkeys(("step_time_ms", "period_ms", "cores"), use.unknown.get("hfu", ""))
    if use.tokens is not None and use.tokens_per_second is None:
        found["tokens_per_second"] = use.unknown.get("hfu", "")
    if use.tokens is None and isinstance(page.samples, str):
        why = f"{page.samples}; --tokens N gives the tokens of a step"
        found |= dict.fromkeys(("tokens_per_second", "tokens", "tokens_from"), why)
    if page.step_time is None:
        found |= dict.fromkeys(_OF_STEPS, use.unknown.get("hfu", "") or NO_TIMED_STEPS)
    return found


def all_reasons(content: ModelUseContent) -> Mapping[str, str]:
    """Why figures are unknown, and before them why the blocks and layers are."""
    unknown = content.model.unknown
    return {**{key: unknown[key] for key in ("blocks", "layers") if key in unknown}, **reasons(content)}


def notes(content: ModelUseContent, warnings: Sequence[str], pen: Pen) -> list[Line]:
    """Warnings, and why figures are unknown, by their names."""
    names = {figure.key: figure.name for figure in METRICS}
    return pen.notes(warnings, ((names.get(key, key), why) for key, why in all_reasons(content).items()))


_OF_STEPS = ("step_median_ms", "step_minimum_ms", "step_maximum_ms", "step_deviation_ms", "step_count")


def _text(content: ModelUseContent, request: ReportRequest, pen: Pen) -> list[Line]:
    use, page = content.use, content.model
    lines: list[Line] = [*pen.wrap(statement(use), "strong")]
    if use.uncounted:
        share = percent(100 * use.uncounted)
        which = "HFU is" if use.is_given else "HFU and MFU are"
        lines += pen.wrap(f"Ops that take {share} of a step have unknown work: {which} at least that high.", "warn")
    lines += _waterfall(use, pen)
    lines += _model_lines(page, request.most_rows, pen)
    lines += [pen.fit([(f" {name:<22}", "dim"), (words, "text")]) for name, words in metric_rows(METRICS[2:], content)]
    return [*lines, *notes(content, page.warnings, pen)]


REPORT = declared(
    "model",
    read,
    declare,
    (WATERFALL, BLOCKS, LAYERS),
    METRICS,
    warnings=lambda content: content.model.warnings,
    pictures=lambda content: _pictures(content.use),
)
