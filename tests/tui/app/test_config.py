"""The user's file: what it may say, how it is refused, and what it does on the screen and headless."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

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
from tpuprof.tui.terminal.custom import Config, Custom, config_path
from tpuprof.tui.terminal.detect import detect

FILE = """theme = "high-contrast"
columns = ["occurrences", "category"]
[cache]
size = "1.5 GB"
remote = "off-site"
"""


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
    assert config.custom == Custom("high-contrast", ("occurrences", "category"))
    assert config.cache and (config.cache_bytes, config.remote_bytes) == (1_500_000_000, 2_000_000_000_000)
    assert config.settings[:2] == (("theme", "high-contrast"), ("columns", "occurrences, category"))
    off = said('cache = { size = "off" }')
    assert not off.cache and off.settings == (("cache.size", "off"),)
    assert said("").settings == () and said("").custom == Custom()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (FILE, ', line 5: cache.remote is "off-site" and should be a size such as "500 MB".'),
        ('[cache]\nsize = "many"', ', line 2: cache.size is "many" and should be a size such as "500 MB", or "off".'),
        ("cache = false", ", line 1: cache is false and should be a table: [cache]."),
        ('# one\nthem = "dark"', ", line 2: there is no them; perhaps theme."),
        ("[zzz]", ", line 1: there is no zzz; there are theme, columns, cache."),
        ("theme = 3", ", line 1: theme is 3 and should be one of auto, dark, light, high-contrast, colour-blind."),
        ('columns = [\n"remat",\n"rematt",\n]', ", line 3: the table of ops has no column rematt; perhaps remat."),
        ('columns = ["remat", "remat"]', ", line 1: the column remat is listed twice."),
        ("columns = []", ", line 1: columns is an empty list and should be a list of names such as flops_utilization."),
        ("a =\n", ", line 1: this is not TOML: "),
        ('theme = "dark"\ntheme = "light"\n', ", line 2: this is not TOML: "),
    ],
)
def test_a_file_that_is_not_understood_is_refused_with_its_line(text: str, sentence: str) -> None:
    assert refused(text).startswith(sentence)


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
        *("theme", "columns", "cache.size", "cache.remote")
    }


# --- columns and themes


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_the_table_of_ops_has_the_users_columns(width: int, height: int) -> None:
    custom = Custom(columns=("occurrences", "bound_by", "average_self_time_ps"))
    app = make_app(options=AppOptions(custom=custom))
    check_golden(f"chosen-columns-{width}x{height}", shown(app, ["3", "v", "s"], width, height))


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
    path.write_text('theme = "dark"\n[keys]\nsort = "e"\n')
    monkeypatch.setenv("TPUPROF_CONFIG", str(path))
    out, err = call("report", "overview", "demo", code=EXIT_USAGE)
    sentence = "line 2: there is no keys; there are theme, columns, cache."
    assert not out and f"{path}, {sentence}" in err
    assert sentence in " ".join(call("doctor", code=EXIT_USAGE).out.split())
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
    (tmp_path / "c.toml").write_text('theme = "light"\ncolumns = ["remat"]\n[cache]\nsize = "off"')
    monkeypatch.setenv("TPUPROF_CONFIG", str(tmp_path / "c.toml"))
    assert cli.main(["demo"]) == cli.main(["demo", "--theme", "high-contrast"]) == EXIT_OK
    assert [options.custom for options in got] == [Custom("light", ("remat",)), Custom("high-contrast", ("remat",))]
    assert not got[0].cache
