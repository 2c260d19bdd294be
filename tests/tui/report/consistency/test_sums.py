"""Parts add up: every list of parts, card and bar to what it is of, as exact as it is written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pytest

from tests.tui.report.consistency.documents import (
    MADE,
    Documents,
    made_documents,
    made_op_accounts,
    made_overview,
    values,
)
from tpuprof.parsers.pages.hosts.model import PARTS
from tpuprof.parsers.steps.accounts.owners import OWNERS
from tpuprof.parsers.steps.step_account import LEAST_BETWEEN
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK, Line
from tpuprof.tui.pages.overview.drawing import step_details
from tpuprof.tui.pages.overview.ledger.drawing import owner_parts, waterfall

Sum = tuple[str, float, Sequence[float]]
"""What is whole, how much that is, and its parts."""


def owners(shown: Documents) -> Iterator[Sum]:
    """The mean step, and each step, core and host."""
    page = shown["ledger"]
    if page["step_time_ms"] is not None:
        yield "mean step", page["step_time_ms"], [owner["time_ms"] for owner in page["owners"]]
        yield "mean step, percent", 100.0, [owner["percent"] for owner in page["owners"]]
        between = [page["step_time_ms"], *(owner["between_ms"] for owner in page["owners"])]
        yield "from a step to the next", page["period_ms"], between
    for table in ("steps", "cores", "hosts"):
        for row in page[table]:
            yield f"{table} {row['name']}", row["time_ms"], [row[f"{owner}_ms"] for owner in OWNERS]


def parts_of_the_peak(shown: Documents) -> Iterator[Sum]:
    """What the cores could compute in the mean step, and HFU."""
    page = shown["model"]
    if page["parts"]:
        fraction = {part["part"]: part["percent"] for part in page["parts"]}
        yield "peak", 100.0, [*fraction.values()]
        yield "peak, ms", page["step_time_ms"], [part["time_ms"] for part in page["parts"]]
        yield "HFU", page["hfu_percent"], [fraction.get(part, 0.0) for part in ("recomputed", "passes", "mfu")]
        yield "MFU", page["mfu_percent"], [fraction.get("mfu", 0.0)]


def blocks_of_the_model(shown: Documents) -> Iterator[Sum]:
    """The mean step by block and by layer, its FLOPs, and memory at the peak."""
    page = shown["model"]
    for table in ("blocks", "layers"):
        if page[table]:
            yield table, page["step_time_ms"], [row["time_ms"] for row in page[table]]
            yield f"{table}, percent", 100.0, [row["percent"] for row in page[table]]
            if page["step_flops"] is not None:
                yield f"{table}, FLOPs", page["step_flops"], [row["flops"] or 0.0 for row in page[table]]


def claims(shown: Documents) -> Iterator[Sum]:
    """What a finding is worth by owner, an owner's time that findings claim, and what they leave of it."""
    found = [each for each in shown["findings"]["findings"] if each["worth_ms"] is not None]
    for finding in found:
        yield finding["title"], finding["worth_ms"], [claim["time_ms"] for claim in finding["claims"]]
    page = shown["ledger"]
    if page["step_time_ms"] is not None:
        of_step = all(finding["per"] == "step" for finding in found)
        apart = page["period_ms"] - page["step_time_ms"] >= LEAST_BETWEEN * page["period_ms"]
        for owner in page["owners"]:
            mine = [claim["time_ms"] for each in found for claim in each["claims"] if claim["owner"] == owner["owner"]]
            if of_step:
                yield f"{owner['owner']}, claimed", owner["claimed_ms"], [*mine, 0.0]
            whole = owner["time_ms"] + owner["between_ms"] * apart
            yield owner["owner"], whole, [owner["claimed_ms"], owner["unclaimed_ms"]]


def hosts_and_cores(shown: Documents) -> Iterator[Sum]:
    """The mean step of hosts and of cores, and each step of each core."""
    steps = [step["duration_ms"] for step in shown["hosts"]["steps"]]
    for page in ("hosts", "cores"):
        for row in shown[page][page]:
            if "breakdown_ms" not in row:
                continue  # a core of another group
            parts = list((row["breakdown_ms"] or {}).values())
            if steps and row["common_steps"] == len(steps) and None not in parts:
                yield f"{page} {row['host']}", sum(steps) / len(steps), parts
    for step in shown["hosts"]["steps"]:
        for core in step["cores"]:
            if core["input"] is not None:
                yield f"step {step['name']} on {core['core']}", step["duration_ms"], [core[part] for part in PARTS]


