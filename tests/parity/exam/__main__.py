"""Puts the forty questions to the program, and to XProf where its interpreter is named.

It prints a table in Markdown. With `--xprof` it also writes what came of both to `data/scores.json`, of which the table
in tests/parity/README.md is made: `--xprof PYTHON --readme` runs the exam and writes that table, `--readme` alone
writes it of the last run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.processes import write_readme
from tests.parity.exam import table
from tests.parity.exam.answers import ours, xprof
from tests.parity.exam.ask import by_program
from tests.parity.exam.profiles import make
from tests.parity.exam.questions.all import QUESTIONS
from tests.parity.exam.run import Score, exam

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- exam: begin -->", "<!-- exam: end -->"
OURS = [sys.executable, "-c", "import sys; from tpuprof.tui.cli.main import main; sys.exit(main())"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Puts forty questions of ten profiles to the program, and to XProf.")
    parser.add_argument("--xprof", type=Path, metavar="PYTHON", help="interpreter with XProf, to ask it too")
    parser.add_argument("--readme", action="store_true", help="write the table of README.md, of this run or the last")
    given = parser.parse_args()
    if given.readme and given.xprof is None:
        write_readme(README, BEGIN, END, table.short(Score.read()))
        return
    with tempfile.TemporaryDirectory() as folder:
        made = make(Path(folder))
        programs = {"tpuprof-tui": by_program(OURS, made)}
        if given.xprof is not None:
            programs["XProf"] = by_program([str(given.xprof.parent / "xprof")], made)
        score = Score(
            {name: exam(QUESTIONS, _ANSWERS[name], made, run) for name, run in programs.items()},
            "" if given.xprof is None else _version(given.xprof),
        )
    print(table.whole(QUESTIONS, score))
    if given.xprof is not None:
        score.write()
    if given.readme:
        write_readme(README, BEGIN, END, table.short(score))


_ANSWERS = {"tpuprof-tui": ours.ANSWERS, "XProf": xprof.ANSWERS}


def _version(python: Path) -> str:
    """XProf's version."""
    text = "import importlib.metadata as m, json; print(json.dumps(m.version('xprof')))"
    done = subprocess.run([str(python), "-c", text], capture_output=True, check=True)
    return str(json.loads(done.stdout))


main()
