"""A gate in continuous integration: the README's recipe, exit codes, JUnit's file, the summary, baselines."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.insight.simulator.scene import play
from tests.insight.simulator.space import spaces
from tests.support.build import write_run
from tests.tui.cli.calls import Call
from tests.tui.cli.commands.test_verify import SCENES
from tests.tui.readme.commands import read
from tests.tui.readme.test_commands import environment
from tests.tui.readme.world import make_programs
from tpuprof.parsers.base import errors
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_REGRESSION, EXIT_USAGE
from tpuprof.parsers.base.folders import cache_folder
from tpuprof.tui.cli import printing

NAMES = {"2026_11_18": "exposed", "2026_11_19": "hidden", "2026_11_20": "slow-core"}


@pytest.fixture(name="home", scope="module")
def made_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    make_programs(home / "bin")
    for run, name in NAMES.items():
        hosts = {f"host{n}": space for n, space in enumerate(spaces(SCENES[name], play(SCENES[name])))}
        write_run(home / "logs", f"{run}_03_00_00", **hosts)
    return home


def test_the_recipe_of_the_readme(home: Path) -> None:
    """It passes with a run that keeps its promise, and ends at the first check that a slower one fails."""
    environ, later = {**environment(home), "GITHUB_STEP_SUMMARY": str(home / "summary.md")}, home / "later"

    def gate(command: str) -> subprocess.CompletedProcess[str]:
        words = ["bash", "-c", command]
        return subprocess.run(words, cwd=home, env=environ, capture_output=True, text=True, check=False)

    newest = shutil.move(home / "logs" / "plugins" / "profile" / "2026_11_20_03_00_00", later)
    assert gate("tpuprof-tui baseline set main logs --run 2026_11_18").returncode == 0
    passed = gate(read().block("bash"))
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "::notice title=verify%3A promise::collective promised" in passed.stdout and "::error" not in passed.stdout
    assert "profile/2026_11_19_03_00_00" in passed.stdout, "the run that passed is the next baseline"
    shutil.copytree(newest, home / "logs" / "plugins" / "profile" / "2026_11_20_03_00_00")
    failed = gate(read().block("bash"))
    assert failed.returncode == EXIT_REGRESSION and "verify" not in failed.stdout
    assert "\n::error title=diff%3A step::The typical step takes" in failed.stdout
    summary = (home / "summary.md").read_text()
    assert summary.index("Faster") < summary.index("Kept: ") < summary.index("Slower")


GATES = """
6 diff hidden slow-core --fail-on-regression 5%
0 diff hidden slow-core
6 verify exposed slow-core
4 verify hidden slow-core
6 trend logs --fail-on-regression 5%
0 trend logs --fail-on-regression 50%
6 report findings demo --fail-on >5%
0 report findings demo --fail-on kind=slow-core
"""


@pytest.mark.parametrize("gate", GATES.strip().splitlines())
def test_a_failure_in_junit_is_exit_code_6(gate: str, home: Path, call: Call) -> None:
    places = {name: home / "logs" / "plugins" / "profile" / f"{run}_03_00_00" for run, name in NAMES.items()}
    code, *words = ({"logs": home / "logs", **places}.get(word, word) for word in gate.split())
    suite = ElementTree.fromstring(call(*words, "--format", "junit", code=int(str(code))).out)[0]
    assert (suite.attrib["failures"] != "0", suite.attrib["skipped"] != "0") == (code == "6", code == "4")


REQUIRED = """
0 overview --require mfu>30% |
6 overview --require mfu>40% --require device_idle<50% | failed: mfu_percent>40%: It is 37.4
0 overview --require !mfu>40% --require performance.step_time_ms.median<0.25s |
4 overview --require performance.eager_percent.host<1 | host is unknown: only TensorFlow's events say
2 overview --require mfi>40% | --require: there is no column mfi.
2 model --require mfu>40GB | mfu_percent is not in GB.
2 model --require mfu | --require: each term compares a figure
6 findings --fail-on >10% | failed: collective:
0 findings --fail-on <1ms |
2 findings --fail-on worth>5% | worth_ms is not in %
"""


@pytest.mark.parametrize("line", REQUIRED.strip().splitlines())
def test_what_a_call_requires_and_forbids(line: str, call: Call) -> None:
    words, said = line.split(" |")
    code, page, *options = words.split()
    printed = call("report", page, "demo", *options, code=int(code))
    assert said.strip() in " ".join(printed.err.split()) and bool(printed.err) == bool(said)
    assert bool(printed.out) == (code != "2")


def test_the_summary_of_a_step_is_bounded(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.setattr(printing, "MOST_SUMMARY", 1500)
    for form in ("github", "junit", "github"):
        call("report", "findings", "demo", "--format", form)
    text = (tmp_path / "summary.md").read_text()
    assert 1000 < len(text.encode()) <= 1500 and text.count("# Findings") == 1 and "--format md" in text


def test_baselines_are_of_their_logdir_and_leave_it_alone(home: Path, tmp_path: Path, call: Call) -> None:
    logs, other = (shutil.copytree(home / "logs", tmp_path / name) for name in ("logs", "other"))
    before = sorted(tmp_path.rglob("*"))
    old, new = (next(logs.rglob(f"{run}_*")) for run in ("2026_11_18", "2026_11_19"))
    assert call("baseline", "set", "main", old).out == f"main  {old}\n"
    call("baseline", "set", "main", logs, "--run", "2026_11_19")
    both = f"later  {old / 'host0.xplane.pb'}\nmain  {new}\n"
    assert call("baseline", "set", "later", old / "host0.xplane.pb").out == both
    assert call("baseline", "list", old).out == both and not call("baseline", "list", other).out
    assert call.json("diff", "--baseline", "main", logs, "--json")["before"]["name"] == "2026_11_19_03_00_00"
    assert call.error(EXIT_NOT_FOUND, "diff", "--baseline", "mian", logs, "--json")[1] == "try: one of: main"
    call.error(EXIT_NOT_FOUND, "verify", "--baseline", "main", other)
    call.error(EXIT_USAGE, "diff", "--baseline", "main", logs, other)
    assert sorted(tmp_path.rglob("*")) == before
    shutil.rmtree(new)
    assert str(new) in call.error(EXIT_NOT_FOUND, "diff", "--baseline", "main", logs, "--json")[0]
    assert call("baseline", "remove", "main", logs).out == both.splitlines(keepends=True)[0]
    next(Path(cache_folder(), "baselines").iterdir()).write_text("[3]")
    assert call("baseline", "list", logs).out == ""


def test_the_readme_has_one_table_of_exit_codes() -> None:
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")} | {1}
    table = re.findall(r"^\| (\d+|128 and the signal's number) \|", read().text, re.MULTILINE)
    assert {int(code) for code in table if code.isdigit()} | {errors.EXIT_INTERRUPTED} == codes
