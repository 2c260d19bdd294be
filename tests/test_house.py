"""The rules of the house: where code lives, and what knows what.

Which folder may import which is in pyproject.toml, as contracts that `lint-imports` checks. Sources are read and not
imported. No rule has an exception.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path, PurePosixPath

import pytest

from tests import size as size_of
from tests.support.imports import (
    NAMESPACE,
    ROOT,
    Source,
    entry,
    imports_in_program,
    imports_of,
    loaded_by,
    program,
    way_at_start,
    ways_from,
)

MOST_ENTRIES = 12
MOST_LINES = 520

MOST_IMPORTS_IN_FUNCTIONS = 90
"""Names, in `parsers` and `tui`; only ever lowered: what is imported when its work is done imports at its top."""

MAY_BE_MISSING = ("resource",)
"""Optional packages, and modules of some systems."""

SLOW = (
    *("numpy", "google.protobuf", "textual", "grpc", "concurrent.futures", "importlib.metadata", "subprocess"),
    "dataclasses",
    *("tempfile", "hashlib", "urllib.parse", "shutil", "logging", "traceback", "json", "difflib", "gzip"),
)
"""Packages that take a millisecond or more to load; numpy, protobuf and Textual take from 40 to 150."""

FOR_FEW = {
    "tui/app/current_run.py": ("tpuprof.parsers.pages.shared.split_runs",),
    "parsers/hosts/op_summary.py": (
        *(
            "tpuprof.parsers.ops.streams",
            "tpuprof.parsers.ops.host_events.events",
            "tpuprof.parsers.formats.hlo.programs",
            "tpuprof.parsers.steps.times",
        ),
    ),
    "parsers/hosts/step_summary.py": ("tpuprof.parsers.ops.streams", "tpuprof.parsers.steps.generic"),
    "tui/__main__.py": ("tpuprof.tui.cli.main",),
    "tui/app/watch.py": ("tpuprof.parsers.files.watch",),
    "tui/pages/timeline/report/report.py": ("tpuprof.tui.pages.timeline.report.perfetto",),
}
"""Modules of ours, and what they import where few runs need it: profiles of GPUs and
CPUs, a trace for Perfetto; what waits for the first frame, and for ctrl+C to end the program while it starts."""

DATA = (
    *("golden", "hashes", "tests/demo/modules", "tests/parsers/pages/overview/model_use/compiled"),
    *("tests/bench/oom_proof/data", "tests/bench/oom_proof/data/fits", "tui/cli/man"),
)
"""Folders of data and texts, which may hold any number of files."""

SCREEN_FOLDERS = ("tui/app/", "tui/widgets/")
SCREEN_FILES = re.compile(r"tui/pages/(?:commands/)?\w+/(?:(?:\w+_)?view\w*|screen|app|popup)\.py")
"""A page's files that may know Textual."""

ROOMS = {"tui/api/package": "tpuprof"}
"""Folders that are installed under another name than their own."""

PAGE_MODULE = re.compile(r"\btui\.pages\.\w[\w.]*")
NOT_IMPORTED = re.compile(r"^(?! *(?:from|import) ).*\btui\.pages\.", re.MULTILINE)
"""A line that names a module of a page and imports nothing."""


def hold(rule: str, breaches: Set[tuple[str, str]], advice: str) -> None:
    """Fails where a rule is broken.

    Args:
        breaches: pairs of a path and of what is wrong there.
        advice: what to do about it.
    """
    lines = [f"{path} ({rule}): {what}. {advice}" for path, what in sorted(breaches)]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def hold_below(most: int, sizes: Mapping[str, int], unit: str, advice: str) -> None:
    """Fails where something is too large."""
    hold(unit, {(path, f"{size} {unit}, {most} are the most") for path, size in sizes.items() if size > most}, advice)


def folders(*tops: str) -> Iterator[Path]:
    """Folders with sources or data, from the repository's root; not what tools leave behind."""
    for top in tops:
        for folder in (ROOT / top, *sorted((ROOT / top).rglob("*/"))):
            path = folder.relative_to(ROOT)
            if folder.is_dir() and not any(part == "__pycache__" or part.startswith(".") for part in path.parts):
                yield path


def entries(folder: Path) -> list[str]:
    """The names in a folder that count: no `__init__.py`, `py.typed`, and nothing that is built."""
    names = sorted(path.name for path in (ROOT / folder).iterdir() if not path.is_dir() or _is_there(path))
    uncounted = ("__init__.py", "py.typed", "__pycache__")
    return [
        name
        for name in names
        if name not in uncounted and not name.startswith(".") and not name.endswith((".so", ".pyd"))
    ]


