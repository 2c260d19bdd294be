"""The user's file: what it may say, how it is refused, and what it does on the screen and headless."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.keys import _character_to_key

from tests.support.app.scene import press, scene, shown
from tests.support.app.stage import check_golden, make_app, ops_tab
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.tui.app.config import MOST_BYTES, parsed_config, read_config
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.cli import main as cli
from tpuprof.tui.cli.commands.config import example
from tpuprof.tui.pages import op_columns
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.terminal.custom import Config, Custom, Keymap, config_path, textual_name
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.terminal.grammar import KEY_NAMES

MOVED = {"s": "e", "e": "s", "?": "f1", "q": "X", "/": "ctrl+f", "j": "J", "r": "I", "W": "N", "N": "W"}
FILE = """theme = "high-contrast"
columns = ["occurrences", "category"]
[keys]
sort = "e"      # and zooming out
edit = "s"
[cache]
size = "1.5 GB"
remote = "off-site"
"""


PROGRAM = Path(__file__).parents[3] / "tui"


def said(text: str) -> Config:
    return parsed_config("/c.toml", text.encode())


def refused(text: str) -> str:
    with pytest.raises(ProfileError) as caught:
        said(text)
    assert caught.value.exit_code == EXIT_USAGE and "tpuprof-tui config" in caught.value.hint
    return caught.value.sentence.removeprefix("The config file /c.toml")


# --- the file


def test_a_file_says_what_holds() -> None:
    config = said(FILE.replace("off-site", "2 TB"))
    assert config.custom == Custom("high-contrast", Keymap({"s": "e", "e": "s"}), ("occurrences", "category"))
    assert config.cache and (config.cache_bytes, config.remote_bytes) == (1_500_000_000, 2_000_000_000_000)
    assert config.settings[:3] == (
        ("theme", "high-contrast"),
        ("keys", "sort e for s, edit s for e"),
        ("columns", "occurrences, category"),
    )
    off = said('cache = { size = "off" }')
    assert not off.cache and off.settings == (("cache.size", "off"),)
    assert said("").settings == () and said("").custom == Custom()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (FILE, ', line 8: cache.remote is "off-site" and should be a size such as "500 MB".'),
        ('[cache]\nsize = "many"', ', line 2: cache.size is "many" and should be a size such as "500 MB", or "off".'),
        ("cache = false", ", line 1: cache is false and should be a table: [cache]."),
        ('# one\nthem = "dark"', ", line 2: there is no them; perhaps theme."),
        ("[zzz]", ", line 1: there is no zzz; there are theme, columns, keys, cache."),
        ("theme = 3", ", line 1: theme is 3 and should be one of auto, dark, light, high-contrast, colour-blind."),
        ('columns = [\n"remat",\n"rematt",\n]', ", line 3: the table of ops has no column rematt; perhaps remat."),
        ('columns = ["remat", "remat"]', ", line 1: the column remat is listed twice."),
        ("columns = []", ", line 1: columns is an empty list and should be a list of names such as flops_utilization."),
        ('[keys]\nsrt = "e"', ", line 2: there is no keys.srt; perhaps sort."),
        ("[keys]\nsort = 3", ', line 2: keys.sort is 3 and should be a key such as "e".'),
        ('[keys]\nsort = "v"', ", line 2: v is the key of view already; move that one too."),
        ('[keys]\nsort = "Q"', ", line 2: sort: Q is a key that can't be changed."),
        ('[keys]\nsort = "ctrl+m"', ", line 2: sort: ctrl+m is the same byte in a terminal as enter."),
        ('keys = { sort = "U", view = "U" }', ", line 1: view and sort can't both have the key U."),
        ('[keys]\nsort = "U"\nzoom_out = "u"', ", line 3: zoom_out and sort are one key, s, and move together."),
        ("a =\n", ", line 1: this is not TOML: "),
        ('theme = "dark"\ntheme = "light"\n', ", line 2: this is not TOML: "),
    ],
)
def test_a_file_that_is_not_understood_is_refused_with_its_line(text: str, sentence: str) -> None:
    assert refused(text).startswith(sentence)


@pytest.mark.parametrize("key", ["", "ee", "é", "ctrl+", "meta+x", "F5"])
def test_what_is_no_key_is_said(key: str) -> None:
    assert "is not a key; keys are a character such as e" in refused(f'[keys]\nsort = "{key}"')


def test_a_hostile_name_is_shown_harmlessly() -> None:
    assert refused('"a\\u001b[2J" = 1').isprintable() and refused('theme = "a\\u001b[2J"').isprintable()
    with pytest.raises(ProfileError, match="line 2: this is not UTF-8"):
        parsed_config("/c", b'# a\n# \xff"')


def test_where_the_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "tpuprof-tui" / "config.toml"
    assert read_config({}) == Config(str(path)) and config_path({"TPUPROF_CONFIG": "/x"}) == "/x"
    path.parent.mkdir()
    path.write_text('theme = "light"')
    assert read_config({}).custom.theme == "light" and read_config({}).is_there
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", "relative")
    assert read_config({}) == Config("")


def test_a_file_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    def sentence(path: Path) -> str:
        with pytest.raises(ProfileError) as caught:
            read_config({"TPUPROF_CONFIG": str(path)})
        return caught.value.sentence

    assert "which does not exist" in sentence(tmp_path / "nothing")
    assert "is not a file" in sentence(tmp_path)
    (tmp_path / "large").write_bytes(b"#" * (MOST_BYTES + 1))
    assert "is larger than 1,000,000 bytes" in sentence(tmp_path / "large")
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in sentence(tmp_path / "pipe")


def test_the_example_says_what_holds_without_it() -> None:
    text = example("/c.toml")
    assert said(text).settings == ()
    lines = [line.removeprefix("# ") if " = " in line or line[2:3] in '] "' else line for line in text.splitlines()]
    config = said("\n".join(lines))
    assert config.custom == Custom(columns=op_columns()) and dict(config.settings).keys() == {
        *("theme", "keys", "columns", "cache.size", "cache.remote")
    }


# --- keys


def test_signs_are_called_as_textual_calls_them() -> None:
    for sign in map(chr, range(ord("!"), 127)):
        assert textual_name(sign) == _character_to_key(sign), sign


def test_keys_are_shown_as_they_were_moved() -> None:
    keys = Keymap({**MOVED, "w": "ctrl+w", "tab": "f3", ",": ";"})
    assert keys.shown("j k, down up") == "J k, down up" and keys.shown("1-5, Tab, [ ]") == "1-5, f3, [ ]"
    assert keys.shown("wasd") == "ctrl+w a e d" and keys.shown(". ,") == ". ;" and keys.shown(",") == ";"
    assert Keymap().shown("j  k") == "j  k"
    assert [keys.meant(key) for key in ("e", "s", "f1", "J", "question_mark", "q", "down")] == [
        *("s", "e", "question_mark", "j", "", "", "down")
    ]


def played(keys: Sequence[str], custom: Custom, width: int = 80, height: int = 24, ascii_only: bool = False) -> str:
    return shown(make_app(options=AppOptions(custom=custom, ascii=ascii_only or None)), keys, width, height)


@pytest.mark.parametrize(("width", "height", "is_ascii"), [(80, 24, False), (120, 40, False), (80, 24, True)])
def test_help_and_footer_name_the_users_keys(width: int, height: int, is_ascii: bool) -> None:
    text = played(["3", "f1"], Custom(keys=Keymap(MOVED)), width, height, is_ascii)
    assert text.isascii() == is_ascii
    check_golden(f"moved-keys-{width}x{height}{'-ascii' if is_ascii else ''}", text)


def test_a_moved_key_does_what_it_did_and_its_old_place_nothing() -> None:
    custom = Custom(keys=Keymap(MOVED))
    assert "─ Help" in played(["f1"], custom) and "─ Help" not in played(["question_mark"], custom)
    assert "─ Commands" in played(["ctrl+p"], custom)
    assert "─ Runs" in played(["R"], custom) and "e order" in played(["R"], custom)
    first = played(["R"], custom)
    assert "Not here: Esc closes this, s works on the page below." in played(["R", "s"], custom)
    rows = [played(["R", key], custom).splitlines()[:-1] for key in ("s", "e")]
    assert rows[0] == first.splitlines()[:-1] != rows[1]
    typed = played(["ctrl+f", "s", "e", "q"], custom)
    assert "/seq" in typed  # what is typed is text


@pytest.mark.parametrize(
    ("page", "keys", "key", "sentence"),
    [
        ("training", ["question_mark", "G"], "W", "the notes ({}) say why"),
        ("training", ["question_mark", "G"], "o", "shows the evidence, {} goes to"),
        ("training", ["R", "c"], "c", "{} on another run compares"),
        ("training", ["enter"], "o", "{} shows "),
        ("timeline", ["space"], "space", "marked; {} again ends the interval"),
        ("timeline", ["space", "greater_than_sign"], "space", "press {} again for the other end"),
        ("timeline", [], "H", "{} shows another"),
    ],
)
def test_sentences_name_the_users_keys(page: str, keys: list[str], key: str, sentence: str) -> None:
    """And built-in ones where nothing is moved; the marks around them are seen by nobody."""
    shown = {new: " ".join(whole(page, keys, key, new).replace("│", " ").split()) for new in (key, "ctrl+e")}
    for new, text in shown.items():
        assert sentence.format(new) in text
        assert "`" not in text
    assert sentence.format(key) not in shown["ctrl+e"]


def whole(page: str, keys: list[str], key: str, new: str) -> str:
    """The frame of a page after some keys, with one of them moved."""
    custom = Custom(keys=Keymap({key: new} if new != key else {}))
    typed = [new if textual_name(key) == one else one for one in keys]
    return played((["4"] if page == "timeline" else []) + typed, custom, 160, 60)


def test_no_sentence_names_a_key_that_may_have_moved() -> None:
    """Built-in keys stand between backticks, where the user's take their place: `Glyphs.keyed`."""
    keys = "|".join(re.escape(key) for key in KEY_NAMES if key.isalpha() and key not in ("a", "A", "B"))
    does = "again|does|shows?|opens?|goes|loads?|reads?|lists?|marks?|quits?|leaves|follow|captures|compares|on another"
    bare = re.compile(
        rf"(?:^|[\s(;:,])(?:{keys}) (?:{does})\b|\((?:{keys})(?: (?:{keys}))?\)|\b[Pp]ress (?:{keys})\b"
        rf"|[;:,] (?:{keys}) [a-z]+s [a-z]|\b(?:and|or|with|in|by) (?:{keys})[.,;:)]"
    )
    assert bare.search("so it is; i shows them") and bare.search("the notes (w) say") and not bare.search("`w` shows")
    for file in PROGRAM.rglob("*.py"):
        if "cli" in file.parts:  # what commands print may be read anywhere
            continue
        tree = ast.parse(file.read_text())
        said_by_nobody = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said_by_nobody:
                assert not bare.search(node.value), f"{file}, line {node.lineno}: {node.value}"


