"""Pages agree: a quantity that several of them show is the same on all, or `--describe` says how they differ.

What is shared stands in `quantities.py`, as keys of `--describe`. Reports are read as JSON, with one session a profile.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tui.report.consistency.documents import MADE, REAL, Documents, documents, made_documents, values
from tests.tui.report.consistency.quantities import ALL, Apart, Quantity

CLOSE = 1e-6
"""Shares and milliseconds (1 ns) by which equal figures may differ: they are rounded to picoseconds in between."""


def agree(one: Any, other: Any, within: float = 0.0) -> bool:
    """Whether two figures, lists of them or figures by name are equal; what one page does not know agrees with all."""
    if one is None or other is None:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return all(agree(one[name], other[name], within) for name in one.keys() & other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(agree(*pair, within) for pair in zip(one, other, strict=True))
    return math.isclose(one, other, rel_tol=CLOSE, abs_tol=max(CLOSE, within))


OF_GPUS = ("gpus", "v100")
"""Profiles whose steps are those of all GPUs together, beside rows of each GPU on the pages of hosts and cores."""


def disagreements(shown: Documents, profile: str) -> Iterator[str]:
    """What pages of a profile contradict each other in, a line each."""
    for quantity in ALL:
        places = [*quantity.places, *(of.at for of in quantity.apart if of.on and profile not in of.on)]
        if profile in OF_GPUS:
            places = [at for at in places if at.page not in ("hosts", "cores")]
        known = [(at, value) for at in places if (value := at.read(shown)) is not None]
        for at, value in known[1:]:
            if not agree(known[0][1], value, quantity.within):
                yield f"{quantity.name}: {known[0][0]} is {known[0][1]}, {at} is {value}"


@pytest.mark.parametrize("profile", MADE)
def test_pages_agree(profile: str) -> None:
    assert not list(disagreements(made_documents(profile), profile))


@pytest.mark.shared
@pytest.mark.parametrize("profile", REAL)
def test_pages_of_real_profiles_agree(profile: str, shared: Path) -> None:
    assert not list(disagreements(documents(str(shared / REAL[profile])), profile))


APART = [(quantity, apart) for quantity in ALL for apart in quantity.apart]


@pytest.mark.parametrize(("quantity", "apart"), APART, ids=[f"{of.name}, {apart.at}" for of, apart in APART])
def test_what_differs_says_so(quantity: Quantity, apart: Apart) -> None:
    assert apart.why.endswith(".") and apart.words in apart.at.meaning
    assert all(at.meaning != apart.at.meaning for at in quantity.places)


def test_every_exception_is_needed() -> None:
    shown = [made_documents(profile) for profile in MADE]
    needless = [
        f"{quantity.name}: {apart.at}"
        for quantity, apart in APART
        if not set(apart.on) & set(REAL) and all(agree(quantity.places[0].read(of), apart.at.read(of)) for of in shown)
    ]
    assert not needless, "\n".join(needless)


@pytest.mark.parametrize("quantity", ALL, ids=lambda quantity: quantity.name)
def test_every_quantity_is_shown_twice(quantity: Quantity) -> None:
    at_once = max(
        sum(
            at.read(made_documents(profile)) is not None for at in (*quantity.places, *(of.at for of in quantity.apart))
        )
        for profile in MADE
    )
    assert at_once >= 2 and bool(quantity.within) == bool(quantity.why)


# --- counts in sentences

COUNTED = re.compile(r"(\d+) ([a-z-]+?)s of the (forward|backward) pass")


@pytest.mark.parametrize("profile", MADE)
def test_findings_count_collectives_as_their_page_does(profile: str) -> None:
    shown = made_documents(profile)
    of_page: Counter[tuple[str, str]] = Counter()
    for group in values(shown.get("collectives"), "collective_groups[]"):
        of_page[group["kind"], group["pass"]] += group["collectives"]
    for sentence in values(shown["findings"], "findings[].evidence[]"):
        for number, kind, of in COUNTED.findall(sentence):
            assert of_page[kind, of] == int(number), sentence


# --- verdicts in sentences

LATE_HOST = re.compile(r"[Hh]ost (?:of core )?([\w-]+?)(?::\d+)? starts its cores late|wait for input on ([\w-]+)")


@pytest.mark.parametrize("profile", MADE)
def test_the_page_of_hosts_names_the_host_that_findings_name(profile: str) -> None:
    shown = made_documents(profile)
    named = {
        next(filter(None, found.groups()))
        for finding in shown["findings"]["findings"]
        if finding["worth_ms"] and (found := LATE_HOST.search(finding["title"]))
    }
    late = [row["host"] for row in shown["hosts"]["hosts"] if row["host"] in named]
    if len(late) == 1:
        assert shown["hosts"]["verdict"] == "straggler" and shown["hosts"]["straggler"] == late[0]
