"""What the sources of the program import, read with `ast`: nothing of the program is loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMESPACE = "tpuprof."
"""The package that the folders are installed in; module names here come without it."""


@dataclass(frozen=True)
class Import:
    """One name that a module imports.

    Attributes:
        name: what stands in the source: `package.module` or `package.module.Name`; leading dots where it is relative.
        at_start: whether it runs as soon as the module is imported: it stands neither in a function nor under
            `if TYPE_CHECKING`.
        in_function: whether it stands in a function.
    """

    name: str
    at_start: bool
    in_function: bool = False


def imports_of(body: list[ast.stmt], at_start: bool = True, in_function: bool = False) -> Iterator[Import]:
    """Every import of some statements, those in functions and under `if TYPE_CHECKING` included."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (Import(alias.name, at_start, in_function) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            module = "." * statement.level + (f"{statement.module}." if statement.module else "")
            yield from (Import(module + alias.name, at_start, in_function) for alias in statement.names)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from imports_of(statement.body, at_start=False, in_function=True)
        elif isinstance(statement, ast.If):
            condition = statement.test  # `TYPE_CHECKING` or `typing.TYPE_CHECKING`
            is_run = "TYPE_CHECKING" not in (getattr(condition, "id", ""), getattr(condition, "attr", ""))
            yield from imports_of(statement.body, at_start and is_run, in_function)
            yield from imports_of(statement.orelse, at_start, in_function)
        else:
            for name in ("body", "orelse", "finalbody"):
                yield from imports_of(getattr(statement, name, []), at_start, in_function)
            for branch in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                yield from imports_of(branch.body, at_start, in_function)


@dataclass(frozen=True)
class Source:
    """A module of the program.

    Attributes:
        path: from the repository's root, with slashes.
        text: all of it.
    """

    path: str
    text: str

    @property
    def module(self) -> str:
        """Dotted name, without the namespace: `tui.app.app`, and `tui.app` for that folder's `__init__.py`."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def tree(self) -> ast.Module:
        """The text, parsed anew: holding the trees of all modules keeps the garbage collector busy for seconds."""
        return ast.parse(self.text, self.path)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Every import, in the order of the text."""
        return tuple(imports_of(self.tree().body))

    def imported(self, at_start: bool = False) -> set[str]:
        """Modules of the program that it imports; and of other packages, the names as they are written.

        Args:
            at_start: only what runs as soon as this module is imported.
        """
        names = [each.name.removeprefix(NAMESPACE) for each in self.imports if each.at_start or not at_start]
        modules = program()
        parents = {name: name.rpartition(".")[0] for name in names if name not in modules}
        return {parents[name] if parents.get(name) in modules else name for name in names} - {self.module}


@cache
def program() -> Mapping[str, Source]:
    """The modules of `parsers` and `tui`, by their dotted names."""
    paths = (path for top in ("parsers", "tui") for path in sorted((ROOT / top).rglob("*.py")))
    sources = (Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in paths)
    return {source.module: source for source in sources}


@cache
def imports_in_program() -> Mapping[str, Set[str]]:
    """The modules of the program that each of them imports, wherever in its text."""
    return {module: source.imported() & program().keys() for module, source in program().items()}


def entry(source: Source, folder: str) -> str:
    """The file or subfolder of a folder that a module is, or lies in; empty where it lies elsewhere."""
    inside = source.path.removeprefix(f"{folder}/")
    return "" if inside == source.path else inside.partition("/")[0].removesuffix(".py")


def ways_from(start: str, edges: Mapping[str, Set[str]]) -> dict[str, tuple[str, ...]]:
    """A shortest way to every node that is reached, itself included."""
    ways: dict[str, tuple[str, ...]] = {start: (start,)}
    left = [start]
    for node in left:  # which grows: what is near comes first
        for following in sorted(edges.get(node, set()) - ways.keys()):
            ways[following] = (*ways[node], following)
            left.append(following)
    return ways


@cache
def imports_at_start() -> Mapping[str, Set[str]]:
    """What importing each module of the program loads at once; the `__init__.py` of every folder above it counts."""
    edges = {}
    for module, source in program().items():
        folders = {module[:dot] for dot, letter in enumerate(module) if letter == "."}
        edges[module] = source.imported(at_start=True) | (folders & program().keys())
    return edges


def loaded_by(name: str) -> Set[str]:
    """What importing a module, or a name of one, loads at once: modules of the program, and names of other packages."""
    name = name.removeprefix(NAMESPACE)
    modules = program()
    loaded = name if name in modules or name.rpartition(".")[0] not in modules else name.rpartition(".")[0]
    return ways_from(loaded, imports_at_start()).keys()


def way_at_start(module: str, package: str) -> tuple[str, ...]:
    """The imports over which importing a module loads a package of others; empty where it doesn't."""
    ways = ways_from(module, imports_at_start())
    return next((way for name, way in ways.items() if name.partition(".")[0] == package), ())
