"""What the environment says of a terminal, what is open on a page, and keys, against rules written another way."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.tui.terminal import grammar
from tpuprof.tui.terminal.clipboard import load_tmux_buffer
from tpuprof.tui.terminal.detect import REMOTE_FRAMES_PER_SECOND, Theme, detect, textual_settings
from tpuprof.tui.terminal.grammar import BY_NAME, MOTIONS, VERBS, shown_keys, typed_name, verbs_of, written

TERMS = ("", "dumb", "unknown", "linux", "xterm", "vt100", "xterm-256color", "xterm-kitty", "xterm-mono", "foot-direct")
VARIABLES = {
    "TERM": st.sampled_from(TERMS),
    "COLORTERM": st.sampled_from(("", "truecolor", "24BIT", "yes")),
    "NO_COLOR": st.sampled_from(("", "1")),
    "COLORFGBG": st.sampled_from(("15;0", "0;15", "0;default;7", "7;8", "")),
    "TEXTUAL_FPS": st.just("60"),
    **dict.fromkeys(
        ("LC_ALL", "LC_CTYPE", "LANG"), st.sampled_from(("", "C", "C.UTF-8", "de_DE.utf8", "en_GB.latin1"))
    ),
    **dict.fromkeys(("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT", "TMUX", "STY"), st.sampled_from(("", "x"))),
}
ENVIRONMENTS = st.fixed_dictionaries({}, optional=VARIABLES)
EITHER = st.none() | st.booleans()


def first_set(environ: Mapping[str, str], *names: str) -> str:
    return next(filter(None, map(environ.get, names)), "") or ""


@given(ENVIRONMENTS, st.sampled_from(("auto", "truecolor", "256", "16", "never")), EITHER, EITHER, st.booleans())
def test_the_first_rule_that_holds_says_what_a_terminal_can_do(
    environ: dict[str, str], color: str, ascii_only: bool | None, mouse: bool | None, is_tty: bool
) -> None:
    found = detect(environ, color=color, ascii_only=ascii_only, mouse=mouse, is_tty=is_tty)
    term, locale = environ.get("TERM", ""), first_set(environ, "LC_ALL", "LC_CTYPE", "LANG")
    colors = (
        (color != "auto", "mono" if color == "never" else color),
        (bool(first_set(environ, "NO_COLOR")) or term in ("vt100", "xterm-mono"), "mono"),
        (environ.get("COLORTERM") in ("truecolor", "24BIT") or term in ("xterm-kitty", "foot-direct"), "truecolor"),
        (term == "xterm-256color", "256"),
        (True, "16"),
    )
    assert found.color == next(mode for holds, mode in colors if holds)
    assert bool(found.obstacle) == (not is_tty or term in TERMS[:3])
    assert is_tty is ("terminal." not in found.obstacle) and (
        term not in TERMS[1:3] or not is_tty or term in found.obstacle
    )
    ground = environ.get("COLORFGBG", "")
    assert found.light == (ground in ("0;15", "0;default;7") if ground or term == "linux" else None)
    has_utf8 = locale in ("C.UTF-8", "de_DE.utf8") and term != "linux"
    assert found.unicode == (has_utf8 if ascii_only is None else not ascii_only)
    assert found.remote == bool(first_set(environ, "SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))
    assert found.mouse == (mouse if mouse is not None else not found.remote and not environ.get("STY"))
    assert found.multiplexer == ("tmux" * bool(environ.get("TMUX")) or "screen" * bool(environ.get("STY")))
    settings = textual_settings(found, environ)
    assert ("TEXTUAL_FPS" in settings) == (found.remote and "TEXTUAL_FPS" not in environ)
    assert settings.get("TEXTUAL_FPS") in (None, str(REMOTE_FRAMES_PER_SECOND))
    assert (settings["NO_COLOR"] == "1") == (found.color == "mono")
    assert settings["TEXTUAL_COLOR_SYSTEM"] == {"16": "standard", "mono": "standard"}.get(found.color, found.color)
    themes: tuple[Theme, ...] = ("dark", "light")
    for chosen in themes:
        assert detect(environ, theme=chosen).light == (chosen == "light")


@given(st.lists(st.lists(st.sampled_from("abcd"), unique=True)))
def test_what_was_opened_last_of_what_is_open_is_closed_first(looks: list[list[str]]) -> None:
    opened, order = grammar.Opened(), list[str]()
    for now in looks:
        opened.note(now)
        order = [name for name in order if name in now] + [name for name in now if name not in order]
    left = set(looks[-1]) if looks else set()
    while order:
        assert opened.close({name: lambda name=name: left.remove(name) for name in left})  # type: ignore[misc]
        order.pop()
        assert left == set(order)
    assert not opened.close({})


KEYS = st.sampled_from((("slash", "/"), ("enter", None), ("a", "a"), ("space", " "), ("down", None)))


@given(st.lists(st.tuples(st.sampled_from("xy"), KEYS)))
def test_keys_typed_ahead_come_once_and_in_their_order(typed: list[tuple[str, tuple[str, str | None]]]) -> None:
    ahead, is_typing = grammar.KeysAhead(), {"x": False, "y": False}
    for page, (name, character) in typed:
        said = ahead.keep(page, name, character)
        mine = [name if not shown or shown == " " else shown for of, (name, shown) in typed if of == page]
        assert said.partition(": ")[2].partition(".")[0] in " ".join(mine)
        is_typing[page] = name == "slash" or (is_typing[page] and name != "enter")
        assert all(ahead.is_typing(each) == is_typing[each] for each in "xy")
    kept = [key for of, key in typed if of == "x"]
    assert ahead.has("x") == bool(kept) and list(ahead.take("x")) == kept
    assert not ahead.has("x") and not ahead.is_typing("x") and list(ahead.take("x")) == []
    assert ahead.forget() == ("y" in dict(typed)) and not ahead.has("y") and not ahead.forget()


def test_the_grammar_knows_each_verb_by_each_of_its_keys() -> None:
    for verb in VERBS:
        assert all(verb in verbs_of(name) for name in verb.typed)
        shown = shown_keys([verb.name])
        assert ", ".join(written(verb)).startswith(shown.partition(",")[0]) and set(written(verb)) <= {
            "1-9",
            *verb.keys,
        }
        assert shown == ("1-9" if verb.name == "pick" else ", ".join(verb.keys) if verb in MOTIONS else verb.key)
    for typed in {name for verb in VERBS for name in verb.typed}:
        assert verbs_of(typed) == [verb for verb in VERBS if typed in map(typed_name, verb.keys)]
    assert verbs_of("no key") == []


@given(st.lists(st.sampled_from((*BY_NAME, "1-5", "wasd"))))
def test_keys_that_are_shown_are_those_of_the_verbs_in_their_order(names: list[str]) -> None:
    rows = [[], []]  # type: list[list[str]]
    for name in names:
        verb = BY_NAME.get(name)
        rows[0].append(verb.key if verb and name != "pick" else "1-9" if verb else name)
        rows[1] += verb.keys[1:2] if verb in MOTIONS and verb else []
    assert shown_keys(names) == ", ".join(" ".join(row) for row in rows if row)


@pytest.mark.parametrize("code", [0, 1])
def test_tmux_takes_the_text_or_says_that_it_does_not(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tmux"
    program.write_text(f'#!/bin/sh\necho "$*" > {tmp_path}/said; /bin/cat >> {tmp_path}/said; exit {code}\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not load_tmux_buffer("größe", {}) and os.listdir(tmp_path) == ["tmux"]
    assert load_tmux_buffer("größe", {"TMUX": "x"}) == (code == 0)
    assert (tmp_path / "said").read_text("utf-8") == "load-buffer -w -\ngröße"
    program.unlink()
    assert not load_tmux_buffer("größe", {"TMUX": "x"})