def _is_there(folder: Path) -> bool:
    """Whether a folder holds more than what is built: one that was moved away may still have that."""
    return any(path.is_file() and path.parent.name != "__pycache__" for path in folder.rglob("*"))


def python_files(*tops: str) -> Iterator[Path]:
    """Python files that people write."""
    for folder in folders(*tops):
        yield from (folder / name for name in entries(folder) if name.endswith(".py") and not name.endswith("_pb2.py"))


def test_the_reader_sees_every_import() -> None:
    """Imports in functions, classes, branches and for the type checker, whichever way they are written."""
    text = """
import a, b.c as d
from e import f
from .g import h
if TYPE_CHECKING:
    import i
else:
    import j
try:
    import k
except ImportError:
    import l
class M:
    import m
    def n(self):
        with o:
            from p.q import r
"""
    seen = {each.name: each.at_start for each in imports_of(ast.parse(text).body)}
    at_start = dict.fromkeys(["a", "b.c", "e.f", ".g.h", "j", "k", "l", "m"], True)
    assert seen == {**at_start, "i": False, "p.q.r": False}
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "b", "d"}, "d": set()}
    assert ways_from("b", edges) == {"b": ("b",), "c": ("b", "c"), "a": ("b", "c", "a"), "d": ("b", "c", "d")}


def test_no_package_imports_itself_over_what_lies_in_it() -> None:
    """The contract of circles is about neighbours: a package and what lies in it are none."""
    breaches = set()
    for module, imported in imports_in_program().items():
        for used in imported:
            if used.startswith(f"{module}."):
                way = ways_from(used, imports_in_program()).get(module)
                breaches |= {(program()[module].path, " > ".join((module, *way)))} if way else set()
    hold("circles of a package", breaches, "Import nothing in an __init__.py that imports the package.")


def test_imports_in_functions_have_a_reason() -> None:
    """What they load may be missing, or takes long and is not loaded anyway, or few runs need it."""
    breaches, count, used = set(), 0, set()
    for source in program().values():
        loaded_anyway = loaded_by(source.module)
        for name in (each.name for each in source.imports if each.in_function):
            count += 1
            if named_by(name, MAY_BE_MISSING) or named_by(name, FOR_FEW.get(source.path, ())):
                used.add(source.path)
                continue
            slow = [package for package in SLOW if not any(named_by(other, (package,)) for other in loaded_anyway)]
            if not any(named_by(other, slow) for other in loaded_by(name)):
                breaches.add((source.path, f"{name} is imported in a function"))
    breaches |= {(path, "it has no such import, and stands in FOR_FEW") for path in FOR_FEW.keys() - used}
    hold("imports in functions", breaches, "Import it at the top, or move what needs it into a module of its own.")
    hold_below(
        MOST_IMPORTS_IN_FUNCTIONS, {"parsers and tui": count}, "names imported in functions", "Import at the top."
    )


