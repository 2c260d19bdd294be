"""The report on the memory of a compiled module; a format's module is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpuprof.parsers.memory.model import MemoryPage, SpaceMemory
from tpuprof.parsers.session.hlo import HloSession, unreadable_modules
from tpuprof.tui.pages.memory.report.rows import asked_space, page_warnings
from tpuprof.tui.report.page import Asked, Report


@dataclass(frozen=True, slots=True)
class ModuleMemory:
    """The page, and the memory space that is asked for.

    Attributes:
        space: None where no module has figures, and `problem` or the page says why.
        problem: why the module that was asked for has no figures.
    """

    page: MemoryPage
    space: SpaceMemory | None
    problem: str | None

    @property
    def warnings(self) -> Sequence[str]:
        """What to warn of."""
        return (*page_warnings(self.page, self.space), *((self.problem,) if self.problem else ()))


def read(asked: Asked) -> ModuleMemory:
    """Reads the modules of a profile, or of HLO files."""
    options = asked.options
    if asked.only_hlo:
        compiled = HloSession(asked.run, options.get("device")).memory()
    else:
        compiled = asked.session(asked.run).memory(asked.host)
    page = compiled.page()
    if asked.only_hlo and page.first is None:
        raise unreadable_modules(page)
    return ModuleMemory(page, *asked_space(page, compiled, options.get("module"), options.get("space")))


def json(memory: ModuleMemory, asked: Asked) -> str:
    """The memory page as JSON."""
    from tpuprof.tui.pages.memory.report.json import memory_json  # noqa: PLC0415

    return memory_json(memory.page, memory.space, memory.problem, asked.run, asked.most_rows)


def csv(memory: ModuleMemory, asked: Asked) -> str:
    """The buffers as CSV."""
    from tpuprof.tui.pages.memory.report.csv import memory_csv  # noqa: PLC0415

    return memory_csv(memory.space, asked.most_rows)


def markdown(memory: ModuleMemory, asked: Asked) -> str:
    """The memory page as Markdown."""
    from tpuprof.tui.pages.memory.report.markdown import memory_markdown  # noqa: PLC0415

    return memory_markdown(memory.page, memory.space, memory.problem, asked.run, asked.most_rows)


def text(memory: ModuleMemory, asked: Asked) -> str:
    """The memory page as plain text."""
    from tpuprof.tui.pages.memory.report.text import memory_text  # noqa: PLC0415

    look = asked.look
    return memory_text(
        memory.page, memory.space, memory.problem, asked.run, look.width, look.glyphs, asked.most_rows, look.color
    )


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    warnings=lambda memory: memory.warnings,
)
