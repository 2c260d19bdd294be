"""What a report imports: its own page, and nothing of others. Start-up is half of a short report's time."""

from __future__ import annotations

import pytest

from tests.tui.cli.calls import Done, modules_of
from tpuprof.parsers.base.errors import EXIT_OK

MOST = {
    **{"runs": 43, "ops": 86, "op-profile": 95, "framework-ops": 111, "roofline": 112, "overview": 121},
    **{"input": 125, "hosts": 106, "inference": 122, "timeline": 125, "memory": 99, "memory-profile": 100},
}
"""How many modules of ours each report may import, of the demo as JSON; a few more than it does."""

ONLY_OPS = ("ops", "op-profile")

NOT_FOR_OPS = (
    "hosts.summary",
    "ops.host",
    "steps",
    "timeline",
    "memory",
    "pages.findings",
    "pages.overview",
    "capture",
)
"""Folders and modules of `tpuprof.parsers` that a report of ops has no use for."""


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
