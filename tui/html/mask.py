"""Masks what a text names of people, machines and places, so that it can be shown to others.

Names of ops, modules, kernels, framework ops and events stay: they are the program. A page's JSON says by its keys
which strings are such names, and which are files, threads and hosts. In any other text each word that is built like a
path, an address, a login or a setting goes. One name has one stand-in everywhere. Texts are masked first, then cut.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tpuprof.parsers.base.words import REPORTED

_FILES = frozenset({"source", "file", "stack", "called_from", "source_stack"})
_TRACKS = frozenset({"line", "section", "plane", "track", "origin"})
_KEPT = frozenset(
    {
        *("framework_op", "operator", "scope", "kernel", "main_op", "parent_op", "op", "computation", "expression"),
        *("module", "modules", "module_names", "program", "category", "type", "shape", "layout", "xla_label"),
    }
)
"""Keys of JSON under which files stand, tracks, and names that stay; so does each ``name`` of ops and kernels."""

_KNOWN_TRACK = re.compile(
    r"(?:Async )?XLA (?:Ops|Modules|TraceMe)|Steps|Overlay|Source code|Host Offload Ops|Host threads|Launch Stats"
    r"|(?:Framework|TensorFlow) (?:Name Scope|Ops)|/device:(?:TPU|GPU|CPU):\d+|/host:CPU"
    r"|(?:Chip \d+: )?(?:TPU|Tensor|Sparse) ?[cC]ore \d+"
    r"|Stream #\d+(?:\((?:Memcpy\w{3}|Compute|,)+\))?"
    r"|(?:python3?|main|py_xla_execute|pjrt-tpu-tasks|collective_ops|tf_Compute|tf_GPU_Event_Manager|tf_gpu_private_\d+"
    r"|tf_data_(?:private_threadpool|iterator_prefetch|iterator_resource|multi_device_iterator_get_next))(?:/-?\d+)?"
)
"""Tracks whose names are the profiler's or the runtime's."""

_STOPS = r"(?:and|at|by|for|from|in|is|of|on|or|to|with)\b"
_WITH_BLANKS = re.compile(
    rf"(?<![\w./\\])(?!/(?:device|host):)(?:~[\w.-]*[\\/]|[A-Za-z]:[\\/]|[\\/])(?=\S)[^\s,;|'\"]*"
    rf"(?: (?!{_STOPS})[^\s,;:|'\"/\\]+){{0,4}} (?!{_STOPS})[^\s,;:|'\"/\\]+[/\\][^\s,;|'\"]*"
)
_WORD = re.compile(r"(\S+)")
_BARE = re.compile(r"([(\[{<\"'`*]*)(.*?)([)\]}>\"'`*,;.:!?]*)", re.DOTALL)
_PLACE = re.compile(r"(.*?)((?::\d+)*)", re.DOTALL)
_ENDINGS = (
    r"\.(?:py|pyc|ipynb|pyx|so|c|cc|cpp|cu|h|hpp|rs|go|jl|java|sh|txt|log|md|csv|tsv|json|jsonl|ya?ml|toml|cfg|ini|pb"
    r"|pbtxt|hlo|gz|zip|tar|npz?|pkl|bin|pt|ckpt|safetensors|parquet|tfrecords?|html?|xml|sql|env|db|whl)"
)
_FILE = re.compile(rf".*({_ENDINGS})", re.DOTALL | re.IGNORECASE)
_BUILT = re.compile(
    r"[/\\@]|::|%(?:2f|5c|40|3a)|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])|(?:[0-9a-f]{0,4}:){3}[0-9a-f]"
    rf"|{_ENDINGS}(?![\w.])|^[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+$",
    re.IGNORECASE,
)
"""What a path, an address, a login or a machine's full name is built like."""
_WITH_NUMBER = re.compile(r"host\d+|TPU|GPU|CPU|core|step")
"""What a number may follow after a colon; anything else is a file and its line, or a machine and its port."""
_SETTING = re.compile(r"(-{0,2}[A-Za-z_][\w.-]*=)(.+)", re.DOTALL)
_PLAIN_VALUE = re.compile(r"[\d.,x_-]+|[Tt]rue|[Ff]alse|None|[%{(].*|k[A-Z]\w+", re.DOTALL)
_OURS = re.compile(
    r"n/a|[\d.,%]+(?:/[\d.,%]+)+|Iterator(?:::[A-Z]\w*(?:\[\d+\])?)+|/(?:device|host):\w+(?::\d+)?"
    r"|(?:[\d.,]*(?:[kKMGTPE]?i?B|[MGTPE]?FLOPS?|bytes|tokens|samples|steps|ops|J))?/(?:s|step|core|chip|byte|B|FLOP|token|sample)"
    r"|(?:jax|jnp|lax|tf|np|pl|pltpu|optax|flax|torch|torch_xla|xla)\.[\w.]+|[\w.-]+\.(?:clone|remat)\d*"
)
"""Words that are built so in our own sentences."""
_FOLDER = re.compile(r"\W*path\d+")  # what has taken its place: a name with a blank goes on behind it
_CUT = "…"
_NO_NAME = re.compile(r"[/~\\]|.*(?:[\\@]|://)", re.DOTALL)
"""A path or an address where the name of an op is expected."""
_ORDINARY = re.compile(r"[a-z]+|[A-Z][a-z]+|")


