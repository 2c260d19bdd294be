"""Words that people bring from other programs: what is meant by them here, and which call comes nearest to a wrong one.

A word with one meaning here is taken for it; another leads on to what comes nearest. Nobody loads this who types the
program's own words.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import instant_ps, nearest, printable
from tpuprof.tui.cli.arguments.options import PROGRAM, may_be_path
from tpuprof.tui.cli.arguments.values import FILE_FORMATS
from tpuprof.tui.cli.man import topics
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import PAGE_NAMES


def _tables() -> Mapping[str, Mapping[str, str]]:
    """What is meant by words of other programs, by kind: a page, by a command's word."""
    tables: dict[str, dict[str, str]] = {}
    for line in Path(__file__).with_name("habits.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            of_kind = tables.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            ours, _, words = line.partition("<- ")
            of_kind |= dict.fromkeys(words.split(), ours.strip())
    return tables


_TABLES = _tables()
_COMMANDS, _PAGES, _OPTIONS, _NEAR = (_TABLES[kind] for kind in ("commands", "pages", "options", "near"))
_OURS = frozenset((*COMMANDS, *PAGE_NAMES))
_CORES = ("--device", "--device-id", "--plane", "--plane-regex")
_SELECT = pattern(r"(?i)\s*(?:(?:select|with|show|describe)\s|\.tables|\.schema)")
_CORE = pattern(r"(?:/?device:)?TPU:([0-9]+)")
_INSTANTS = {"--start-time-ps": "--from", "--end-time-ps": "--to"}
_OF_VALUES = frozenset(["-o", "--output", "--ms", "--duration-ms", "--format", "--limit", "-n", "--baseline"])
_OF_VALUES |= {*_INSTANTS, *_CORES}
"""Options whose value other programs write in another way."""

_QUERY = frozenset(["--sql", "--query", "--execute", "-q", "-e"])
"""Options of other programs whose value is a query."""
_VALUES = {"markdown": "md", "gfm": "md", **dict.fromkeys(("all", "none", "inf"), "0")}
_PATHS = frozenset(["--logdir", "--service-addr", "--session-id", "--input", "-i", "--old", "--new", "--candidate"])
_PATHS |= {"--baseline-session-id", "--optimized-session-id"}
"""Options of other programs that name a profile."""


def meant(words: Sequence[str]) -> list[str]:
    """The words of a call, as this program has them where another's have one meaning here."""
    if words[0] == "help":
        is_topic = words[1:2] and words[1] in topics() and words[1] not in _OURS
        return ["man", *words[1:]] if is_topic else [*words[1:], "--help"]
    left = _in_order([*words])
    if left[0] not in COMMANDS:
        is_page = left[0] in PAGE_NAMES or _page_word(left[0]) in {*PAGE_NAMES, *_PAGES} - {*_COMMANDS}
        left[:1] = ["report", left[0]] if is_page else _COMMANDS.get(left[0], left[0]).split()
    if left[:1] == ["report"] and left[1:]:
        page = _page_word(left[1])
        left[1:2] = _PAGES.get(page, page if page in PAGE_NAMES else left[1]).split()
        left = left[1:] if left[1] in COMMANDS and left[1] not in PAGE_NAMES else left
    if left[:1] == ["memory"]:  # that opens the app, and this has options of a report
        left = ["report", *left]
    if left[:1] == ["query"]:
        left = [word for word in left if word not in _QUERY]
    with_units = [word for word in left[2:][-2:] if word.endswith("s") and instant_ps(word) is not None]
    if left[:2] == ["report", "timeline"] and len(with_units) > 1:
        left[-2:] = ["--from", left[-2], "--to", left[-1]]
    if left[:1] == ["diff"]:
        left = [side for word in left for side in _sides(word)]
    return _options(left, "--output" if left[:1] == ["capture"] else "")


def _in_order(words: list[str]) -> list[str]:
    """The words with the command first, then the page, then the path; without a verb that says it twice."""
    while words[0][:1] == "-" and not {*words[1:]}.isdisjoint(COMMANDS):
        words = [*words[1:], words[0]]
    second = words[1] if words[1:] else ""
    if may_be_path(words[0]) and _SELECT.match(second):
        return ["query", *words]
    if words[0] in ("grep", "find", "search") and words[2:] and may_be_path(words[2]) and not may_be_path(second):
        return ["report", "ops", words[2], "--filter", second, *words[3:]]
    if may_be_path(words[0]) and second in _OURS:
        return [*words[1:], words[0]]
    if words[0] == "report" and may_be_path(second) and words[2:] and words[2] in PAGE_NAMES:
        return ["report", words[2], second, *words[3:]]
    if words[0] in _COMMANDS and words[0] not in _OURS and second in PAGE_NAMES:
        words = ["report", *words[1:]]
    elif words[0] in _COMMANDS and _COMMANDS.get(second) == _COMMANDS[words[0]] and not may_be_path(second):
        words = [words[0], *words[2:]]
    if words[:2] == ["report", "op"] and words[3:] and not may_be_path(words[2]) and may_be_path(words[3]):
        return ["report", "op", words[3], words[2], *words[4:]]
    return words


def _sides(word: str) -> Sequence[str]:
    """The two runs of ``A..B`` or ``A...B``; else the word itself."""
    sides = pattern(r"\.{2,3}(?=[^.])").split(word) if not os.path.lexists(word) else []
    return sides if len(sides) == 2 and all(map(may_be_path, sides)) else [word]


def _page_word(word: str) -> str:
    """A word that may mean a page, without what XProf puts in front of the names of its commands."""
    return word.rstrip("@").replace("_", "-").removeprefix("get-").removeprefix("list-")


def _options(words: Sequence[str], logdir: str) -> list[str]:
    """Options by the names that they have here; a logdir's path stands at the end, or behind its name."""
    made, last = list[str](), list[str]()
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        name = name.replace("_", "-") if name.startswith("--") else f"-{name}" if f"-{name}" in _OPTIONS else name
        if name in _OF_VALUES:
            made += _translated(name, value if equals else next(left, ""))
        elif name in _PATHS:
            path = value if equals else next(left, "")
            is_run = name == "--session-id" and not may_be_path(path)
            before = [logdir] if logdir and name != "--service-addr" else []
            last += ["--run", path] if is_run else [*before, path]
        elif name[:1] == "-" and name[1:].isdigit() and (not made or made[-1][:2] != "--"):
            made += ["--limit", name[1:]]
        elif equals:
            made.append(f"{_OPTIONS.get(name, name)}={value}" if name.startswith("--") else word)
        else:
            made += _OPTIONS.get(name, name).split() if name.startswith("--") else [word]
    return [*made, *last]


def _translated(name: str, value: str) -> list[str]:
    """An option and its value, where other programs write the value in another way."""
    if name in _INSTANTS and value.isdigit():
        return [_INSTANTS[name], f"{int(value) / 1e9:.12g}ms"]
    if name in ("--ms", "--duration-ms"):
        return ["--duration", f"{value}ms"]
    if name == "--baseline" and may_be_path(value):
        return [value]
    if name in _CORES and (core := _CORE.search(value)) is not None:
        return ["--core", core[1]]
    if name in ("-o", "--output") and value in (*FILE_FORMATS, "yaml", "wide"):
        return ["--format", value]
    return [name, _VALUES.get(value, value) if name in ("--format", "--limit", "-n") else value]


def nearest_in_meaning(name: str) -> str:
    """The page, or the option, that comes nearest to another program's by what it means; empty where none does."""
    name = name.replace("_", "-")
    return _NEAR.get(name) or _NEAR.get(name.lower(), "")


# --- the call that comes nearest to a wrong one

_MOST_CHANGES = 8
_SHORT = 2  # letters, of which other words are made by chance
_UNKNOWN = pattern(r"(?i)unrecognized arguments: (.*)\.\Z")
_WRONG_VALUE = pattern(r"Argument (-\S+): ")
_NO_WORD = pattern(r"There is no (?:command|page) ([^;]+?)(?:;.*)?\.\Z")
_NO_PAGE = pattern(r"(.+) is not a page\.\Z")
_OF_PAGE = pattern(r"--[\w-]+ is for the pages? ([\w-]+)")
_Parse = Callable[[Sequence[str]], object]


def nearest_call(words: Sequence[str], parse: _Parse) -> str:
    """The call that comes nearest to a wrong one and can be parsed; empty where there is none.

    Args:
        parse: raises ProfileError where words are wrong.
    """
    left = [*words]
    if left and left[0][:1] != "-" and left[0] not in COMMANDS and not may_be_path(left[0]):
        left = meant(_with_word(left, 0) or ["help"])
    for _ in range(_MOST_CHANGES):
        wrong = _error(parse, left)
        if wrong is None:
            return f"{PROGRAM} {' '.join(map(_quoted, left))}" if left and left != [*words] else ""
        changed = _changed(left, wrong, parse)
        if isinstance(changed, str) or changed == left:
            return changed if isinstance(changed, str) else ""
        left = meant(changed) if changed else []
    return ""


def _error(parse: _Parse, words: Sequence[str]) -> ProfileError | None:
    """What is wrong with some words; asking for help is not, and would print it."""
    try:
        parse([word for word in words if word not in ("-h", "--help")])
    except ProfileError as error:
        return error
    return None


def _quoted(word: str) -> str:
    """A word as a shell takes it and a terminal may show it."""
    shown = printable(word)
    return shown if pattern(r"[\w./:=,@%+~-]+").fullmatch(shown) else "'" + shown.replace("'", "'\\''") + "'"


def _changed(words: list[str], wrong: ProfileError, parse: _Parse) -> list[str] | str:
    """Words with one error less; the same ones where it can't be mended; another call as text where that is meant."""
    if (found := _UNKNOWN.match(wrong.sentence)) is not None:
        unknown = found[1].split()[0]
        at = next((at for at, word in enumerate(words) if word.partition("=")[0] == unknown.partition("=")[0]), None)
        return words if at is None else _without(words, at, wrong.hint, parse)
    if (found := _WRONG_VALUE.match(wrong.sentence)) is not None:
        at = next((at for at, word in enumerate(words) if word.partition("=")[0] in found[1].split("/")), None)
        if at is None:
            return words
        rest = words[at + (1 if "=" in words[at] or may_be_path(" ".join(words[at + 1 : at + 2])) else 2) :]
        return [*words[:at], *(wrong.hint.split(" or ")[0].split() if wrong.hint.startswith("--") else []), *rest]
    if (found := _NO_WORD.match(wrong.sentence)) is not None and found[1] in words:
        return _with_word(words, words.index(found[1]))
    if (found := _NO_PAGE.match(wrong.sentence)) is not None and words[1:]:
        return ["report", "overview", *words[1:]]
    if (found := _OF_PAGE.match(wrong.sentence)) is not None and words[:1] == ["report"]:
        return ["report", found[1], *words[2:]]
    return words


def _with_word(words: list[str], at: int) -> list[str]:
    """Words with the command or page that comes nearest in the place of an unknown one; else what its path needs."""
    name, rest = nearest_in_meaning(words[at]), words[at + 1 :]
    known = (*PAGE_NAMES, *_PAGES) if at else (*filter(None, COMMANDS), *_COMMANDS)
    near = [name] if name else nearest(words[at], known, 1) if len(words[at]) > _SHORT else []
    if near and rest and (rest[0] in COMMANDS or nearest_in_meaning(rest[0]) == name != ""):
        del rest[0]  # it means the same, or less
    if near and (near[0] in COMMANDS or near[0] in _COMMANDS):
        return [near[0], *rest]
    if near:
        return [*words[:at], *([] if at else ["report"]), *near, *rest]
    if at or (rest and (rest[0] in known or _page_word(rest[0]) in {*PAGE_NAMES, *_PAGES})):
        return words if at else rest
    paths = [word for word in rest if may_be_path(word)]
    return ["diff", *paths] if paths[1:] else paths


def _without(words: list[str], at: int, hint: str, parse: _Parse) -> list[str] | str:
    """Words with another option, or none, in the place of an unknown one; or the call that a hint names."""
    name, equals, value = words[at].partition("=")
    for option in hint.split(" or ") if hint.startswith("--") else []:
        changed = [*words[:at], f"{option}={value}" if equals else option, *words[at + 1 :]]
        if (wrong := _error(parse, changed)) is None or not any(each in wrong.sentence for each in (name, option)):
            return changed
    paths = [word for word in words[1:] if may_be_path(word)] or [word for word in words[:1] if may_be_path(word)]
    if PROGRAM in hint and not hint.endswith("--help"):
        return hint.replace("PATH", _quoted(paths[0]) if paths else "PATH")
    if words[at] in paths:  # one place has two words: it is the other one's that is no path
        others = [place for place in range(1, at) if words[place] not in _OURS and words[place][:1] != "-"]
        at = next((place for place in others if not may_be_path(words[place])), at)
    end = at + 1
    if not equals and name.startswith("-") and end < len(words) and words[end][:1] != "-" and words[end] not in paths:
        end += 1
    return [*words[:at], *words[end:]]
