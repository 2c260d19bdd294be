"""The user's file: read whole and checked, or refused with a sentence that names the line."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.tui.pages import op_columns
from tpuprof.tui.terminal.custom import THEMES, VARIABLE, Config, Custom, Theme, config_path

MOST_BYTES = 1_000_000  # of the file; whatever is longer is something else
_AMOUNT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?([kMGT]B)")
_BYTES = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_AT_LINE = re.compile(r" ?\(at line (\d+), column \d+\)| ?\(at end of document\)")

_R = TypeVar("_R")


def read_config(environ: Mapping[str, str]) -> Config:
    """What the user's file sets; nothing where there is none.

    Raises:
        ProfileError: it can't be read, is no TOML, or says what is not understood; exit code 2.
    """
    path = config_path(environ)
    if not path:
        return Config(path)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            why = "is not a file" if not stat.S_ISREG(status.st_mode) else f"is larger than {MOST_BYTES:,} bytes"
            raise _error(f"The config file {printable(path)} {why}.")
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES)
    except FileNotFoundError:
        if environ.get(VARIABLE):
            raise _error(f"{VARIABLE} names {printable(path)}, which does not exist.") from None
        return Config(path)
    except OSError as error:
        raise _error(f"The config file {printable(path)} can't be read: {error.strerror}.") from error
    return parsed_config(path, content)


def _error(sentence: str) -> ProfileError:
    return ProfileError("config", sentence, "tpuprof-tui config prints a file with all settings", EXIT_USAGE)


def parsed_config(path: str, content: bytes) -> Config:
    """What a file says.

    Raises:
        ProfileError: see `read_config`.
    """
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 - for those who have a file
    else:
        import tomli as tomllib  # noqa: PLC0415

    where = f"The config file {printable(path)}"
    try:
        text = content.decode()
        said = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _error(f"{where}, line {line}: this is not UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        line_words = f", line {at[1]}" if at is not None and at[1] else ""
        reason = printable(_AT_LINE.sub("", str(error)))
        raise _error(f"{where}{line_words}: this is not TOML: {reason[:1].lower()}{reason[1:]}.") from None
    return _Reading(path, where, text, said).config()


class _Reading:
    """A file that is being checked."""

    def __init__(self, path: str, where: str, text: str, said: Mapping[str, Any]) -> None:
        self._path = path
        self._where = where
        self._text = text.splitlines()
        self._lines = _lines_of(self._text)
        self._said = said
        self._told: list[tuple[str, str]] = []

    def config(self) -> Config:
        """All that the file says, or the first thing that is wrong with it."""
        self._known("", self._said, ("theme", "columns", "cache"))
        cache = self._table("cache")
        self._known("cache", cache, ("size", "remote"))
        theme = self._one("theme", self._said.get("theme", "auto"), self._theme)
        custom = Custom(theme, self._columns())
        size = self._one("cache.size", cache.get("size"), partial(self._bytes, can_be_off=True))
        remote = self._one("cache.remote", cache.get("remote"), partial(self._bytes, can_be_off=False))
        return Config(self._path, True, custom, size != 0, size, remote, tuple(self._told))

    def _fail(self, place: str, words: str, entry: str = "") -> NoReturn:
        """Refuses the file for what stands at a place, such as ``cache.size``, or for an entry of the list there."""
        line = self._lines.get(place) or self._lines.get(place.partition(".")[0])
        if line and entry:
            line = next((number for number, text in enumerate(self._text[line - 1 :], line) if entry in text), line)
        raise _error(f"{self._where}{f', line {line}' if line else ''}: {words}.")

    def _known(self, table: str, said: Iterable[str], known: Iterable[str]) -> None:
        known = tuple(known)
        for name in said:
            if name not in known:
                place = f"{table}.{name}" if table else name
                self._fail(place, f"there is no {printable(place)}{_instead(name, known)}")

    def _table(self, name: str) -> Mapping[str, Any]:
        table = self._said.get(name, {})
        if not isinstance(table, Mapping):
            self._fail(name, f"{name} is {_kind(table)} and should be a table: [{name}]")
        return table

    def _one(self, place: str, value: object, read: Callable[[str, object], _R]) -> _R:
        """One value; what the file says is kept for `doctor`."""
        made = read(place, value)
        if value is not None and ("." in place or place in self._said):
            self._told.append((place, printable(str(value))))
        return made

    def _theme(self, place: str, value: object) -> Theme:
        if value not in THEMES:
            self._fail(place, f"{place} is {_kind(value)} and should be one of {', '.join(THEMES)}")
        return value

    def _bytes(self, place: str, value: object, *, can_be_off: bool) -> int | None:
        """A number of bytes; 0 for ``off``."""
        if value is None:
            return None
        if value == "off" and can_be_off:
            return 0
        amount = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
        if amount is None or not float(amount[1]):
            also = ', or "off"' if can_be_off else ""
            self._fail(place, f'{place} is {_kind(value)} and should be a size such as "500 MB"{also}')
        return round(float(amount[1]) * _BYTES[amount[2]])

    def _columns(self) -> tuple[str, ...]:
        value, known = self._said.get("columns", ()), op_columns()
        if not isinstance(value, (list, tuple)) or ("columns" in self._said and not value):
            self._fail("columns", f"columns is {_kind(value)} and should be a list of names such as {known[0]}")
        for place, name in enumerate(value):
            if name not in known:
                unknown = printable(name) if isinstance(name, str) else _kind(name)
                words = f"the table of ops has no column {unknown}{_instead(str(name), known)}"
                self._fail("columns", words, str(name))
            if name in value[:place]:
                self._fail("columns", f"the column {name} is listed twice", str(name))
        if value:
            self._told.append(("columns", ", ".join(value)))
        return tuple(value)


def _kind(value: object) -> str:
    if isinstance(value, str):
        return f'"{printable(value[:40])}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    return "a table" if isinstance(value, Mapping) else printable(str(value)[:40])


def _instead(name: str, known: tuple[str, ...]) -> str:
    """What may be meant; all that there is where that is little."""
    from difflib import get_close_matches  # noqa: PLC0415 - for mistakes alone

    near = get_close_matches(name, known, 3)
    if near:
        return f"; perhaps {' or '.join(near)}"
    return f"; there are {', '.join(known)}" if len(known) < 8 else ""


def _lines_of(text: Sequence[str]) -> dict[str, int]:
    """The lines that names are set on, such as ``cache.size``, and that tables begin on; of a file that is TOML."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text, 1):
        if head := re.match(r"\s*\[\s*([\w.\"'-]+)\s*\]", line):
            table = re.sub("[\"']", "", head[1])
            lines.setdefault(table, number)
        elif name := re.match(r"\s*([\w.\"' -]+?)\s*=", line):
            key = re.sub(r"[\"' ]", "", name[1])
            lines.setdefault(f"{table}.{key}" if table else key, number)
    return lines