class Mask:
    """Masks texts; see the module.

    Args:
        hosts: they become ``host1`` and so on, in their order.
        others: further names with what takes their place.
        documents: pages, as their JSON has them.
    """

    def __init__(
        self, hosts: Iterable[str], others: Iterable[tuple[str, str]] = (), documents: Iterable[object] = ()
    ) -> None:
        named = {host: f"host{number}" for number, host in enumerate(dict.fromkeys(hosts), 1)}
        named |= {name: instead for name, instead in others if name and name not in named}
        self._given, self._kept, self._hidden = defaultdict[str, dict[str, str]](dict), set[str](), dict[str, str]()
        for key, text in (found for document in documents for found in _strings(document, "")):
            if key in _KEPT and not _NO_NAME.match(text):
                self._kept.update(_words_of(text))
            elif key in _FILES:
                for line in text.split("␊"):
                    file, number = _split(_PLACE, line)
                    if number or not _ORDINARY.fullmatch(file):
                        self._hidden[file] = self._instead(file, "file")
            elif key in _TRACKS and not _KNOWN_TRACK.fullmatch(text) and text.partition(":")[0] not in named:
                self._hidden[text] = self._instead(text, "track")
                if not _ORDINARY.fullmatch(text):
                    named[text] = self._hidden[text]
            elif key == "warnings" and text.startswith(REPORTED):
                named[text.removeprefix(REPORTED)] = "…"
        longest = sorted(filter(None, named), key=len, reverse=True)
        self._named, self._names = named, re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest))})(?![\w-])")

    def __call__(self, text: str) -> str:
        """The text with stand-ins: ``host1``, ``file2.py``, ``path3``, ``name4``."""
        if text in self._hidden:
            return self._hidden[text]
        if text in self._kept or _KNOWN_TRACK.fullmatch(text):
            return text
        text = text.replace("...", _CUT)
        text = self._names.sub(lambda name: self._named.get(name[0], ""), text)
        text = _WITH_BLANKS.sub(lambda path: self._instead(path[0], "path"), text)
        words = _WORD.split(text)
        after_path = False
        for at in range(1, len(words), 2):
            goes_on = after_path and words[at][:1].isupper()
            masked = self._instead(words[at], "path") if goes_on else self._word(words[at])
            after_path = masked != words[at] and _FOLDER.fullmatch(masked) is not None
            words[at] = masked
        return "".join(words)

    def _word(self, word: str) -> str:
        before, bare, after = _split(_BARE, word)
        if any(self._stays(bare + after[:end]) for end in range(len(after) + 1)):
            return word
        file, line = _split(_PLACE, bare)
        if file in self._hidden and (line or not _ORDINARY.fullmatch(file)):
            return f"{before}{self._hidden[file]}{line}{after}"
        if _OURS.fullmatch(bare) or _KNOWN_TRACK.fullmatch(bare):
            return word
        if (setting := _SETTING.fullmatch(bare)) and not _PLAIN_VALUE.fullmatch(setting[2]):
            value = self._word(setting[2])
            if value == setting[2]:
                value = value if _SETTING.fullmatch(value.lstrip("'\"")) else "…"
            return f"{before}{'' if _BUILT.search(setting[1]) else setting[1]}{value}{after}"
        goes = _BUILT.search(file) and any(map(str.isalnum, file))
        if line and file[:1].isalpha() and not _WITH_NUMBER.fullmatch(file):
            goes = True
        if _CUT in bare:
            goes = not all(map(self._is_end, bare.split(_CUT)))
        return f"{before}{self._instead(file, 'name')}{line}{after}" if goes else word

    def _stays(self, name: str) -> bool:
        """Whether it is a name that stays, or scopes of one."""
        return name in self._kept or ("/" in name and all(scope in self._kept for scope in name.split("/")))

    def _is_end(self, part: str) -> bool:
        """Whether a part of a name that was cut is an end of one that stays."""
        return not part or any(name.startswith(part) or name.endswith(part) for name in self._kept)

    def _instead(self, name: str, kind: str) -> str:
        """What takes a name's place: always the same."""
        ending = _FILE.fullmatch(name)
        kind = "file" if ending else "path" if kind == "name" and re.search(r"[/\\]", name) else kind
        given = self._given[kind]
        if name not in given:
            given[name] = f"{kind}{len(given) + 1}{ending[1].lower() if ending else ''}"
        return given[name]


def _strings(value: object, key: str) -> Iterator[tuple[str, str]]:
    """The strings of a page's JSON, each with its key, as the text of a page has them."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, key)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _strings(item, "op" if key in ("ops", "kernels") and name == "name" else name)
        if key == "unknown":
            yield from (("op", name) for name in value)  # keys, which are ours


def _words_of(text: str) -> Iterator[str]:
    """A name that stays, its words, and its scopes."""
    yield text
    for word in text.split():
        if '"' not in word:  # a text in an op's expression may say where it comes from
            yield _split(_BARE, word)[1]
    if '"' not in text:
        yield from filter(None, text.partition(":")[0].split("/"))


def _split(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """The groups of a pattern that fits every text."""
    found = pattern.fullmatch(text)
    assert found is not None
    return found.groups()
