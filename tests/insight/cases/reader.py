"""Reads tables of cases: text whose rows name scenes, what is planted in them, and what the answer is.

A row begins at the margin; what it plants is indented by two columns, and a line that goes on by six:

    NAME = VALUE                                        a value that later rows name
    shape NAME half=HALF                                a sort of program; the names of its cases begin with its own
    set NAME                                            programs of which each stands for itself, split among themselves
    scene NAME: PROGRAM … DEVICE field=VALUE …          a healthy scene; or SCENE field=VALUE …, another one changed
    NAME | SCENE | KIND ALSO … | PLACE, … | every 4     a problem; in the last column its rhythm, or `since` which step
      once of program 1: PART                           what is done badly, in this field of this program, or the first
      instead: nothing                                  the program has no such part where it does well
      work: field=VALUE …                               so do `loop`, `chips` and `scene`: changes of these
      program: 1                                        that these changes are of, unless it is the first
      chore: NAME MILLISECONDS field=VALUE …            what the hosts do besides
    pair NAME + NAME                                    two problems of one scene; the first is worth more
    healthy NAME | SCENE                                one that only looks as if; what it plants costs nothing

A VALUE is a number (`16_384`, `130ms`, `24MiB`), `yes` or `no`, a word or "several words", a NAME in capitals or what
it holds (`WHOLE.back.0`), or a group in parentheses: `(Lookup rows=9)` calls a part or model of this name, `(rows=9)`
is a mapping, all others are tuples. `*` and `**` before a NAME put its items in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.insight.cases import scenes
from tests.insight.cases.models import codebases, dialects, domains, jobs, labs, shapes
from tests.insight.cases.parts import blind as blind_parts
from tests.insight.cases.parts import codebases as codebase_parts
from tests.insight.cases.parts import domains as domain_parts
from tests.insight.cases.parts import labs as lab_parts
from tests.insight.cases.parts import rounds as round_parts
from tests.insight.cases.shape import Plant, Shape
from tests.insight.simulator import code, parts, play, scene, schedules, spelled, stack, tensors, workloads
from tests.insight.simulator.play import MS, Chore
from tests.insight.simulator.scene import Scene

_CONTINUED = re.compile(r"\n {6}")
_TOKEN = re.compile(r'(\w+=|\*\*?)?("[^"]*"|[()]|[^\s()"]+)')
_NUMBER = re.compile(r"(-?\d[\d_]*(?:\.\d+)?(?:e\d+)?)(ms|MiB)?")
_NAME = re.compile(r"[A-Z][A-Z0-9_]+(\.[\w:]+)*")
_VALUE = re.compile(r"([A-Z][A-Z0-9_]+) = (.*)")
_UNITS = {None: 1, "ms": MS, "MiB": 1 << 20}


def _turns(text: str) -> tuple[tuple[int, ...], ...]:
    """The programs of each step: ``0*3 0,1`` is program 0 in three steps, and both programs in one."""
    found: list[tuple[int, ...]] = []
    for word in text.split():
        programs, _, times = word.partition("*")
        found += [tuple(map(int, programs.split(",")))] * int(times or 1)
    return tuple(found)


def _scene(*values: Any, **changes: Any) -> Scene:
    """A scene of programs on a device, or another scene with changes."""
    *work, last = values
    return replace(last, **changes) if isinstance(last, Scene) else Scene(tuple(work), last, **changes)


def _public(modules: Iterable[ModuleType]) -> Iterator[tuple[str, Any]]:
    """What modules define themselves, and their constants."""
    for module in modules:
        for name, value in vars(module).items():
            if getattr(value, "__module__", module.__name__) == module.__name__ or _NAME.fullmatch(name):
                yield name, value


_SIMULATOR = (code, parts, play, scene, schedules, spelled, stack, tensors, workloads)
_MODELS = (scenes, shapes, dialects, jobs, codebases, labs, domains)
_PARTS = (codebase_parts, lab_parts, domain_parts, round_parts, blind_parts)
VOCABULARY: dict[str, Any] = {
    **dict(_public((*_SIMULATOR, *_MODELS, *_PARTS))),
    "Scene": _scene,
    "replace": replace,
    "turns": _turns,
}


def read_table(path: Path, later: str = "") -> list[Shape]:
    """The shapes of a table; `later` is the set that all of them are scored with, and which is held back."""
    reader = _Reader(later)
    for row in re.split(r"\n(?! )", _CONTINUED.sub(" ", path.read_text("utf-8")).strip("\n")):
        if row and not row.startswith("#"):
            try:
                reader.read(*row.split("\n  "))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise ValueError(f"{path.name}: {row}") from error
    return reader.shapes


class _Reader:
    """Reads rows one by one; rows may name values of those above them."""

    def __init__(self, later: str) -> None:
        self.later = later
        self.names = dict(VOCABULARY)
        self.shapes = [Shape()]

    def read(self, row: str, *planted: str) -> None:
        """Reads a row and what it plants."""
        shape = self.shapes[-1]
        first, _, rest = row.partition(" ")
        name, *columns = (column.strip() for column in row.split("|"))
        if value := _VALUE.fullmatch(row):
            self.names[value[1]] = self._one(value[2])
        elif first == "shape":
            (name,), named = self._values(rest)
            self.shapes.append(Shape(name, self.later, **{"half": "held" if self.later else None, **named}))
        elif first == "set":
            self.shapes.append(Shape(later=rest))
        elif first == "scene":
            name, _, scene = rest.partition(": ")
            shape.scenes[name] = self._scene(scene)
        elif first == "pair":
            more, less = rest.split(" + ")
            shape.pairs.append((more, less))
        elif first == "healthy":
            plant = self._plant("", "", "", planted)
            shape.healthy[name.removeprefix("healthy ")] = plant.into_scene(self._scene(columns[0]))
        else:
            scene, kinds, places, *when = columns
            if name in shape.problems:
                raise ValueError(f"two problems have the name {name}")
            shape.problems[name] = self._scene(scene), self._plant(kinds, places, "".join(when), planted)

    def _scene(self, text: str) -> Scene:
        known = self.shapes[-1].scenes.get(text)
        if known is not None:
            return known
        values, changes = self._values(text)
        return _scene(*values, **changes)

    def _plant(self, kinds: str, places: str, when: str, planted: Iterable[str]) -> Plant:
        kind, *also = kinds.split() or ("",)
        place = tuple(filter(None, places.split(", ")))
        chores: list[Chore] = []
        changes: dict[str, Any] = {}
        if when:
            word, step = when.split()
            changes[word] = int(step)
        for row in planted:
            what, _, text = row.partition(": ")
            into, _, program = what.partition(" of program ")
            if what == "chore":
                (name, ms), more = self._values(text)
                chores.append(Chore(name, ms * MS, **more))
            elif what == "instead":
                changes["instead"] = ()
            elif what in ("work", "loop", "chips", "scene"):
                changes[what] = self._values(text)[1]
            elif what == "program":
                changes["program"] = int(text)
            else:
                changes |= {"part": self._one(text), "into": into, "program": int(program or 0)}
        return Plant(kind, place, tuple(also), chores=tuple(chores), **changes)

    def _one(self, text: str) -> Any:
        """What a group of these values is, or the only one of them."""
        values, named = self._values(text, calls=True)
        return values[0] if len(values) == 1 and not (named or callable(values[0])) else _group(values, named)

    def _values(self, text: str, calls: bool = False) -> tuple[list[Any], dict[str, Any]]:
        """The values of a text, those without a name and those with one; the first may be what is called."""
        groups: list[tuple[str, list[Any], dict[str, Any]]] = [("", [], {})]
        for key, word in _TOKEN.findall(text):
            if word == "(":
                groups.append((key, [], {}))
            elif word == ")":
                name, values, named = groups.pop()
                _put(groups[-1], name, _group(values, named))
            else:
                _, values, named = groups[-1]
                first = not (key or values or named) and (calls or len(groups) > 1)
                _put(groups[-1], key, self._word(word, first))
        return groups[0][1:]

    def _word(self, word: str, first: bool) -> Any:
        if number := _NUMBER.fullmatch(word):
            digits, unit = number.groups()
            return (float(digits) if set(".e") & set(digits) else int(digits)) * _UNITS[unit]
        if word in ("yes", "no"):
            return word == "yes"
        if _NAME.fullmatch(word):
            name, *path = word.split(".")
            value = self.names[name]
            for step in path:
                value = _inside(value, step)
            return value
        return self.names[word] if first and word in self.names else word.strip('"')


def _put(group: tuple[str, list[Any], dict[str, Any]], key: str, value: Any) -> None:
    """Adds a value to a group, after ``name=`` under this name, after one star or two its items."""
    _, values, named = group
    if key == "**":
        named.update(value)
    elif key == "*":
        values.extend(value)
    elif key:
        named[key.removesuffix("=")] = value
    else:
        values.append(value)


def _inside(value: Any, step: str) -> Any:
    begin, colon, end = step.partition(":")
    if colon:
        return value[int(begin or 0) : int(end) if end else None]
    return value[int(step)] if step.isdigit() else getattr(value, step)


def _group(values: list[Any], named: dict[str, Any]) -> Any:
    """What parentheses are around: a call, a mapping or a tuple."""
    if values and callable(values[0]):
        return values[0](*values[1:], **named)
    if values and named:
        raise ValueError(f"{values[0]} is not a part or model")
    return named or tuple(values)
