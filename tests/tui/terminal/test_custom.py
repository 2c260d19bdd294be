"""What users set: what each variable may say, how it is refused, and what it does on the screen and headless."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.cli import main as cli
from tpuprof.tui.terminal.detect import Config, read_config

# --- the variables


def test_a_variable_says_what_holds() -> None:
    said = {"TPUPROF_THEME": "high-contrast", "TPUPROF_CACHE": "1.5 GB"}
    assert read_config(said) == Config("high-contrast", True, 1_500_000_000)
    assert read_config({**said, "TPUPROF_THEME": "pink"}, "dark").theme == "dark"
    assert not read_config({"TPUPROF_CACHE": "off"}).cache
    assert read_config({}) == read_config(dict.fromkeys(said, " ")) == Config()


@pytest.mark.parametrize(
    ("name", "value", "sentence", "hint"),
    [
        ("THEME", "pink", "is pink and should be one of auto, dark, light, high-contrast, colour-blind.", "=auto is"),
        ("CACHE", "many", "is many and should be a size such as 500 MB, or off.", "='1 GB' is the default"),
        ("CACHE", "0 GB", "is 0 GB and should be a size such as 500 MB, or off.", "='1 GB' is the default"),
    ],
)
def test_a_value_that_is_not_understood_is_refused(name: str, value: str, sentence: str, hint: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read_config({f"TPUPROF_{name}": value})
    assert (caught.value.sentence, caught.value.exit_code) == (f"TPUPROF_{name} {sentence}", EXIT_USAGE)
    assert hint in caught.value.hint


def test_a_wrong_value_stops_a_report_before_anything_is_read(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setenv("TPUPROF_CACHE", "many")
    out, err = call("report", "overview", "demo", code=EXIT_USAGE)
    assert not out and "TPUPROF_CACHE is many and should be a size" in err
    assert cli.main(["--version"]) == EXIT_OK  # has nothing to do with it


def test_the_cache_is_as_the_variable_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int | None] = []

    class Noted(HostCache):
        def __init__(self, bound: int | None = None) -> None:
            made.append(bound)
            super().__init__(bound=bound)

    monkeypatch.setattr("tpuprof.parsers.session.opening.HostCache", Noted)
    for text in ("2 MB", "off"):
        monkeypatch.setenv("TPUPROF_CACHE", text)
        assert cli.main(["report", "ops", "demo", "--format", "json", "--output", str(tmp_path / "out")]) == EXIT_OK
    assert made == [2_000_000] and json.loads((tmp_path / "out").read_text())["ops"]


def test_the_app_gets_what_the_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[AppOptions] = []

    def run_app(path: str, options: AppOptions) -> int:
        got.append(options)
        return EXIT_OK

    monkeypatch.setattr("tpuprof.tui.app.start.run_app", run_app)
    monkeypatch.setattr("tpuprof.tui.cli.common.why_no_screen", lambda: "")
    for name, text in (("THEME", "light"), ("CACHE", "off")):
        monkeypatch.setenv(f"TPUPROF_{name}", text)
    assert cli.main(["demo"]) == cli.main(["demo", "--theme", "high-contrast"]) == EXIT_OK
    assert [options.theme for options in got] == ["light", "high-contrast"]
    assert not got[0].cache
