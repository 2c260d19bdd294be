"""A page is two folders and its lines in the registry: without them the program lacks the page, and nothing else."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.imports import ROOT, program
from tests.tui.cli.calls import Done, modules_of
from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE
from tpuprof.tui.pages import PAGE_NAMES

DELETED = ("collectives", "counters", "sparse-core")
REPORTS: Mapping[str, Sequence[str]] = {
    "overview": ("report", "overview", "demo"),
    "findings": ("report", "findings", "demo", "--format", "json"),
    "ops": ("report", "ops", "demo", "--format", "csv"),
    "hosts": ("report", "hosts", "demo", "--format", "md"),
}
"""Pages that stay as they are."""

REGISTRY = Path("tui", "pages", "__init__.py")


def folder_of(page: str) -> str:
    return page.replace("-", "_")


def without_lines_of(registry: str, page: str) -> str:
    """The registry without what it says of a page and of its view."""
    lines = registry.splitlines(keepends=True)
    for node in ast.walk(ast.parse(registry)):
        match node:
            case ast.Call(func=ast.Name("Page" | "TabView"), args=[ast.Constant(name), *_]) if name == page:
                lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
    return "".join(lines)


def calls(commands: Mapping[str, Sequence[str]], package: Path, folder: Path) -> dict[str, Done]:
    """Runs commands of the program that lies in a folder."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(package))
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        return modules_of({}, commands, folder)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program, importable as `tpuprof`."""
    package = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "tui" / "api" / "package", package / "tpuprof")
    for top in ("parsers", "tui"):
        shutil.copytree(ROOT / top, package / "tpuprof" / top, ignore=shutil.ignore_patterns("__pycache__", "*.c"))
    return package


@pytest.fixture(scope="module")
def whole(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    return {name: done.out for name, done in calls(REPORTS, copy, tmp_path_factory.mktemp("whole") / "work").items()}


@pytest.mark.parametrize("page", DELETED)
def test_a_page_is_deleted_with_its_folders_and_lines(
    page: str, copy: Path, whole: Mapping[str, bytes], tmp_path: Path
) -> None:
    program_folder = copy / "tpuprof"
    registry = (program_folder / REGISTRY).read_text("utf-8")
    folders = [program_folder / top / "pages" / folder_of(page) for top in ("parsers", "tui")]
    try:
        for folder in folders:
            folder.rename(copy / f"{folder.parts[-3]} {folder.name}")
        (program_folder / REGISTRY).write_text(without_lines_of(registry, page), "utf-8")
        commands = {**REPORTS, "deleted": ("report", page, "demo"), "help": ("report", "--help")}
        done = calls(commands, copy, tmp_path / "work")
    finally:
        for folder in folders:
            (copy / f"{folder.parts[-3]} {folder.name}").rename(folder)
        (program_folder / REGISTRY).write_text(registry, "utf-8")
    for name, before in whole.items():
        assert (done[name].code, done[name].out) == (EXIT_OK, before)
    assert done["deleted"].code == EXIT_USAGE
    assert page in PAGE_NAMES and page.encode() not in done["help"].out


@pytest.mark.parametrize("page", DELETED)
def test_nothing_else_imports_a_page(page: str) -> None:
    """Whatever is imported where it is imported, but for types."""
    folders = tuple(f"{top}.pages.{folder_of(page)}" for top in ("parsers", "tui"))
    wrong = [
        source.path
        for source in program().values()
        for used in source.imported(at_start=True)
        if used.startswith(folders) and not source.module.startswith(folders)
    ]
    assert not wrong
