"""What users change: the theme, keys, the columns of the table of ops. Names alone: nothing heavy is imported."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, get_args

from tpuprof.parsers.base.folders import config_folder
from tpuprof.parsers.base.record import dataclass

Theme = Literal["auto", "dark", "light", "high-contrast", "colour-blind"]
"""`dark` and `light` say what the background is; all others find it out."""

_TOGETHER = ("wasd",)  # keys that stand in a footer as one word
THEMES: tuple[Theme, ...] = get_args(Theme)

_SIGN_NAMES = {"solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus"}
_SIGN_NAMES |= {"plus_sign": "plus", "low_line": "underscore"}


def textual_name(key: str) -> str:
    """What Textual calls a key that people write as a sign: ``slash`` for ``/``."""
    if len(key) > 1 or key.isalnum():
        return key

    name = unicodedata.name(key).lower().replace("-", "_").replace(" ", "_")
    return _SIGN_NAMES.get(name, name)


@dataclass(frozen=True, slots=True)
class Keymap:
    """The user's keys in the place of the built-in ones: by these (`moved`), both as people write them."""

    moved: Mapping[str, str] = MappingProxyType({})

    def meant(self, key: str) -> str:
        """The built-in key that a typed one stands for, as Textual calls it; empty where that has moved away."""
        typed = {textual_name(old): "" for old in self.moved}
        typed |= {textual_name(new): textual_name(old) for old, new in self.moved.items()}
        return typed.get(key, key)

    def shown(self, words: str) -> str:
        """Built-in keys between blanks, such as ``j k, down up``, as the user has them."""
        return " ".join(map(self._shown_key, words.split(" "))) if self.moved else words

    def _shown_key(self, word: str) -> str:
        if word in _TOGETHER:
            keys = [self.moved.get(key, key) for key in word]
            return word if "".join(keys) == word else " ".join(keys)
        key, comma = (word[:-1], ",") if word.endswith(",") and len(word) > 1 else (word, "")
        return self.moved.get(key if len(key) == 1 else key.lower(), key) + comma

    def shown_pairs(self, keys: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Keys and what they do."""
        return [(self.shown(key), label) for key, label in keys]


AS_BUILT = Keymap()


@dataclass(frozen=True, slots=True)
class Custom:
    """How a user wants the screen.

    Attributes:
        theme: colours.
        keys: keys that were moved.
        columns: keys of the fields that the table of HLO ops shows beside its first ones; empty for the built-in ones.
    """

    theme: Theme = "auto"
    keys: Keymap = AS_BUILT
    columns: tuple[str, ...] = ()


UNCHANGED = Custom()

VARIABLE = "TPUPROF_CONFIG"  # names another file


@dataclass(frozen=True, slots=True)
class Config:
    """What the file sets.

    Attributes:
        path: where it is, or would be; empty where there is no home folder.
        is_there: whether there is a file.
        custom: theme, keys and columns.
        cache, cache_bytes: whether what was read of profiles is kept, and how much at most; None for as much as usual.
        remote_bytes: how much copies of remote profiles may take; None where the file does not say.
        settings: what the file sets, as names and words.
    """

    path: str
    is_there: bool = False
    custom: Custom = Custom()
    cache: bool = True
    cache_bytes: int | None = None
    remote_bytes: int | None = None
    settings: tuple[tuple[str, str], ...] = ()


def config_path(environ: Mapping[str, str]) -> str:
    """Where the file is looked for: ``$TPUPROF_CONFIG``, else ``config.toml`` in the folder of this program."""
    folder = config_folder()
    return environ.get(VARIABLE) or (os.path.join(folder, "config.toml") if os.path.isabs(folder) else "")
