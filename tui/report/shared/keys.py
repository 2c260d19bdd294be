"""Only some keys of a report's JSON: a few hundred bytes for those who know what to ask."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import nearest, printable
from tpuprof.tui.report.json import HEAD, laid_out

_UNKNOWN = "unknown"
_MOST_NEAR = 3

Tree = dict[str, "Tree"]


def picked(text: str, keys: str) -> str:
    """The document of a report with some of its keys.

    Args:
        text: the document.
        keys: separated by commas; ``a.b`` is ``b`` of the object ``a``, or of each object in the list ``a``. A key has
            all that is below it.

    Raises:
        ProfileError: the document has no such key.
    """
    document: dict[str, Any] = json.loads(text)
    paths = [tuple(key.strip().replace("[]", "").split(".")) for key in keys.split(",") if key.strip()]
    if not paths:
        raise ProfileError("usage", "--keys names no key.", "--keys warnings", EXIT_USAGE)
    body = {key: value for key, value in document.items() if key != _UNKNOWN}
    for path in paths:
        if path[0] != _UNKNOWN:  # the reasons: their keys have dots, and a page that knows all has none
            _check(path, body)
    kept = _kept(body, _tree(paths))
    head = {key: document[key] for key in HEAD if key in document}
    return laid_out({**head, **kept, _UNKNOWN: dict(_reasons(document.get(_UNKNOWN, {}), paths))})


def _tree(paths: Iterable[tuple[str, ...]]) -> Tree:
    """The keys as a tree; a key with nothing below it is wanted whole."""
    tree: Tree = {}
    for path in sorted(paths, key=len, reverse=True):  # a whole object counts more than a key of it
        branch = tree
        for key in path[:-1]:
            branch = branch.setdefault(key, {})
        branch[path[-1]] = {}
    return tree


def _kept(value: Any, tree: Tree) -> Any:  # noqa: ANN401 - JSON
    """The part of a value that a tree names."""
    if not tree or value is None:
        return value
    if isinstance(value, list):
        return [_kept(item, tree) for item in value]
    return {key: _kept(item, tree[key]) for key, item in value.items() if key in tree}


def _check(path: tuple[str, ...], body: Mapping[str, Any]) -> None:
    """Raises if no object has a key; an empty list and null have every key."""
    values: list[Any] = [body]
    for place, key in enumerate(path):
        objects = list(_objects(values))
        if not objects:
            if all(value is None or isinstance(value, list) for value in values):
                return
            raise _no_key(path, body)
        if not any(key in each for each in objects):
            raise _no_key(path[: place + 1], body)
        values = [each[key] for each in objects if key in each]


def _objects(values: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for value in values:
        if isinstance(value, dict):
            yield value
        elif isinstance(value, list):
            yield from _objects(value)


def _no_key(path: tuple[str, ...], body: Mapping[str, Any]) -> ProfileError:
    wanted, known = ".".join(path), list(dict.fromkeys(_paths(body)))
    parts = [each.rpartition(".") for each in known]
    near = nearest(path[-1], dict.fromkeys(last for _, _, last in parts), _MOST_NEAR)
    spelled = ["".join(part) for end in near for part in parts if part[2] == end][:_MOST_NEAR]
    names = spelled or ["".join(part) for part in parts if part[0] == ".".join(path[:-1])] or list(body)
    sentence = f"The JSON of this page has no key {printable(wanted)[:60]}."
    return ProfileError("usage", sentence, f"--keys {' or '.join(map(printable, names))}", EXIT_USAGE)


def _paths(value: Any, before: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """Every key of a document, with those around it; of a list those of its first object."""
    if isinstance(value, list):
        yield from _paths(value[0], before) if value else ()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield before + key
            yield from _paths(item, f"{before}{key}.")


def _reasons(unknown: Mapping[str, str], paths: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Why something that is kept is null: of keys that are asked for, above them or below."""
    for key, why in unknown.items():
        parts = tuple(key.replace("[]", "").split("."))
        if any(path[0] == _UNKNOWN or parts[: len(path)] == path[: len(parts)] for path in paths):
            yield key, why