@pytest.mark.parametrize(("key", "stays"), [("q", True), ("X", False), ("Q", False), ("ctrl+c", False)])
async def test_the_moved_key_of_leaving_leaves(key: str, stays: bool) -> None:
    async with scene(make_app(options=AppOptions(custom=Custom(keys=Keymap({"q": "X"}))))) as (app, pilot):
        await pilot.press(key)
        await pilot.pause()
        assert app.is_running == stays


# --- columns and themes


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_the_table_of_ops_has_the_users_columns(width: int, height: int) -> None:
    custom = Custom(columns=("occurrences", "bound_by", "average_self_time_ps"))
    check_golden(f"chosen-columns-{width}x{height}", played(["3", "v", "s"], custom, width, height))


def test_the_columns_are_fields_that_have_a_place_on_the_screen() -> None:
    assert all(HLO_OPS.by_key[name].screen is not None for name in op_columns())
    assert not set(op_columns()) & {"class", "self_time_percent", "self_time_bar", "name"}


async def test_a_theme_stays_while_its_background_is_swapped() -> None:
    async with scene(make_app(options=AppOptions(custom=Custom("colour-blind")))) as (app, pilot):
        for key, is_light in (("T", True), ("T", False), ("3", False)):
            await press(pilot, key)
            palette = ops_tab(app).look.palette
            assert (palette.theme, palette.light) == ("colour-blind", is_light)
    themes = {theme: detect({"COLORFGBG": "0;15"}, custom=Custom(theme)).light for theme in ("dark", "light", "auto")}
    assert themes == {"dark": False, "light": True, "auto": True}


