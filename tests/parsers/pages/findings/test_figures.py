"""Figures of findings as data: none stands in words alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.insight.cases.all import CASES
from tests.insight.score import overview_of
from tpuprof.parsers.pages.findings import why_slow
from tpuprof.parsers.pages.findings.budget import Budget, Claimed, Detector
from tpuprof.parsers.pages.findings.figures import Figure, figures_of_words, is_same, other_figures
from tpuprof.parsers.pages.findings.finding import Finding

FOUND_IN = {
    "waiting_for_input": "onset-shuffle-buffer-empty-from-step-8",
    "compiling": "onset-compiles-in-the-first-step",
    "late_host": "fleet-host-0-writes-each-step",
    "slow_core": "pod-chip-of-host-3-throttled-from-step-7",
    "slow_link": "weak-link-link-of-core-2-at-30-percent",
    "imbalance": "stages-last-stage-has-the-logits",
    "pipeline_bubbles": "stages-of-8-few-microbatches",
    "straggling": "straggler-extra-work-v5e",
    "at_barriers": "ulysses-barrier-in-each-layer",
    "sparse_core_waits": "exchanges-on-a-sparse-core-2-hosts",
    "across_slices": "dcn-in-each-layer-2-slices-v5p",
    "exposed_collectives": "tensor-job-products-wait-for-whole-activations",
    "idle_gaps": "ring-host-reads-each-loss",
    "between_steps": "rhythm-evaluates-after-every-4th-step",
    "debug_prints": "quantization-ranges-printed",
    "host_offload": "callback-in-each-step-unmarked-v4",
    "copy_waits": "quantization-scales-fetched-late",
    "tiny_loops": "brax-advantages-turn-by-turn",
    "repeated_casts": "accumulation-weights-cast-each-time",
    "recomputation": "state-spaces-chunks-computed-again-and-decays-summed-by-windows",
    "cast_arguments": "distillation-teacher-cast-in-each-step",
    "expanded": "torch-xla-keys-expanded-for-all-heads",
    "rewritten": "engine-cache-written-by-select",
    "scores_in_hbm": "scanned-softmax-of-queries-in-f32",
    "few_rows": "accumulation-few-rows-a-time-and-clipped-in-passes",
    "low_rank": "lora-adapters-in-products-of-their-own",
    "needless_precision": "flows-derivatives-by-multiply-and-sum-and-legendre-transforms-in-f32-at-highest",
    "padded_products": "experts-groups-of-72-columns",
    "streamed_operands": "small-windows-v6e",
    "kernel_waits": "matmul-kernel-with-one-buffer-v6e",
    "slow_kernels": "server-kernel-at-10-percent",
    "latency_bound": "brax-minibatches-shuffled-by-sorting",
    "vector_work": "recommender-negatives-by-multiply-and-sum",
    "random_bits": "lora-dropout-of-adapters-by-threefry",
    "unfused": "optimizer-averages-in-passes",
    "layout_copies": "vision-images-transposed",
    "shuffles": "time-mixing-tokens-shifted-by-cut-and-pad",
    "memory_bound": "ulysses-rotary-in-f32",
    "slow_steps": "rhythm-validates-every-3rd-step",
    "unexplained": "guided-angles-taken-anew-by-each-head",
}
"""A planted program for each detector, by name: it finds something there."""

_NAMED = {case.name: case for case in CASES}
_KINDS = {case.kind: case for case in reversed(CASES) if case.kind}
_OTHERS = ("no-device", "memory-full", "uncounted")
"""Kinds that are found by no detector in the list, or by one that finds others too."""

_TO_MS = {"ps": 1e-9, "ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}
_TO_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def amounts(sentence: str) -> Iterable[tuple[float, str]]:
    """Numbers of a sentence with their kinds, word by word: those that begin a word, with nothing but a unit in it."""
    words = sentence.split()
    for word, following in zip(words, [*words[1:], ""], strict=True):
        found = re.fullmatch(r"\(?~?(\d[\d,]*(?:\.\d+)?)(%?)(?:x|st|nd|rd|th)?[).,;:]*", word)
        if found is None:
            continue
        number, unit = float(found[1].rstrip(",").replace(",", "")), following.strip(").,;:")
        if found[2]:
            yield number / 100, "fraction"
        elif unit in _TO_MS and word[-1].isdigit():
            yield number * _TO_MS[unit], "ms"
        elif unit in _TO_BYTES and word[-1].isdigit():
            yield number * _TO_BYTES[unit], "bytes"
        else:
            yield number, "count"


def missing(finding: Finding) -> list[str]:
    """Numbers of a finding's sentences that are not among its figures."""
    figures = finding.subject.figures
    return [
        f"{value:g} {unit} of: {sentence}"
        for sentence in (finding.title, *finding.evidence, finding.basis)
        for value, unit in amounts(sentence)
        if not any(
            is_same(Figure("", value, each.unit if each.unit == "step" and unit == "count" else unit), each)
            for each in figures
        )
    ]