def shares(shown: Documents) -> Iterator[Sum]:
    """The cores' time by class of op, and by op; what ops, framework ops and lines of code have beside idle time."""
    if shown["overview"]["shares"]:
        yield "classes of ops", 1.0, [share["fraction"] for share in shown["overview"]["shares"]]
    page = shown["ops"]
    of_ops = [op["self_time_percent"] for op in page["ops"]]
    if page["total_time_ps"] and page["op_count"] == shown["overview"]["op_count"]:  # those of SparseCores run beside
        yield "ops", 100.0, [*of_ops, 100.0 * page["idle_time_ps"] / page["total_time_ps"]]
    lines = [line["op_time_percent"] for line in shown["sources"]["lines"]]
    if lines and None not in lines:
        yield "lines of code", 100.0, lines


def input_ops(shown: Documents) -> Iterator[Sum]:
    """Ops that make input, and those that feed the device; the steps that wait."""

    def group(op: Mapping[str, Any]) -> str:
        return str(op["group"])

    for name, ops in groupby(sorted(shown["input"]["ops"], key=group), group):
        found = [op["self_time_percent"] for op in ops]
        if any(found):
            yield name, 100.0, found


def collectives(shown: Documents) -> Iterator[Sum]:
    """Transfers by what hides them, the steps' means, and waiting by group."""
    page = shown.get("collectives")
    if page is None or page["exposed_time_ms"] is None:
        return
    for row in (*page["collective_groups"], *page["collectives"]):
        yield row["name"], row["transfer_time_ms"], [row[f"{part}_time_ms"] for part in ("hidden", "exposed", "beside")]
    for part in ("hidden", "exposed", "beside"):
        yield part, page[f"{part}_time_ms"] * len(page["steps"]), [each[f"{part}_time_ms"] for each in page["steps"]]
    for part in ("exposed", "waiting"):
        of_groups = sum(row[f"{part}_time_ms"] for row in page["collective_groups"])
        yield f"{part}, one by one", of_groups, [row[f"{part}_time_ms"] for row in page["collectives"]]
    yield "waiting", page["waiting_time_ms"], [row["waiting_time_ms"] for row in page["collective_groups"]]


def trees(shown: Documents) -> Iterator[Sum]:
    """Each level of the op profile."""
    for name in ("by_program", "by_category", "by_provenance"):
        waiting = [shown["op-profile"][name]]
        while waiting:
            node = waiting.pop()
            children = node.get("children") or [] if node else []
            waiting += children
            if children and not node["hidden_children"] and node["kind"] != "op":
                for key in ("time_ps", "occurrences"):
                    yield f"{name} {node['name']}: {key}", node[key], [child[key] or 0 for child in children]


def latencies(shown: Documents) -> Iterator[Sum]:
    """Histograms, a mean session by its parts, and modules' shares."""
    page = shown.get("inference")
    if page is None or not page["sessions"]:
        return
    yield "sessions", page["sessions"], [each["count"] for each in page["histogram"]]
    for module in page["modules"]:
        yield module["name"], module["runs"], [each["count"] for each in module["histogram"]]
    if page["modules"]:
        yield "modules", 1.0, [module["time_fraction"] for module in page["modules"]]
    average = page["average"]
    parts = [average[f"{part}_ms"] for part in ("host", "device", "communication")]
    if None not in parts:
        yield "mean session", average["total_ms"], parts


def memory(shown: Documents) -> Iterator[Sum]:
    """What is in a memory at its peak, of a program by buffer and of an allocator by region."""
    for allocator in values(shown.get("memory-profile"), "allocators[]"):
        parts = [allocator[f"{part}_bytes"] for part in ("stack", "heap")]
        yield allocator["label"], allocator["peak_bytes"], parts
        yield f"{allocator['label']}, all", allocator["capacity_bytes"], [*parts, allocator["free_bytes"]]
        for event in allocator["timeline"]:
            of_event = [event[f"{part}_bytes"] for part in ("stack", "heap", "free")]
            yield f"{allocator['label']} at {event['time_ps']}", allocator["capacity_bytes"], of_event
    page = shown.get("memory")
    if page is not None and page.get("buffers"):
        yield "the peak", page["peak_bytes"], [max(page["heap_bytes"])]
        needed = page["total_allocation_bytes"] if page["memory_space"] == "HBM" else page["peak_bytes"]
        yield "capacity", page["capacity_bytes"], [needed, page["headroom_bytes"]]


