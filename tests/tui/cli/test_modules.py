"""What a report and the first frame of the app import: what they show, and nothing of others. That is half a wait."""

from __future__ import annotations

import pytest

from tests.tui.cli.calls import Done, modules_of, run
from tpuprof.parsers.base.errors import EXIT_OK

MOST = {
    "runs": 67,
    "ops": 125,
    "op-profile": 135,
    "framework-ops": 130,
    "roofline": 184,
    "overview": 254,
    "findings": 257,
    "ledger": 254,
    "input": 258,
    "hosts": 180,
    "cores": 180,
    "inference": 256,
    "timeline": 144,
    "counters": 122,
    "memory": 179,
    "memory-profile": 178,
    "collectives": 204,
}
"""How many modules of ours each report may import, of the demo as JSON; two more than it does.

Two of them are parts of a host's summary, which smaller pages do with: its framework ops, and when its steps are.
"""

ONLY_OPS = ("ops", "op-profile")

NOT_FOR_OPS = (
    "hosts.summary",
    "ops.host_events",
    "steps",
    "timeline",
    "memory",
    "pages.findings",
    "pages.overview",
    "capture",
)
"""Folders and modules of `tpuprof.parsers` that a report of ops has no use for."""

MOST_OF_FIRST_FRAME = 60  # two of them are what sends cells that changed, six the grammar and what is pressed
"""How many modules of ours are imported when the app's first frame is painted."""

FIRST_FRAME = """
import asyncio, sys
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
async def run():
    app = TpuprofApp("demo", AppOptions())
    app.main._begin = lambda: app.exit(list(sys.modules))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
    print(*app.return_value)
asyncio.run(run())
"""
"""Prints them, and leaves before the app goes on."""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    commands = {page: ["report", page, "demo", "--format", "json"] for page in MOST}
    bare = {"ops": commands.pop("ops")}  # the others are given protobuf, which takes long to import
    return modules_of(bare, commands, tmp_path_factory.mktemp("modules"))


@pytest.mark.parametrize("page", MOST)
def test_a_report_imports_few_modules_of_ours(page: str, modules: dict[str, Done]) -> None:
    done = modules[page]
    ours = sorted(name for name in done.modules if name.startswith("tpuprof."))
    assert done.code == EXIT_OK
    assert len(ours) <= MOST[page], f"{len(ours)}: {ours}"


@pytest.mark.parametrize("page", ONLY_OPS)
def test_a_report_of_ops_imports_nothing_of_other_pages(page: str, modules: dict[str, Done]) -> None:
    wrong = [
        name for name in modules[page].modules for part in NOT_FOR_OPS if name.startswith(f"tpuprof.parsers.{part}")
    ]
    assert not wrong
    assert not modules[page].modules & {"numpy.ma", "textual", "rich", "grpc", "multiprocessing"}
    assert page != "ops" or "google.protobuf" not in modules[page].modules


@pytest.mark.parametrize("page", ["overview", "findings", "ledger", "hosts", "input"])
def test_a_report_does_without_masked_arrays(page: str, modules: dict[str, Done]) -> None:
    assert "numpy.ma" not in modules[page].modules  # they take 8 ms to import


def test_the_first_frame_needs_neither_numpy_nor_pages() -> None:
    done = run(program=FIRST_FRAME)
    modules = done.stdout.decode().split()
    ours = [name for name in modules if name.startswith("tpuprof.")]
    assert "tpuprof.tui.app.app" in ours and "textual.app" in modules, done.stderr
    assert len(ours) <= MOST_OF_FIRST_FRAME, f"{len(ours)}: {ours}"
    assert not {"numpy", "google.protobuf", "json"} & {*modules}
    assert not [name for name in ours if name.startswith(("tpuprof.tui.pages.", "tpuprof.parsers.formats"))]
