"""`--step`, `--from` and `--to`: pages of a part of the capture, whose figures add up to those of the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tpuprof
from tests.support.build import tpu_plane, write_run
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.tui.pages import PAGES

STEP_PAGES = [page for page in PAGES if "step" in page.options]
OTHERS = [page for page in PAGES if "step" not in page.options and not page.is_of_arrays]
MS = 10**9


def _rows(call: Call, page: str, *words: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = call.json("report", page, "demo", *words, "--limit", "0", "--format", "json")["rows"]
    return rows


Ops = dict[tuple[str, str], tuple[int, int]]
"""Self time and occurrences by op and program."""


def _ops(call: Call, *part: str) -> Ops:
    rows = _rows(call, "ops", *part, "--columns", "name,program,self_time_ps,occurrences")
    return {(row["name"], row["program"]): (row["self_time_ps"], row["occurrences"]) for row in rows}


def _added(parts: list[Ops]) -> Ops:
    names = {name for part in parts for name in part}
    found = {name: [part[name] for part in parts if name in part] for name in names}
    return {name: (sum(each[0] for each in of), sum(each[1] for each in of)) for name, of in found.items()}


def test_the_ops_of_some_steps_are_those_of_each_step(call: Call) -> None:
    assert _ops(call, "--step", "104-105") == _added([_ops(call, "--step", "104"), _ops(call, "--step", "105")])


def test_ops_that_hold_others_are_left_out_where_these_begin_after_the_interval(call: Call) -> None:
    halves, whole = _added([_ops(call, "--to", "2000"), _ops(call, "--from", "2000")]), _ops(call, "--sort", "name")
    differing = {name: (halves[name], whole[name]) for name in whole if halves[name] != whole[name]}
    (((name, _), (parts, all_of_it)),) = differing.items()
    assert name == "while.98" and parts[0] < all_of_it[0]
    assert all_of_it[1] - parts[1] == 4, "one on each core"


def test_an_op_takes_in_a_step_what_its_own_page_says(call: Call) -> None:
    page = call.json("report", "op", "demo", "--op", "fusion.397", "--format", "json", "--limit", "0")
    of_step = next(step for step in page["by_step"] if step["step"] == "104")
    words = ("--step", "104", "--filter", "name=fusion.397", "--columns", "occurrences")
    alone = call.json("report", "op", "demo", "--op", "fusion.397", "--step", "104", "--format", "json")
    assert _rows(call, "ops", *words)[0]["occurrences"] == of_step["runs"] == alone["runs"]["count"]


def test_pages_of_ops_agree_on_a_step(call: Call) -> None:
    own = sum(of[0] for of in _ops(call, "--step", "104").values())
    for page in ("framework-ops", "sources", "roofline"):
        found = call.json("report", page, "demo", "--step", "104", "--format", "json", "--limit", "0")
        rows = found["lines" if page == "sources" else "ops"]
        of_device = [row["self_time_ps"] for row in rows if row.get("class") not in ("host", "idle")]
        assert sum(of_device) == pytest.approx(own), page
        assert "only the events that start in step 104 are counted" in found["warnings"]


def test_collectives_of_steps_are_a_mean_over_them(call: Call) -> None:
    def exposed(*steps: str) -> float:
        rows = _rows(call, "collectives", *steps, "--by", "kind", "--columns", "exposed_time_ms")
        return sum(float(row["exposed_time_ms"]) for row in rows)

    both = exposed("--step", "104-105")
    assert both == pytest.approx((exposed("--step", "104") + exposed("--step", "105")) / 2)
    assert exposed("--step", "100-119") == pytest.approx(exposed())


def test_the_account_of_steps_is_that_of_all_of_them(call: Call) -> None:
    every = {row["name"]: row for row in _rows(call, "ledger", "--by", "step", "--filter", "time_ms>0")}
    assert _rows(call, "ledger", "--step", "112-113") == [every["112"], every["113"]]
    sentence, _ = call.error(EXIT_USAGE, "report", "ledger", "demo", "--step", "104", "--by", "core")
    assert sentence == "--step shows the account of each step: --by core does not work with it."


def test_cores_in_a_step_are_as_the_list_of_steps_has_them(call: Call) -> None:
    whole = call.json("report", "hosts", "demo", "--format", "json")
    of_step = next(step for step in whole["steps"] if step["name"] == "104")
    cores = call.json("report", "cores", "demo", "--step", "104", "--format", "json")
    for row, core in zip(cores["cores"], of_step["cores"], strict=True):
        assert row["breakdown_ms"] == pytest.approx({key: core[key] for key in row["breakdown_ms"]})
    assert any(warning.startswith("only step 104 is shown") for warning in cores["warnings"])


def test_the_timeline_of_a_step_is_its_interval(call: Call) -> None:
    interval = call.json("report", "timeline", "demo", "--step", "104", "--format", "json", "--limit", "1")["interval"]
    steps = call.json("report", "timeline", "demo", "--track", "Steps", "--format", "json")["events"]
    mine = [event for event in steps if event["name"] == "104"]
    assert interval["from_ps"] == min(event["start_ps"] for event in mine)
    assert interval["to_ps"] == max(event["start_ps"] + event["duration_ps"] for event in mine)


@pytest.mark.parametrize("page", STEP_PAGES, ids=lambda page: page.name)
def test_every_format_of_a_page_takes_a_step(page: Any, call: Call) -> None:
    for form in ("text", "json", "csv", "md"):
        call("report", page.name, "demo", "--step", "104", "--format", form, "--limit", "2")
    sentence, hint = call.error(EXIT_NOT_FOUND, "report", page.name, "demo", "--step", "102-130")
    assert sentence == "The profile has no step 130: its steps are 100 to 119." and hint == "try: --step 119 or 118"


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.name)
def test_a_page_without_steps_says_why(page: Any, call: Call) -> None:
    sentence, hint = call.error(EXIT_USAGE, "report", page.name, "demo", "--step", "104")
    assert sentence.startswith(f"The page {page.name} can't be shown for one step. ")
    assert hint.startswith("try: tpuprof-tui report ")


def test_a_call_takes_one_part(call: Call) -> None:
    call.error(EXIT_USAGE, "report", "ops", "demo", "--step", "104", "--from", "100")
    call.error(EXIT_USAGE, "report", "ops", "demo", "--from", "300", "--to", "100")
    with pytest.raises(tpuprof.ProfileError, match="each choose a part"):
        tpuprof.open("demo").table("ops", step="104", to_ps=1)


def _unmarked(path: Path) -> Path:
    """A core that runs a module four times, and no marker of a step."""
    space = XSpace()
    ops = [("fusion.1", "loop fusion", run * MS, MS // 2) for run in range(4)]
    tpu_plane(space, 0, ops, modules=[("jit_step(7)", run * MS, run * MS + MS // 2) for run in range(4)])
    return write_run(path, host0=space, host1=space)


def test_a_step_that_nothing_marks_has_ops_and_no_input(tmp_path: Path, call: Call) -> None:
    path = _unmarked(tmp_path)
    words = ("--host", "host0", "--step", "1", "--format", "json")
    (op,) = call.json("report", "ops", path, *words)["ops"]
    assert (op["occurrences"], op["self_time_ps"]) == (1, MS // 2)
    sentence, hint = call.error(EXIT_NOT_FOUND, "report", "input", path, *words)
    assert "no marker says where steps begin" in sentence and hint == "try: report ledger --step 1"


def test_an_interval_is_on_the_clock_of_one_host(tmp_path: Path, call: Call) -> None:
    sentence, hint = call.error(EXIT_USAGE, "report", "ops", _unmarked(tmp_path), "--from", "1")
    assert sentence == "Run run has 2 hosts, each with a clock of its own."
    assert hint == "try: --host with one of: host0, host1"