LISTS: tuple[Callable[[Documents], Iterator[Sum]], ...] = (
    owners,
    parts_of_the_peak,
    blocks_of_the_model,
    claims,
    hosts_and_cores,
    shares,
    input_ops,
    collectives,
    trees,
    latencies,
    memory,
)


@pytest.mark.parametrize("parts_of", LISTS, ids=lambda parts_of: parts_of.__name__)
@pytest.mark.parametrize("profile", MADE)
def test_parts_add_up(profile: str, parts_of: Callable[[Documents], Iterator[Sum]]) -> None:
    for name, whole, parts in parts_of(made_documents(profile)):
        assert math.isclose(math.fsum(parts), whole, rel_tol=1e-6, abs_tol=1e-6), (name, whole, parts)
        assert min(parts) >= 0, (name, parts)


@pytest.mark.parametrize("parts_of", LISTS, ids=lambda parts_of: parts_of.__name__)
def test_some_profile_has_such_parts(parts_of: Callable[[Documents], Iterator[Sum]]) -> None:
    assert any(len(parts) > 1 for profile in MADE for _, _, parts in parts_of(made_documents(profile)))


@pytest.mark.parametrize("profile", MADE)
def test_modules_scopes_and_ops_add_up_to_each_owner_of_the_mean_step(profile: str) -> None:
    account, of_ops = made_overview(profile).account, made_op_accounts(profile)
    if account is None or of_ops is None:
        pytest.skip("no ops of TPUs ran in steps")
    wanted = {each.owner: each.time_ps for each in account.owners}
    for grouping in ("module", "scope", "op"):
        rows = of_ops.by(grouping)
        for column, owner in enumerate(OWNERS):
            found = math.fsum(row.owner_ps[column] for row in rows)
            assert math.isclose(found, wanted.get(owner, 0.0), rel_tol=1e-9, abs_tol=1e-3), (grouping, owner)
        assert all(math.isclose(math.fsum(row.owner_ps), row.time_ps, rel_tol=1e-9) for row in rows)
        assert min(min(row.owner_ps) for row in rows) >= 0


# --- as they are drawn

PEN = Pen(120, BLOCK)
TIME = re.compile(r"(?<![\d.])([\d.]+) (s|ms|µs|ns|ps)\b")
SHARE = re.compile(r"([\d.]+)%")
UNITS = {"s": 1e12, "ms": 1e9, "µs": 1e6, "ns": 1e3, "ps": 1.0}
ROUNDED = 0.005
"""A figure of three digits may be off by this share."""


def text_of(line: Line) -> str:
    return "".join(text for text, _ in line)


def check_drawn(lines: Sequence[str], whole_ps: float) -> None:
    """The first time and the first share of each line add up to the whole."""
    times = [float(number) * UNITS[unit] for number, unit in (TIME.findall(line)[0] for line in lines)]
    given = [float(SHARE.findall(line)[0]) for line in lines]
    assert abs(sum(times) - whole_ps) <= ROUNDED * sum(times) and abs(sum(given) - 100.0) <= 0.1 * len(lines), lines


@pytest.mark.parametrize("profile", MADE)
def test_the_waterfall_adds_up(profile: str) -> None:
    account = made_overview(profile).account
    if account is None:
        pytest.skip("it has no steps")
    lines = [text_of(line) for line in waterfall(account, PEN)]
    check_drawn(lines[1:], account.step_ps)
    check_drawn(lines[:1], account.step_ps)
    assert math.isclose(sum(part.fraction for part in owner_parts(account)), 1.0)


@pytest.mark.parametrize("profile", MADE)
def test_the_card_of_each_step_adds_up(profile: str) -> None:
    page = made_overview(profile)
    if page.account is None:
        pytest.skip("it has no steps")
    for index, step in enumerate(page.steps):
        lines = [text_of(line).rstrip() for line in step_details(index, page, PEN)]
        first = next(number for number, line in enumerate(lines) if line.startswith("where its time goes"))
        check_drawn(lines[first + 1 : lines.index("", first)], step.duration_ps)
