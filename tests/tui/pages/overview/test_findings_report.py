"""`report findings` says what it knows of the profile itself, and nothing that it does not."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.fence.profiles import TRAIN, simulated
from tests.parsers.pages.findings import build
from tests.support.build import tpu_plane
from tests.tui.cli.calls import Call
from tests.tui.report.consistency.documents import PLANTED, made_documents
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.table import EMPTY_TABLE
from tpuprof.parsers.pages.findings.figures import UNITS, Figure, with_figures, without_figures
from tpuprof.parsers.pages.findings.subject import SubjectOps, SubjectPart, subject_of
from tpuprof.tui.demo import demo_path


def printed(path: Path, data: bytes, call: Call) -> str:
    """The report's words, wherever its lines break."""
    path.write_bytes(data)
    return " ".join(call("report", "findings", path, "--width", "100").out.split())


def test_a_profile_that_is_cut_off_says_so(tmp_path: Path, call: Call) -> None:
    space = XSpace()
    ops = [(f"fusion.{number}", "loop fusion", number * 100, 80) for number in range(60)]
    tpu_plane(space, 0, ops, steps=[(str(number), number * 1000, (number + 1) * 1000) for number in range(6)])
    whole = space.SerializeToString()
    assert "cut off" not in printed(tmp_path / "whole.xplane.pb", whole, call)
    assert "is cut off after" in printed(tmp_path / "cut.xplane.pb", whole[:-40], call)


def test_kinds_that_nobody_could_look_for_are_not_called_absent(tmp_path: Path, call: Call) -> None:
    space = XSpace()
    tpu_plane(space, 0, [("fusion.1", "loop fusion", 0, 80)])
    space.planes[0].name = b"/device:GPU:0"
    out = printed(tmp_path / "gpu.xplane.pb", space.SerializeToString(), call)
    assert "not found" not in out
    assert "Not checked: a capture without device events" in out


# --- as data


@pytest.mark.parametrize("profile", ["demo", *PLANTED])
def test_what_findings_are_about_is_what_other_pages_have(profile: str) -> None:
    shown = made_documents(profile)
    names = {row["name"] for row in shown["ops"]["ops"]}
    cores = {row["core"] for row in shown["cores"]["cores"]}
    lines = {row["name"]: row["source"] for row in shown["ops"]["ops"]}
    for finding in shown["findings"]["findings"]:
        assert finding["cause"] == finding["kind"]
        assert {op["name"] for op in finding["ops"]} <= names and len(finding["ops"]) <= finding["op_count"]
        assert all(op["source"] == lines[op["name"]] for op in finding["ops"] if list(lines).count(op["name"]) == 1)
        assert {core["name"] for core in finding["cores"]} <= cores | set(shown["hosts"]["run"]["hosts"])
        assert {host["name"] for host in finding["hosts"]} <= set(shown["hosts"]["run"]["hosts"])
        assert all(figure["unit"] in UNITS for figure in finding["figures"])
        worth, parts = finding["worth_ms"], [host["time_ms"] for host in finding["hosts"]]
        if worth is not None and parts and finding["host_count"] == len(shown["hosts"]["run"]["hosts"]):
            assert min(parts) * 0.999 <= worth <= max(parts) * 1.001, "the worth is the mean over the cores"
        assert sum(op["claimed_ms"] for op in finding["ops"]) <= (worth or 0.0) * 1.001 + 1e-9


AMOUNT = re.compile(r"(?<![\w.~])([0-9.,]+) (ns|µs|ms|s) a step \(")
TO_MS = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}


@pytest.mark.parametrize("profile", ["demo", *PLANTED])
def test_each_amount_of_the_evidence_is_a_figure_too(profile: str) -> None:
    seen = 0
    for finding in made_documents(profile)["findings"]["findings"]:
        known = [figure["value"] for figure in finding["figures"] if figure["unit"] == "ms"]
        for sentence in finding["evidence"]:
            assert printable(sentence) == sentence
            for number, unit in AMOUNT.findall(sentence):
                shown = float(number.replace(",", "")) * TO_MS[unit]
                assert any(value == pytest.approx(shown, rel=0.006) for value in known), sentence
                seen += 1
    assert seen or profile != "demo", "its findings have amounts"


def test_figures_are_taken_out_of_sentences_and_nothing_else_is() -> None:
    amount = with_figures("3.10 ms a step (12.3%)", (3.1001, "ms"), (0.1229, "fraction"))
    words, figures = without_figures(f"A takes {amount}, B {amount}.")
    assert words == "A takes 3.10 ms a step (12.3%), B 3.10 ms a step (12.3%)."
    assert figures[:2] == (Figure("A takes", 3.1001, "ms"), Figure("A takes", 0.1229, "fraction"))
    assert [figure.name for figure in figures[2:]] == ["B", "B"]
    hostile = "\x02abc:1.0 ms\x03 takes"
    assert without_figures(hostile) == (hostile, ())


def test_each_finding_has_the_command_that_shows_more(call: Call) -> None:
    found = call.json("report", "findings", "demo", "--limit", "0", "--format", "json")["findings"]
    assert len(found) > 3
    for finding in found:
        program, *words = shlex.split(finding["next"])
        assert program == "tpuprof-tui" and words[2] == demo_path()
        assert call(*words, "--width", "80").out
    (step,) = (finding for finding in found if finding["kind"] == "slow-step")
    words = shlex.split(step["next"])
    begin, end = (float(words[words.index(name) + 1]) for name in ("--from", "--to"))
    assert begin <= step["interval_ms"]["from"] and step["interval_ms"]["to"] <= end <= begin + 1000


def test_the_command_for_more_names_the_core_and_a_path_that_a_shell_takes_as_it_is(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "it's $(here)"
    folder.mkdir()
    path = folder / "host0.xplane.pb"
    path.write_bytes(simulated(TRAIN)[0])
    found = call.json("report", "findings", path, "--core", "0", "--format", "json")["findings"]
    for finding in found:
        words = shlex.split(finding["next"])
        assert words[3] == str(path) and words[words.index("--core") + 1] == "host0:0"
        assert call(*words[1:]).out
    assert found


def test_a_claim_that_is_the_same_everywhere_names_no_core_and_no_step() -> None:
    steps = build.grid({"compute": 100})
    ops = SubjectOps(EMPTY_TABLE, table_rates(EMPTY_TABLE, Peaks()), np.zeros(0, np.intp), np.zeros(0), np.zeros(0))
    names = ("a:0", "a:1")
    even = subject_of(ops, np.full((2, 10), 5e9), names, steps)
    assert (even.cores, even.step, even.interval_ps, even.figures) == ((), None, None, ())
    assert even.hosts == (SubjectPart("a", 5e9),)
    cells = np.full((2, 10), 5e9)
    cells[1, 3] = 25e9
    uneven = subject_of(ops, cells, names, steps)
    assert [core.name for core in uneven.cores] == ["a:1", "a:0"] and uneven.step == steps.names[3]
    assert uneven.interval_ps == (int(steps.start_ps[3]), int(steps.end_ps[3]))
    figures = {figure.name: figure.value for figure in uneven.figures}
    assert (figures["most_of_a_core"], figures["least_of_a_core"], figures["most_of_a_step"]) == (7.0, 5.0, 15.0)
    assert figures["median_of_steps"] == 5.0 and figures["steps_with_it"] == figures["steps"] == 10