# --- the command line


def test_a_broken_file_stops_a_report_and_nothing_is_half_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    path = tmp_path / "c.toml"
    path.write_text('theme = "dark"\n[keys]\nsort = "v"\n')
    monkeypatch.setenv("TPUPROF_CONFIG", str(path))
    out, err = call("report", "overview", "demo", code=EXIT_USAGE)
    assert not out and f"{path}, line 3: v is the key of view already" in err
    assert "line 3: v is the key of view already" in " ".join(call("doctor", code=EXIT_USAGE).out.split())
    assert cli.main(["--version"]) == EXIT_OK  # has nothing to do with it


def test_the_cache_is_as_the_file_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int | None] = []

    class Noted(HostCache):
        def __init__(self, bound: int | None = None) -> None:
            made.append(bound)
            super().__init__(bound=bound)

    monkeypatch.setattr("tpuprof.parsers.session.opening.HostCache", Noted)
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "1")  # so that it goes at the end of the test
    monkeypatch.delenv("TPUPROF_CACHE_BYTES")
    monkeypatch.setenv("TPUPROF_CONFIG", str(tmp_path / "c.toml"))
    for text in ('cache.size = "2 MB"\ncache.remote = "3 GB"', 'cache.size = "off"'):
        (tmp_path / "c.toml").write_text(text)
        assert cli.main(["report", "ops", "demo", "--format", "json", "--output", str(tmp_path / "out")]) == EXIT_OK
    assert made == [2_000_000] and os.environ["TPUPROF_CACHE_BYTES"] == "3000000000"
    assert json.loads((tmp_path / "out").read_text())["ops"]


def test_the_app_gets_what_the_file_sets_and_the_option_goes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[AppOptions] = []

    def run_app(path: str, options: AppOptions) -> int:
        got.append(options)
        return EXIT_OK

    monkeypatch.setattr("tpuprof.tui.app.start.run_app", run_app)
    monkeypatch.setattr("tpuprof.tui.cli.common.why_no_screen", lambda: "")
    (tmp_path / "c.toml").write_text('theme = "light"\ncolumns = ["remat"]\n[keys]\nsort = "U"\n[cache]\nsize = "off"')
    monkeypatch.setenv("TPUPROF_CONFIG", str(tmp_path / "c.toml"))
    keys, columns = Keymap({"s": "U"}), ("remat",)
    assert cli.main(["demo"]) == cli.main(["demo", "--theme", "high-contrast"]) == EXIT_OK
    assert [options.custom for options in got] == [
        Custom("light", keys, columns),
        Custom("high-contrast", keys, columns),
    ]
    assert not got[0].cache