def named_by(name: str, packages: Iterable[str]) -> bool:
    """Whether a name is one of some packages or modules, or lies in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def page_folders(folder: str) -> set[str]:
    """Names of the folders in a folder of pages."""
    paths = (source.path.removeprefix(f"{folder}/") for source in program().values() if entry(source, folder))
    return {path.partition("/")[0] for path in paths if "/" in path}


def test_only_the_registry_names_page_modules() -> None:
    """A page is one line in one registry: nobody else imports its modules, or names them in a string."""
    breaches, pages = set(), page_folders("tui/pages")
    for source in program().values():
        page = entry(source, "tui/pages")
        if page and page not in pages:
            continue  # the registry
        named = {name for name in source.imported() if name.startswith("tui.pages.")} | page_modules_in_strings(source)
        for name in named:
            folder = name.split(".")[2]
            if folder in pages and folder != page:
                breaches.add((source.path, name))
    hold("page modules", breaches, "Ask the registry, tui/pages/__init__.py, for the page's part.")


def page_modules_in_strings(source: Source) -> set[str]:
    """Modules of pages that strings of a module name, its docstrings aside."""
    if NOT_IMPORTED.search(source.text) is None:  # for the sake of time
        return set()
    nodes = list(ast.walk(source.tree()))
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    strings = [node.value for node in nodes if isinstance(node, ast.Constant) and node not in docstrings]
    return {match[0] for text in strings if isinstance(text, str) for match in PAGE_MODULE.finditer(text)}


def test_only_screens_know_textual() -> None:
    """Reports and drawing import Textual neither for its types nor over what they import."""
    breaches = set()
    for source in program().values():
        if source.path.startswith(SCREEN_FOLDERS) or SCREEN_FILES.fullmatch(source.path):
            continue
        breaches |= {(source.path, name) for name in source.imported() if name.partition(".")[0] == "textual"}
        if way := way_at_start(source.module, "textual"):
            breaches.add((source.path, way[1]))
    advice = (
        "Only tui/app, tui/widgets and the files view, screen, app and popup of a page may: move the screen's part."
    )
    hold("Textual", breaches, advice)


def test_no_folder_is_crowded() -> None:
    """A folder is taken in at a glance."""
    sizes = {}
    for folder in folders("parsers", "tui", "tests"):
        path = folder.as_posix()
        if folder.name not in DATA and path not in DATA:
            sizes[path] = len(entries(folder))
    hold_below(MOST_ENTRIES, sizes, "entries", "Put what belongs together into a subfolder, or into one file.")


def test_no_file_is_long() -> None:
    """A file is one thought."""
    files = python_files("parsers", "tui", "tests")
    sizes = {path.as_posix(): (ROOT / path).read_text("utf-8").count("\n") for path in files}
    hold_below(MOST_LINES, sizes, "lines", "Take out the part that is a thought of its own.")


def test_no_names_are_twins() -> None:
    """Names in a folder that differ by -s, -er or -ing alone are easily confused."""
    breaches = set()
    for folder in folders("parsers", "tui", "tests"):
        twins = defaultdict(set)
        for name in {PurePosixPath(name).stem for name in entries(folder) if not name.endswith((".proto", ".pyi"))}:
            root = re.sub(r"(?:ings?|ers?|es?|s)$", "", name)
            twins[re.sub(r"(.)\1$", r"\1", root)].add(name)
        if folder.name not in DATA:
            breaches |= {(folder.as_posix(), ", ".join(sorted(names))) for names in twins.values() if len(names) > 1}
    hold("twins", breaches, "Name each for what it holds, or merge them.")


def test_what_draws_takes_a_pen() -> None:
    """A width and a set of characters travel as one Pen, which makes texts fit for cells, too."""
    breaches = set()
    for source in program().values():
        for node in ast.walk(source.tree()) if entry(source, "tui") else ():
            if isinstance(node, ast.arguments) and {"width", "glyphs"} <= {each.arg for each in node.args}:
                breaches.add((source.path, f"line {node.args[0].lineno}"))
    hold("width and glyphs", breaches, "Take a Pen.")


def test_no_report_chooses_its_writer() -> None:
    """A format is one writer that reads every page's fields, so no function compares a format with "json"."""
    breaches = set()
    for source in program().values():
        if entry(source, "tui") and '"json"' in source.text:
            for function in ast.walk(source.tree()):
                if isinstance(function, ast.FunctionDef) and any(map(compares_with_json, ast.walk(function))):
                    breaches.add((source.path, function.name))
    hold("choice of a writer", breaches, "Give the page fields, and let tui/report write them in every format.")


def compares_with_json(node: ast.AST) -> bool:
    """Whether a piece of syntax is `… == "json"` or `case "json"`."""
    operands = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    operands += [node.value] if isinstance(node, ast.MatchValue) else []
    return any(isinstance(operand, ast.Constant) and operand.value == "json" for operand in operands)


def test_pyproject_lists_every_package() -> None:
    """Setuptools installs the folders that are listed, and no others."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    listed = re.search(r"^\[tool\.setuptools\]\npackages = (\[.*?^\])", text, re.MULTILINE | re.DOTALL)
    assert listed is not None, "pyproject.toml: [tool.setuptools] lists no packages"
    folders_of_modules = {PurePosixPath(source.path).parent for source in program().values()}
    expected = {ROOMS.get(str(folder), NAMESPACE + ".".join(folder.parts)) for folder in folders_of_modules}
    missing = expected ^ set(ast.literal_eval(listed[1]))
    assert not missing, f"pyproject.toml: put these into [tool.setuptools] packages, or take them out: {missing}"
    bare = [folder.as_posix() for folder in folders_of_modules if not (ROOT / folder / "__init__.py").exists()]
    assert not bare, f"give these folders an __init__.py: {bare}"


def test_the_house_does_not_grow() -> None:
    lines = {part: size.lines for part, size in size_of.totals(size_of.rooms()).items()}
    assert {part for part, most in size_of.MOST_LINES.items() if lines[part] > most} == set(), lines
