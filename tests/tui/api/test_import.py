"""What `import tpuprof` loads, what it offers, and that its examples are true."""

from __future__ import annotations

import doctest
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tpuprof
from tests.support.imports import ROOT
from tests.tui.readme.commands import read
from tpuprof.tui.cli.main import main

LOADED = """
import json, sys
{statement}
print(json.dumps(sorted(sys.modules)))
"""
SCREEN = {"textual", "rich", "grpc"}


def loaded(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOADED.format(statement=statement)], capture_output=True, check=True
    )
    return set(json.loads(done.stdout))


def test_the_import_loads_nothing_else() -> None:
    modules = loaded("import tpuprof")
    assert [name for name in modules if name.startswith("tpuprof")] == ["tpuprof"]
    assert not modules & {*SCREEN, "numpy", "google.protobuf"}


def test_figures_of_a_profile_load_no_screen() -> None:
    modules = loaded(
        "import tpuprof; profile = tpuprof.open('demo', cache=False); profile.table('ops'); profile.findings()"
    )
    assert not modules & {*SCREEN, "pandas", "polars", "pyarrow", "duckdb"} and "numpy" in modules


def test_stable_names_are_all_there() -> None:
    assert {*tpuprof.__all__} <= {*dir(tpuprof)} and all(getattr(tpuprof, name) for name in tpuprof.__all__)
    changes = (ROOT / ".github" / "CHANGELOG.md").read_text("utf-8")
    assert all(f"`{name}`" in changes for name in tpuprof.__all__)
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        getattr(tpuprof, "opne")  # noqa: B009 - which mypy would refuse
    assert Path(tpuprof.__file__ or "").with_name("py.typed").exists()


@pytest.mark.parametrize("name", ["tpuprof", "tpuprof.tui.api.profile", "tpuprof.tui.api.calls"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed


def test_the_section_of_the_readme_is_true() -> None:
    """Its blocks that show a session of Python run as one."""
    text = "\n".join(block for language, block in read().blocks if language == "pycon")
    found = doctest.DocTestRunner()
    found.run(doctest.DocTestParser().get_doctest(text, {}, "README", "README.md", 0))
    assert found.tries >= 10 and not found.failures


def test_what_the_readme_does_with_csv_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "ops", "demo", "--format", "csv", "--output", "ops.csv"]) == 0
    lines = read().block("py").splitlines()
    packages = {name: importlib.import_module(name) for name in ("pandas", "polars", "duckdb")}
    longest = tpuprof.open("demo").table("ops", sort="self_time_ps", limit=5)["name"].tolist()
    assert len(lines) == 3
    for line in lines:
        made = eval(line, packages)
        names = [row[0] for row in made.fetchall()] if hasattr(made, "fetchall") else list(made["name"])
        assert sorted(names) == sorted(longest), line
