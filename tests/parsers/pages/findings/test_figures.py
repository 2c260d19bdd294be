"""Figures of findings as data: none stands in words alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.insight.cases.all import CASES
from tests.insight.score import overview_of
from tpuprof.parsers.pages.findings.figures import Figure, figures_of_words, is_same, other_figures
from tpuprof.parsers.pages.findings.finding import Finding

_KINDS = {case.kind: case for case in reversed(CASES) if case.kind}
"""A program for each kind of finding."""

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


@pytest.mark.parametrize("kind", sorted(_KINDS))
def test_each_number_in_words_is_a_figure(kind: str, tmp_path: Path) -> None:
    """Of all findings of a program in which one of this kind is planted."""
    found = overview_of(_KINDS[kind], tmp_path).findings
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
