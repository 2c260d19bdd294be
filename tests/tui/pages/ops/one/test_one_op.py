"""The report of one op: it says what the table of ops, the card and the graph say, and has the spread of its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.app.stage import demo_session
from tests.support.build import PlaneBuilder, session_at, tpu_plane, write_run
from tests.support.reports import asked_of
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.ops.one_op import one_op
from tpuprof.parsers.session.session import Session
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import PLAIN
from tpuprof.tui.pages.ops.details.card import op_card
from tpuprof.tui.pages.ops.fields.one_op import OpReport
from tpuprof.tui.pages.ops.report.one_op import REPORT
from tpuprof.tui.report.page import TextLook

LOOK = TextLook(110, False, False)
US = 1_000_000


def host(lengths: dict[int, list[int]], name: str = "fusion.1") -> bytes:
    """Cores that run an op once a step for so many microseconds, beside a longer one."""
    space = XSpace()
    for core, runs in lengths.items():
        ops, marks = [], []
        for step, length in enumerate(runs):
            begin = step * 100 * US
            ops += [("copy.2", "copy", begin, 50 * US), (name, "loop fusion", begin + 60 * US, length * US)]
            marks.append((str(step), begin, begin + 99 * US))
        framework = {name: "jit(f)/layer_1/mlp/dot_general:", "copy.2": "jit(f)/layer_1/mlp/copy:"}
        tpu_plane(space, core, ops, steps=marks, modules=[("jit_f(7)", 0, 99 * US)], framework_ops=framework)
    return space.SerializeToString()


@pytest.fixture(name="demo_session", scope="module")
def read_demo_session() -> Session:
    return demo_session()


def session_of(folder: Path, **hosts: bytes) -> Session:
    return session_at(write_run(folder, **hosts))


def read(session: Session, op: str | None = None, module: str | None = None, limit: int | None = None) -> OpReport:
    asked = asked_of(session.run, "json", session=lambda _: session, op=op, module=module)
    return REPORT.read(asked if limit is None else asked.__class__(**{**vars(asked), "limit": limit}))


def test_the_spread_of_its_runs_by_core_and_by_step(tmp_path: Path) -> None:
    session = session_of(tmp_path, a=host({0: [1, 2, 3, 4, 5, 6, 7, 8, 9, 30], 1: [10] * 10}))
    page = one_op(session, None, "fusion.1")
    of_all = page.all_runs
    assert (of_all.runs, of_all.total_ps) == (20, 175 * US)
    assert (of_all.minimum_ps, of_all.median_ps, of_all.p90_ps, of_all.maximum_ps) == (US, 10 * US, 10 * US, 30 * US)
    first, second = page.cores
    assert (first.name, first.median_ps, first.p90_ps, first.maximum_ps) == ("a:0", 5.5 * US, 9 * US, 30 * US)
    assert (second.name, second.minimum_ps, second.maximum_ps) == ("a:1", 10 * US, 10 * US)
    assert [(step.name, step.runs, step.total_ps) for step in page.steps[:2]] == [("0", 2, 11 * US), ("1", 2, 12 * US)]
    assert page.step_ps == 175 * US / 20
    assert (page.program.name, page.scope.name) == ("jit_f(7)", "jit(f)/layer_1/mlp")
    assert page.program.fraction == page.scope.fraction == 175 / (175 + 20 * 50)


def test_what_it_says_of_the_longest_op_is_what_its_card_says(demo_session: Session) -> None:
    report = read(demo_session)
    assert report.asked == report.page.found.page.table.name[0]
    card = op_card(report.page.found.page, report.details, Pen(110, PLAIN))
    lines = ["".join(text for text, _ in line).rstrip() for line in card]
    text = REPORT.writers["text"](report, asked_of(demo_session.run, "text", look=LOOK))
    assert isinstance(text, str)
    told = [line for line in lines[: next(at for at, line in enumerate(lines) if line.startswith("called"))]]
    shown = [line.rstrip() for line in text.splitlines()]
    assert told and all(line in shown for line in told)


def test_one_answer_is_small_and_whole_on_demand(call: Call) -> None:
    brief = call("report", "op", "demo", "--op", "fusion.397", "--format", "json", "--limit", "2").out
    assert len(brief.encode()) < 5_000
    whole = call.json("report", "op", "demo", "--op", "fusion.397", "--format", "json", "--limit", "0")
    assert (len(whole["by_core"]), len(whole["by_step"])) == (whole["core_count"], whole["step_count"]) == (4, 20)
    assert sum(row["runs"] for row in whole["by_core"]) == whole["runs"]["count"]
    assert sum(row["total_time_ps"] for row in whole["by_core"]) == whole["runs"]["total_ps"]
    assert not whole["expression"].endswith("…") and len(whole["operands"]) == whole["operand_count"]
    choice = ("--sort", "maximum_ps", "--columns", "core", "--format", "csv")
    chosen = call("report", "op", "demo", "--op", "fusion.397", *choice)
    assert chosen.out.splitlines()[:2] == ["core", "demo:2"]


def test_a_framework_op_is_all_of_its_hlo_ops(demo_session: Session) -> None:
    name = "jit(train_step)/transpose(jvp(layers))/while/body/closed_call/mlp/dot_general"
    page = one_op(demo_session, None, name)
    table, rows = page.found.page.table, list(page.found.rows)
    assert page.found.is_framework_op and len(rows) > 1
    assert (page.all_runs.runs, page.all_runs.total_ps) == (table.occurrences[rows].sum(), table.total_ps[rows].sum())


def test_one_core_alone(demo_session: Session) -> None:
    whole, one = one_op(demo_session, None, "fusion.397"), one_op(demo_session.of_core("demo:2"), None, "fusion.397")
    assert one.cores == tuple(core for core in whole.cores if core.name == "demo:2")


@pytest.mark.parametrize(
    ("op", "module", "code", "words", "hint"),
    [
        ("fusion.39", None, "unknown_op", "No op fusion.39 ran.", "fusion.397"),
        ("fushion.397", None, "unknown_op", "No op fushion.397 ran.", "fusion.397"),
        ("", None, "unknown_op", "No op  ran.", "report ops lists"),
        ("fusion.397", "jit_other", "unknown_module", "No op ran in a module jit_other.", "jit_train_step"),
        ("\x1b[2J" * 400, None, "unknown_op", "No op ", "report ops lists"),
    ],
)
def test_an_op_that_did_not_run(
    demo_session: Session, op: str, module: str | None, code: str, words: str, hint: str
) -> None:
    with pytest.raises(ProfileError) as raised:
        one_op(demo_session, None, op, module)
    error = raised.value
    assert (error.code, error.exit_code) == (code, EXIT_NOT_FOUND)
    assert words in error.sentence and hint in error.hint and "\x1b" not in error.sentence


def test_a_profile_without_ops_says_why(tmp_path: Path) -> None:
    space = XSpace()
    line = (plane := PlaneBuilder(space, "/host:CPU", 1)).line("main")
    plane.event(line, plane.event_id("wait"), 0, 9)
    with pytest.raises(ProfileError, match="No op ran: no device plane") as raised:
        one_op(session_of(tmp_path, a=space.SerializeToString()), None, None)
    assert raised.value.exit_code == EXIT_NOT_FOUND


def test_the_module_that_is_asked_for(demo_session: Session) -> None:
    page = one_op(demo_session, None, None, "jit_eval_step")
    assert (page.program.name or "").startswith("jit_eval_step(")
    several = next(name for name in page.found.page.table.name if page.found.page.table.name.count(name) > 1)
    found = one_op(demo_session, None, several).found
    assert found.elsewhere and found.page.program[found.main] not in found.elsewhere