def test_each_detector_has_a_program() -> None:
    assert [each.detect.__name__ for each in why_slow.DETECTORS] == list(FOUND_IN), "plant a problem that it finds"


@pytest.mark.parametrize("kind", _OTHERS)
def test_each_other_kind_is_found(kind: str, tmp_path: Path) -> None:
    found = overview_of(_KINDS[kind], tmp_path).findings
    assert kind in [finding.kind for finding in found]
    assert [line for finding in found for line in missing(finding)] == []


@pytest.mark.parametrize("name", FOUND_IN)
def test_each_detector_finds_something_and_each_number_in_words_is_a_figure(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: list[str] = []

    def watched(detector: Detector) -> Detector:
        def detect(left: Budget) -> list[Claimed]:
            claimed = detector.claims(left, [])
            titles.extend(finding.title for finding, _ in claimed if finding is not None)
            return claimed

        return Detector(detector.kinds, detect) if detector.detect.__name__ == name else detector

    monkeypatch.setattr(why_slow, "DETECTORS", tuple(map(watched, why_slow.DETECTORS)))
    found = overview_of(_NAMED[FOUND_IN[name]], tmp_path).findings
    assert titles
    assert [line for finding in found for line in missing(finding)] == []


@pytest.mark.parametrize(
    ("sentence", "figures"),
    [
        ("3 compilations took 114 ms; meanwhile the device was idle for 1.20 s.", [
            Figure("# compilations took 114 ms", 3, "count"),
            Figure("3 compilations took #", 114, "ms"),
            Figure("meanwhile the device was idle for #", 1200, "ms"),
        ]),
        ("The worst is XlaCompile, 39.8 ms, in step 8.", [
            Figure("The worst is XlaCompile, #", 39.8, "ms"),
            Figure("The worst is XlaCompile, in step #", 8, "step"),
        ]),
        ("It moves 50.7 MB each time, at 0.5% of HBM's peak.", [
            Figure("It moves # each time", 50_700_000, "bytes"),
            Figure("at # of HBM's peak", 0.005, "fraction"),
        ]),
        ("Loop while.2 makes 2,000 trips, 1.62x the usual, every 3rd step.", [
            Figure("Loop while.2 makes # trips", 2000, "count"),
            Figure("Loop while.2 makes 2,000 trips, #x the usual", 1.62, "count"),
            Figure("Loop while.2 makes 2,000 trips, every #rd step", 3, "count"),
        ]),
        ("Input waits are longer by far on every 5th step of the twenty that the capture has of all cores.", [
            Figure("are longer by far on every #th step of the twenty that", 5, "count"),
        ]),
        ("fusion.12 (jit(f)/layer_3/dot:7, a.py:5) at <0.1%, bf16[8,128] in python/4211 of TPU v5.", []),
    ],
)  # fmt: skip
def test_numbers_are_read_out_of_words(sentence: str, figures: list[Figure]) -> None:
    """Numbers that stand by themselves, in the units of data; none of a name, and no bound."""
    assert list(figures_of_words(sentence)) == figures


def test_what_is_known_exactly_is_not_repeated() -> None:
    """An amount in words says the same as an exact figure of its unit that rounds to it; a count may count others."""
    exact = (Figure("x", 21.741107, "ms"), Figure("x", 0.196143, "fraction"), Figure("steps", 3, "count"))
    words = "3 ops take 21.7 ms (19.6%), 24 ms the first."
    found = [(figure.value, figure.unit) for figure in other_figures((words, words), ("3 ops take 24 ms",), exact)]
    assert found == [(3, "count"), (24, "ms")]
