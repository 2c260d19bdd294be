"""The skill: each of its commands runs, its tables are whole, and it leaves files of others alone."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.files.kernels import traced_kernels
from tests.support.files.pprof import written
from tests.support.made.oom import MESSAGE
from tests.tui.cli.calls import Call, content
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE
from tpuprof.tui.cli.commands.agents.skill import MAIN, is_ours, signed, skill
from tpuprof.tui.demo import demo_path
from tpuprof.tui.report.page import FORMATS

QUESTIONS = dict(re.findall(r"^\| (.+?) \| `(.+)` \|$", skill().partition("|---|")[2], re.MULTILINE))
OF_REFERENCE = ("report PAGE --describe", "query --schema", "COMMAND --help")
MOST_ANSWER = 4_000
"""Bytes of an answer to a question of the skill."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What stands for the words that the skill leaves to the reader."""
    folder = tmp_path_factory.mktemp("skill")
    for run in ("BEFORE", "AFTER"):
        (folder / run).mkdir()
        shutil.copy(demo_path(), folder / run / "host0.xplane.pb.gz")
    (folder / "train.log").write_text(MESSAGE)
    (folder / "kernels.xplane.pb").write_bytes(traced_kernels())
    named = {"PATH": "demo", "OP": "fusion.397", "LOG": str(folder / "train.log"), "ADDRESS": "localhost:1"}
    named |= {"ARRAYS": str(written(folder)), "KERNELS": str(folder / "kernels.xplane.pb")}
    named |= {run: str(folder / run) for run in ("BEFORE", "AFTER")}
    return named | {"COMMAND": "report", "PAGE": "overview"}


@pytest.mark.parametrize("command", [*QUESTIONS.values(), *OF_REFERENCE])
def test_each_command_answers(
    command: str, places: dict[str, str], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if {"kernels", "counters"} & {*command.split()}:  # the demo has neither
        places = places | {"PATH": places["KERNELS"]}
    words = [places.get(word, word) for word in shlex.split(command)]
    if words[0] == "watch":  # no server is there
        assert "No profiler server" in call(*words, "--once", code=EXIT_CAPTURE_FAILED).err
        return
    out = call(*words, code=EXIT_REGRESSION if words[0] == "verify" else EXIT_OK).out
    out = Path("run.html").read_text("utf-8") if "run.html" in words else out
    assert out.strip() and f"`{command}`" in skill()
    assert words[-1] == "run.html" or command in OF_REFERENCE or len(out.encode()) <= MOST_ANSWER


def test_it_has_the_form_that_agents_load() -> None:
    head, name, *_ = skill().splitlines()
    description = re.search(r"\ndescription: >-\n  (.*)\n---\n", skill())
    assert head == "---" and name == "name: tpuprof-tui"
    assert description is not None and len(description[1]) <= 1024 and len(signed(skill()).encode()) <= 5120
    assert all(f"`{form}`" in skill() for form in FORMATS if form not in ("text", "json"))


def test_it_is_written_whole_and_again(tmp_path: Path, call: Call) -> None:
    call("skill", tmp_path / "skills")
    first = content(tmp_path)
    (path, data), *others = first.items()
    assert path == str(tmp_path / "skills" / "tpuprof-tui" / MAIN) and not others
    assert is_ours(data.decode()) and data.decode().startswith(call("skill").out)
    call("skill", tmp_path / "skills")
    assert content(tmp_path) == first, "and nothing besides"


@pytest.mark.parametrize("change", [lambda text: text + "mine\n", lambda text: text.replace("n/a", "0"), lambda _: ""])
def test_a_file_that_somebody_changed_stays(change: object, tmp_path: Path, call: Call) -> None:
    assert callable(change)
    file = tmp_path / "tpuprof-tui" / MAIN
    file.parent.mkdir()
    file.write_text(change("- n/a\n\n<!-- written by tpuprof-tui skill, sha256 " + "0" * 64 + " -->\n"))
    before = content(tmp_path)
    sentence, _ = call.error(EXIT_USAGE, "skill", tmp_path)
    assert "left unchanged" in sentence and content(tmp_path) == before, "and no other file is written"


def test_a_link_to_another_file_is_not_followed(tmp_path: Path, call: Call) -> None:
    call("skill", tmp_path / "a")
    main = tmp_path / "a" / "tpuprof-tui" / MAIN
    elsewhere = tmp_path / "elsewhere.md"
    main.rename(elsewhere)
    main.symlink_to(elsewhere)
    sentence, _ = call.error(EXIT_USAGE, "skill", tmp_path / "a")
    assert "left unchanged" in sentence and main.is_symlink()


def test_it_is_not_written_among_profiles_or_below_a_file(tmp_path: Path, call: Call) -> None:
    run = tmp_path / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    assert "folder of profiles" in call.error(EXIT_USAGE, "skill", run / "new")[0]
    (tmp_path / "file").write_text("mine")
    assert "not a folder" in call.error(EXIT_USAGE, "skill", tmp_path / "file")[0]
    assert content(tmp_path) == {str(tmp_path / "file"): b"mine"} and not (run / "new").exists()
