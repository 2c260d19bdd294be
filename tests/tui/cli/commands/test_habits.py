"""Words of other programs are taken or lead on; words before and behind paths; completion, standard input, colours."""

from __future__ import annotations

import io
import os
import shlex
import sys
import tempfile
from pathlib import Path

import pytest

from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_USAGE
from tpuprof.tui.cli import habits
from tpuprof.tui.cli.arguments.pages import about, examples
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages import PAGE_NAMES

TWO_OPS = "report ops demo --limit 2"
SAME = {
    "ls demo": "report runs demo",
    "ops demo -n 2": TWO_OPS,
    "demo ops --top 2": TWO_OPS,
    "get ops demo --head=2": TWO_OPS,
    "report --limit 2 ops demo": TWO_OPS,
    "report --top=2 --logdir demo ops": TWO_OPS,
    "report hlo_stats demo --limit 2": TWO_OPS,
    "get_top_hlo_ops demo --limit 2": TWO_OPS,
    "list_xplane_events demo": "report timeline demo",
    "report layers demo": "report model --by layer demo",
    "report demo ops -o csv --limit 2": f"{TWO_OPS} --format csv",
    "report ops --session_id=demo --device TPU:1": "report ops demo --core 1",
    "describe op fusion.390 demo": "report op demo --op fusion.390",
    "report timeline demo --start_time_ps=1000000000 --to 2.5ms": "report timeline demo --from 1 --to 0.0025s",
    "report op demo fusion.390": "report op demo --op fusion.390",
    "report ops demo -n 2 --fields name --json": "report ops demo --limit 2 --columns name --json",
    "help report ops": "report ops --help",
    "tensorboard --logdir demo": "demo",
    "help": "--help",
    "help exit-codes": "man exit-codes",
    "grep all-reduce demo": "report ops demo --filter all-reduce",
    "report graph_viewer demo --node fusion.390": "report graph demo --op fusion.390",
    "report ops demo -2 -csv": f"{TWO_OPS} --format csv",
    "memory demo --json -n 2": "report memory demo --json --limit 2",
    "-V": "--version",
    "--json report runs demo --no-color": "report runs demo --json --color never",
    "report ops demo --core demo:TPU:1 --limit 2 --format markdown": "report ops demo --core 1 --limit 2 --md",
    "timeline demo 1ms 2.5ms": "report timeline demo --from 1 --to 2.5",
    "report ledger demo --step 100..102": "report ledger demo --step 100-102",
}
LEADS_ON = {
    "report bandwidth demo": "tpuprof-tui report roofline demo",
    "report stalls demo": "tpuprof-tui report findings demo",
    "report demo": "tpuprof-tui report overview demo",
    "report ops demo --percentile 99": "tpuprof-tui report inference demo",
    "diff demo demo --run-a x": "tpuprof-tui diff demo demo --before x",
    "report ops demo -k all-reduce": "tpuprof-tui report ops demo --filter all-reduce",
    "report ops demo --limit ten --xyzzy 3": "tpuprof-tui report ops demo",
    "blame demo --help": "tpuprof-tui report sources demo --help",
    "-k run get ops demo": "tpuprof-tui report ops demo",
    "dev upload demo": "tpuprof-tui share demo",
    "server --logdir demo --port 1": "ssh -t HOST tpuprof-tui demo",
    "diff demo demo --threshold 5%": "tpuprof-tui diff demo demo --fail-on-regression 5%",
    "report ops demo --step": "tpuprof-tui report ops --help",
    "perf report -i demo": "tpuprof-tui report overview demo",
    "mem report -i demo": "tpuprof-tui report memory demo",
    "session list demo": "tpuprof-tui report runs demo",
    "report setps demo": "tpuprof-tui report ledger --by step demo",
    "sched latency -i demo": "tpuprof-tui report inference demo",
    "man key": "tpuprof-tui man keys",
    "logs -f demo --tail=100": "tpuprof-tui oom demo",
    "diff demo...demo --name-only": "tpuprof-tui diff demo demo",
}


@pytest.mark.parametrize(("typed", "meant"), SAME.items())
def test_a_word_with_one_meaning_is_taken(typed: str, meant: str, call: Call) -> None:
    assert call(*typed.split()).out == call(*meant.split()).out


@pytest.mark.parametrize(("typed", "hint"), LEADS_ON.items())
def test_another_leads_on(typed: str, hint: str, call: Call) -> None:
    assert call.error(EXIT_USAGE, *typed.split())[1] == f"try: {hint}"


def test_words_of_habit_lead_to_pages_that_are_there() -> None:
    near = {here for word, here in habits._NEAR.items() if not word.startswith("-")}
    pages = {*habits._PAGES.values(), *near}
    assert {page.split()[0] for page in pages} <= {*PAGE_NAMES, *COMMANDS}
    assert not {*habits._PAGES, *habits._NEAR} & {*PAGE_NAMES}
    assert all(map(about, PAGE_NAMES))


@pytest.mark.parametrize("page", [page for page in PAGE_NAMES if examples(page)[0] == "demo"])
def test_examples_of_help_run(page: str, call: Call) -> None:
    assert call("report", page, *shlex.split(examples(page)[1])).out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("rep", ["report"]),
        ("report op", ["op", "ops", "op-profile"]),
        ("report ops demo --columns name,roofline", ["name,roofline_efficiency"]),
        ("report op demo --op fusion.39", ["fusion.397", "fusion.390"]),
        ("report ops demo --core demo:2", ["demo:2"]),
        ("report ops demo --desc", ["--describe"]),
        ("doctor demo --require ho", ["host"]),
        ("memory --theme li", ["light"]),
        ("man ke", ["kernels", "keys"]),
    ],
)
def test_completion(words: str, found: list[str], call: Call) -> None:
    assert sorted(call("completion", "bash", "--", *words.split()).out.split()) == sorted(found)


def test_standard_input(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(demo_path()).read_bytes())))
    whole = call("report", "ops", "demo", "--format", "csv").out
    assert call("report", "ops", "-", "--format", "csv").out == whole and os.listdir(tmp_path) == []


@pytest.mark.parametrize(("forced", "words", "has_colours"), [("", [], False), ("1", [], True), ("", ["always"], True)])
def test_colours(forced: str, words: list[str], has_colours: bool, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", forced)
    assert ("\x1b[" in call("report", "runs", "demo", *(f"--color={word}" for word in words)).out) == has_colours
