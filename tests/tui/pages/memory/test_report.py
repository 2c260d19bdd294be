"""Reports of the memory page: golden texts of the demo, the contract's keys, modules and spaces, nothing to show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.made.compiled import compiled_modules
from tests.support.reports import printed
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.parsers.memory.model import SPACE_NAMES
from tpuprof.parsers.pages.memory.compiled import CompiledModules
from tpuprof.tui.cli.arguments.options import SPACES
from tpuprof.tui.pages.memory.report.module import REPORT, ModuleReport
from tpuprof.tui.report.page import Format, TextLook

RUN = Run("run", "/logs/run", (HostFile("host0", "/logs/run/host0.xplane.pb", 1, 0.0, False),), ())


def report(
    form: Format,
    module: str | None = None,
    space: str | None = None,
    limit: int = 0,
    width: int = 110,
    ascii_only: bool = False,
    compiled: CompiledModules | None = None,
    only_fit: bool = False,
) -> str:
    compiled = compiled or compiled_modules()
    page = compiled.page()
    made = compiled.asked(module, space)
    shown, problem = (None, made) if isinstance(made, str) else (made, None)
    summary = None if shown is None else compiled.summary(shown)
    content = ModuleReport(page, shown, problem, summary, only_fit)
    return printed(REPORT, content, RUN, form, TextLook(width, ascii_only, color=False), limit)


def parsed(**asked: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(report("json", **asked))
    return document


def test_how_large_the_batch_may_be() -> None:
    text = report("text", only_fit=True)
    assert "batch is 8; up to 12 fits (14.3 GiB); 14 is over by 541 MiB" in text
    assert "the largest that fits" in text and "Buffers at the peak" not in text
    assert "The batch is the leading dimension of batch['tokens'] s32[8,1024]" in text
    assert "unknown: the compiler chooses what it keeps outside HBM" in report("text", space="vmem", only_fit=True)


def test_a_module_and_a_space_are_chosen() -> None:
    document = parsed(module="jit_eval_step", space="vmem")
    assert document["module"] == "jit_eval_step(2)"
    assert document["memory_space"] == "VMEM"
    assert document["capacity_bytes"] == 128 << 20
    with pytest.raises(ProfileError, match="no module jit_step") as raised:
        report("json", module="jit_step")
    assert raised.value.exit_code == EXIT_NOT_FOUND
    assert {name.lower() for name in SPACE_NAMES.values()} == set(SPACES)
