"""What two pages name alike is compared: a key or a title that they share stands in `quantities.py`, or says why not.

Two pages show the same where a number has the same key in `--describe`, or the same title, unit and meaning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from tests.tui.report.consistency.documents import keys_of
from tests.tui.report.consistency.quantities import ALL
from tpuprof.tui.pages import PAGES

TEXTS = ("text", "list of texts", "list of problems", "true or false", "ISO 8601, UTC", "object", "objects")
"""Units of what is no number."""

Place = tuple[str, str]
"""A page and a key of it."""

ANY = "any page"

OTHERS: Mapping[Place, str] = {
    ("framework-ops", "ops[]"): "Its rows are framework ops: each has the time and the work of several HLO ops.",
    ("framework-ops", "types[]"): "Its rows are types of framework ops, such as all dot_general.",
    ("sources", "lines[]"): "Its rows are lines of code: each has the time and the work of all ops that it made.",
    ("op", "core_count"): "It counts the cores on which the op ran.",
    ("op", "step_count"): "It counts the steps in which the op ran.",
    ("op", "users[]"): "Its rows stand behind what only hands the result on; the graph's are the next instructions.",
    ("sparse-core", "ops[]"): "Its rows are what SparseCores ran, which the other pages leave out.",
    ("input", "ops[]"): "Its rows are ops of the host's threads.",
    ("input", "op_count"): "It counts ops of the host's threads.",
    (
        "program",
        "ops[]",
    ): "Its rows are instructions, each of one run, by the program's text; no op of them was measured.",
    ("roofline", "program"): "It is of all ops together; a row of the other pages is of one.",
    ("roofline", "average_step"): "It is of all ops of a step together; a row of the other pages is of one.",
    ("roofline", "steps[]"): "Its rows are steps, each with all its ops.",
    ("cores", "cores[]"): "Its rows are cores; the page of hosts has the mean over the cores of each host.",
    ("inference", "average"): "It is the mean over all sessions; the overview has their percentiles alone.",
    ("inference", "launches"): "It is of launches alone; the overview has the percentiles of all sessions.",
    (ANY, "device.peak_cmem_read_gigabytes_per_second"): "It is one field of all pages, and no profile knows it.",
    (ANY, "device.peak_cmem_write_gigabytes_per_second"): "It is one field of all pages, and no profile knows it.",
}
"""What is named like something on another page and is another quantity, or is written by one field: its page, the key
or what it begins with, and how the two differ."""


def reason_of(place: Place) -> Place | None:
    """The entry of `OTHERS` that says what is different at a place."""
    page, key = place
    return next((other for other in OTHERS if other[0] in (page, ANY) and (f"{key}.").startswith(f"{other[1]}.")), None)


def compared() -> set[Place]:
    """What stands in `quantities.py`."""
    places = (at for quantity in ALL for at in (*quantity.places, *(of.at for of in quantity.apart)))
    return {(at.page, key) for at in places for key in at.keys}


def titles_of(fields: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Titles of some figures or fields, with their keys."""
    for field in fields:
        key = prefix + field.key
        if field.unit.parts:
            yield from titles_of(field.unit.parts, f"{key}{'[]' * field.unit.is_list}.")
            continue
        screen = getattr(field, "screen", None)
        for title in {field.heading, getattr(field, "short", ""), screen.title if screen is not None else ""} - {""}:
            yield title.lower(), key


def alike() -> Mapping[str, set[Place]]:
    """Numbers of all pages by their key, and by their title with their unit and meaning."""
    groups: defaultdict[str, set[Place]] = defaultdict(set)
    for page in PAGES:
        report, described = page.load_report(), keys_of(page.name)
        for key, row in described.items():
            if row.unit not in TEXTS:
                groups[key].add((page.name, key))
        tables = {table.key for table in report.tables}
        titled = list(titles_of(metric for metric in report.metrics if metric.key not in tables))
        for table in report.tables:
            for place in table.places or (f"{table.key}[]",):
                titled += titles_of(table.fields, f"{place}.")
        for title, key in titled:
            if (described_as := described.get(key)) is not None and described_as.unit not in TEXTS:
                groups[f"{title!r}: {described_as.meaning} ({described_as.unit})"].add((page.name, key))
    return {name: places for name, places in groups.items() if len({page for page, _ in places}) > 1}


def uncompared(places: set[Place], known: set[Place]) -> set[Place]:
    """Those that nothing compares and no sentence tells apart, where they are of two pages or more."""
    same = {place for place in places if reason_of(place) is None}
    return same - known if len({page for page, _ in same}) > 1 else set()


def test_what_two_pages_name_alike_is_compared_or_said_to_be_different() -> None:
    known = compared()
    missing = {name: sorted(found) for name, places in alike().items() if (found := uncompared(places, known))}
    assert not missing, "\n".join(f"{name}: {places}" for name, places in missing.items())


def test_a_quantity_that_is_nowhere_compared_is_found() -> None:
    places = {("ops", "ops[].made_up_ps"), ("roofline", "ops[].made_up_ps")}
    assert uncompared(places, compared()) == places
    assert uncompared({("ops", "ops[].made_up_ps"), ("framework-ops", "ops[].made_up_ps")}, compared()) == set()


def test_every_sentence_on_what_is_different_is_needed() -> None:
    used = {reason_of(place) for places in alike().values() for place in places - compared()}
    assert not set(OTHERS) - used
    assert all(why.endswith(".") for why in OTHERS.values())
