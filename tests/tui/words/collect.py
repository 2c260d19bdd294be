"""Every sentence that a user can meet, with its place: read with `ast` from the sources, and from Markdown.

Nothing of the program is loaded. `python -m tests.tui.words` prints the list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from tests.support.imports import ROOT, Source, program
from tests.tui.readme.commands import documents

Kind = Literal["text", "docstring", "readme"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Literals of the program (findings, fields, help, errors); docstrings of public names; README, manual, skill."""

_WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z]* \S*[A-Za-z]")
"""A text of two words or more."""

_PATTERN = re.compile(r"\(\?|\\[bdswZAn]|\[\^|\.\*")
"""What occurs in regular expressions and not in sentences."""

_Documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Sentence:
    """A text that a user can meet.

    Attributes:
        path: from the repository's root, with slashes.
        line: where it begins, from 1.
        text: all of it; what stands between the braces of an f-string is shortened.
        kind: where it comes from.
    """

    path: str
    line: int
    text: str
    kind: Kind


def sentences() -> list[Sentence]:
    """All of them, in the order of paths and lines."""
    found = [each for source in program().values() if not source.path.endswith("_pb2.py") for each in of_source(source)]
    for path in (*documents(), ROOT / "tui" / "cli" / "commands" / "agents" / "SKILL.md"):
        found += of_markdown(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    return sorted(found, key=lambda each: (each.path, each.line))


def of_source(source: Source) -> Iterator[Sentence]:
    """The sentences of a module: its literals, and the docstrings of what is public in it."""
    tree = source.tree()
    documented = dict(_docstrings(tree, is_public=True))
    for node in _literals(tree):
        text = _text(node)
        if id(node) in documented:
            if documented[id(node)]:
                yield Sentence(source.path, node.lineno, " ".join(text.split()), "docstring")
        elif _WORDS.search(text) and not _PATTERN.search(text):
            yield Sentence(source.path, node.lineno, text, "text")


def of_markdown(path: str, text: str) -> Iterator[Sentence]:
    """Paragraphs, list items and rows of tables; not what stands in fences."""
    is_code, begin, lines = False, 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_fence = line.lstrip().startswith("```")
        is_new = is_fence or is_code or not line.strip() or line.lstrip().startswith(("- ", "|", "#"))
        if is_new and lines:
            yield Sentence(path, begin, " ".join(" ".join(lines).split()), "readme")
            lines = []
        is_code ^= is_fence
        if not (is_fence or is_code or not line.strip()):
            begin = begin if lines else number
            lines.append(line)


def _docstrings(node: ast.AST, is_public: bool) -> Iterator[tuple[int, bool]]:
    """The ids of all docstrings below a node, those of attributes too, and whether they are of something public."""
    name = getattr(node, "name", None) or ""
    is_public = is_public and not name.startswith("_")
    body = getattr(node, "body", []) if isinstance(node, _Documented) else []
    for place, statement in enumerate(body):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield id(statement.value), is_public and (place == 0 or not _is_private(body[place - 1]))
    for child in ast.iter_child_nodes(node):
        yield from _docstrings(child, is_public)


def _is_private(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(getattr(target, "id", "").startswith("_") for target in targets)


def _literals(node: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Literals of text below a node; of an f-string the whole, then those between its braces."""
    if isinstance(node, ast.JoinedStr):
        yield node
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from _literals(part.value)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _literals(child)


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    parts = (
        f"{{{ast.unparse(part.value)[:40]}}}"
        if isinstance(part, ast.FormattedValue)
        else str(getattr(part, "value", ""))
        for part in node.values
    )
    return "".join(parts)
