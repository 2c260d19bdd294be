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
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_REGRESSION, EXIT_UNREADABLE, EXIT_USAGE
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
    environ, logs = environment(home), home / "logs" / "plugins" / "profile"
    environ["GITHUB_STEP_SUMMARY"] = str(home / "summary.md")

    def gate(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], cwd=home, env=environ, capture_output=True, text=True, check=False
        )

    gone = logs / "2026_11_20_03_00_00"
    shutil.move(gone, home / "later")
    assert gate("tpuprof-tui baseline set main logs --run 2026_11_18").returncode == 0
    passed = gate(read().block("bash"))
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "::notice title=verify%3A promise::collective promised" in passed.stdout and "::error" not in passed.stdout
    assert "main  2026_11_19_03_00_00" in passed.stdout, "the run that passed is the next baseline"
    shutil.move(home / "later", gone)
    failed = gate(read().block("bash"))
    assert failed.returncode == EXIT_REGRESSION and "verify" not in failed.stdout
    assert re.search(r"^::error file=model.py,line=\d+,title=diff%3A all-reduce", failed.stdout, re.MULTILINE)
    suite = ElementTree.parse(home / "diff.xml").getroot()[0]
    assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure")) > 2
    summary = (home / "summary.md").read_text()
    assert summary.index("Faster") < summary.index("Kept: ") < summary.index("Slower")


def test_a_failure_in_junit_is_exit_code_6(home: Path, call: Call) -> None:
    """With whatever command, and whatever way a run went."""
    runs = {name: home / "logs" / "plugins" / "profile" / f"{run}_03_00_00" for run, name in NAMES.items()}
    worse, better = (runs["hidden"], runs["slow-core"]), (runs["exposed"], runs["hidden"])
    allowed = "--fail-on-regression"
    for code, words in (
        (EXIT_REGRESSION, ("diff", *worse, allowed, "5%")),
        (EXIT_OK, ("diff", *worse, allowed, "50%")),
        (EXIT_OK, ("diff", *better, allowed, "0%")),
        (EXIT_REGRESSION, ("verify", runs["exposed"], runs["slow-core"])),
        (EXIT_OK, ("verify", *better)),
        (EXIT_UNREADABLE, ("verify", *worse)),
        (EXIT_REGRESSION, ("trend", home / "logs", allowed, "5%")),
        (EXIT_OK, ("trend", home / "logs", allowed, "50%")),
    ):
        suite = ElementTree.fromstring(call(*words, "--format", "junit", code=code).out)[0]
        assert (suite.attrib["failures"] != "0") == (code == EXIT_REGRESSION), words
        assert (suite.attrib["tests"], suite.attrib["skipped"]) == ("1", "1") or code != EXIT_UNREADABLE


def test_the_summary_of_a_step_is_bounded_and_never_a_profile(
    home: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setattr(printing, "MOST_SUMMARY", 1500)
    for _ in range(3):
        call("report", "findings", "demo", "--format", "github")
        call("report", "findings", "demo", "--format", "junit")
    assert 1000 < summary.stat().st_size <= 1500 and summary.read_text().endswith("GitHub shows 1 MiB of a step.\n")
    profile = next((home / "logs").rglob("*.pb"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(profile))
    assert (
        "a report never overwrites it"
        in call.error(EXIT_USAGE, "report", "trend", home / "logs", "--format", "github")[0]
    )


def test_baselines_are_of_their_logdir_and_leave_it_alone(home: Path, tmp_path: Path, call: Call) -> None:
    logs, other = tmp_path / "logs", tmp_path / "other"
    for folder in (logs, other):
        shutil.copytree(home / "logs", folder)
    before = sorted(tmp_path.rglob("*"))
    old, new = (next(logs.rglob(f"{run}_*")) for run in ("2026_11_18", "2026_11_20"))
    assert call("baseline", "set", "main", old).out == f"main  {old.name}  {old}\n"
    call("baseline", "set", "main", logs, "--run", "2026_11_19")
    later = f"later  {new.name}  {new / 'host0.xplane.pb'}\n"
    main = f"main  2026_11_19_03_00_00  {logs}\n"
    assert call("baseline", "set", "later", new / "host0.xplane.pb").out == later + main
    assert call("baseline", "list", old).out == later + main and not call("baseline", "list", other).out
    assert call.json("diff", "--baseline", "main", logs, "--json")["before"]["name"] == "2026_11_19_03_00_00"
    assert call.error(EXIT_NOT_FOUND, "diff", "--baseline", "mian", logs, "--json")[1] == "try: one of: main"
    call.error(EXIT_NOT_FOUND, "verify", "--baseline", "main", other)
    call.error(EXIT_USAGE, "diff", "--baseline", "main", logs, other)
    call.error(EXIT_USAGE, "baseline", "set", "../x", logs)
    assert sorted(tmp_path.rglob("*")) == before
    shutil.rmtree(next(logs.rglob("2026_11_19_*")))
    sentence, _ = call.error(EXIT_NOT_FOUND, "diff", "--baseline", "main", logs, "--json")
    assert sentence == f"The run of the baseline main is gone: 2026_11_19_03_00_00 of {logs}."
    assert call("baseline", "remove", "main", logs).out == later
    (kept,) = Path(cache_folder(), "baselines").iterdir()
    kept.write_text('{"main": 3}')
    assert call("baseline", "list", logs).out == ""


def test_the_readme_has_one_table_of_exit_codes() -> None:
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")} | {1}
    table = re.findall(r"^\| (\d+|128 and the signal's number) \|", read().text, re.MULTILINE)
    assert {int(code) for code in table if code.isdigit()} | {errors.EXIT_INTERRUPTED} == codes
