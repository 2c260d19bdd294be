"""Promises of findings, kept and not kept, over simulated programs whose cause is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.insight.cases.scenes import SMALL
from tests.insight.simulator.code import V5E
from tests.insight.simulator.parts import Chain
from tests.insight.simulator.play import Chips
from tests.insight.simulator.scene import Scene, play
from tests.insight.simulator.space import spaces
from tests.insight.simulator.workloads import Train
from tests.support.build import session_at, write_run
from tests.support.documents import nulls
from tests.tui.cli.calls import Call, Printed
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_REGRESSION, EXIT_UNREADABLE, EXIT_USAGE
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget
from tpuprof.parsers.pages.findings.subject import Subject, SubjectOp
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.diff.compare import compare
from tpuprof.parsers.session.diff.promises import Verified, paired, verify
from tpuprof.parsers.session.session import Session
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.page import TextLook

EXPOSED = Scene((Train(layers=2, overlap=False, once=SMALL),), V5E, hosts=2, cores=2, steps=8, seed=32)
"""All-reduces that nothing hides."""

SCENES = {
    "exposed": EXPOSED,
    "again": replace(EXPOSED, seed=77),
    "hidden": replace(EXPOSED, work=(Train(layers=2, once=SMALL),), seed=33),
    "slow-core": replace(EXPOSED, work=(Train(layers=2, once=SMALL),), chips=Chips(speed=((1, 1.3),)), seed=34),
}


@pytest.fixture(name="runs", scope="module")
def made_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("runs")
    return {
        name: str(write_run(root / name, **{f"host{n}": space for n, space in enumerate(spaces(scene, play(scene)))}))
        for name, scene in SCENES.items()
    }


def words_of(printed: Printed) -> str:
    return " ".join(printed.out.split())


def test_a_promise_that_is_kept(runs: dict[str, str], call: Call) -> None:
    document = call.json("verify", runs["exposed"], runs["hidden"], "--format", "json")
    (cause,) = [cause for cause in document["causes"] if cause["is_claim"]]
    assert document["outcome"] == "kept" and cause["kind"] == "collective"
    worth = call.json("report", "findings", runs["exposed"], "--format", "json")["findings"][0]["worth_ms"]
    assert document["promised_ms"] == cause["before_ms"] == worth > 1
    diff = call.json("diff", runs["exposed"], runs["hidden"], "--format", "json")["steps"]["mean"]
    assert document["step"] == diff and document["got_ms"] == -diff["change_ms"]
    assert abs(document["got_ms"] - worth) <= 0.05 * worth
    assert {*nulls({**document, "unknown": {}})} == {*document["unknown"]}
    assert document["instead"] == [] and document["causes"][0]["time"]["mark"] == "less"
    loud = call("verify", "demo", runs["hidden"], "--claim", "collective")
    assert "other changes count too" in words_of(loud)
    printed = call("verify", runs["exposed"], runs["hidden"], "--claim", "collective")
    assert "Kept: collective promised" in printed.out and "ms less" in printed.out


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("exposed again --claim collective", EXIT_REGRESSION, "collective promised|costs no less|the same within"),
        ("exposed again", EXIT_REGRESSION, "No finding costs less than before"),
        ("exposed slow-core", EXIT_REGRESSION, "costs less (|but a step takes|came instead: slow-core:"),
        ("slow-core exposed", EXIT_OK, "slow-core promised|% of it|came instead: collective:"),
        ("hidden exposed", EXIT_UNREADABLE, "no finding of the earlier run promises anything"),
    ],
)
def test_what_came_of_a_promise(given: str, code: int, said: str, runs: dict[str, str], call: Call) -> None:
    before, after, *options = given.split()
    for form in ("text", "md"):
        words = words_of(call("verify", runs[before], runs[after], *options, "--format", form, code=code))
        assert all(each in words for each in said.split("|"))


def test_a_claim_that_was_not_made(runs: dict[str, str], call: Call) -> None:
    sentence, hint = call.error(EXIT_NOT_FOUND, "verify", runs["exposed"], runs["hidden"], "--claim", "colective")
    assert sentence == "The finding colective is not in the earlier run." and hint == "try: one of: collective"
    sentence, _ = call.error(EXIT_NOT_FOUND, "verify", "demo", runs["hidden"], "--claim", "unexplained-2")
    assert sentence == "The finding unexplained-2 promises nothing: how much it can save is unknown."
    call("verify", runs["exposed"], runs["exposed"], code=EXIT_USAGE)


def verified(runs: dict[str, str]) -> tuple[Verified, Session, Session]:
    before, after = (session_at(runs[name]) for name in ("exposed", "hidden"))
    diff = compare(before, after)
    return verify(diff, before.page(OVERVIEW), after.page(OVERVIEW)), before, after


def test_a_kind_that_can_not_be_told_is_unknown(runs: dict[str, str]) -> None:
    made, before, after = verified(runs)
    blind = replace(after.page(OVERVIEW), undetectable={"collective": "ops are not recorded"})
    found = verify(made.diff, before.page(OVERVIEW), blind, ["collective"])
    assert found.outcome == "unknown" and found.why == "collective: ops are not recorded"
    report = command_named("verify").load_report()
    for form in ("text", "json", "md"):
        text = report.writers[form](report.read(found), TextLook(80, True, False), 0)
        assert "ops are not recorded" in " ".join(text.split()) and max(map(len, text.splitlines())) <= (
            80 if form == "text" else 2000
        )


def test_a_promise_below_the_noise_decides_nothing(runs: dict[str, str]) -> None:
    made, before, after = verified(runs)
    steps = made.diff.steps
    assert steps is not None and made.promised_ps is not None
    loud = replace(steps, mean=replace(steps.mean, noise=2 * made.promised_ps, mark="same"))
    found = verify(replace(made.diff, steps=loud), before.page(OVERVIEW), after.page(OVERVIEW), ["collective"])
    assert found.outcome == "unknown" and "smaller than the noise" in found.why
    found = verify(
        replace(made.diff, different="these are different programs"), before.page(OVERVIEW), after.page(OVERVIEW)
    )
    assert (found.outcome, found.why) == ("unknown", "these are different programs")
    alone = replace(steps, mean=replace(steps.mean, noise=None, mark="unknown"))
    found = verify(replace(made.diff, steps=alone), before.page(OVERVIEW), after.page(OVERVIEW))
    assert found.outcome == "unknown" and found.why.startswith("a run with one step")


def chains(first: bool, second: bool) -> Scene:
    """Two chains of elementwise ops, each fused or not."""
    parts = (
        Chain(bad=first, rows=65_536, scope="one/mul", source="one.py:14"),
        Chain(bad=second, rows=32_768, scope="two/mul", source="two.py:30", ops=("tanh", "exponential", "negate") * 2),
    )
    return Scene((Train(layers=2, once=parts),), V5E, cores=1, steps=6, seed=41)


def test_two_findings_of_a_kind_are_two_promises(tmp_path: Path, call: Call) -> None:
    """One chain is fused, and the other is not: one promise was kept, whichever was worth more."""
    paths = [
        str(write_run(tmp_path / name, host=spaces(scene, play(scene))[0]))
        for name, scene in (("before", chains(True, True)), ("after", chains(False, True)))
    ]
    made = call.json("verify", *paths, "--format", "json")
    causes = {cause["name"]: cause for cause in made["causes"] if cause["kind"] == "unfused"}
    found = call.json("report", "findings", paths[0], "--format", "json", "--limit", "0")["findings"]
    assert [each["name"] for each in found if each["kind"] == "unfused"] == list(causes) == ["unfused-1", "unfused-2"]
    first, second = causes.values()
    assert "one/mul" in first["title"] and first["mark"] == "gone" and first["is_claim"]
    assert "two/mul" in second["title"] and second["mark"] == "same" and not second["is_claim"]
    assert made["outcome"] == "kept" and made["promised_ms"] == first["before_ms"]
    other = call("verify", *paths, "--claim", "unfused-2", code=EXIT_REGRESSION)
    assert "Not kept: unfused-2 promised" in other.out
    both = call.json("verify", *paths, "--claim", "unfused", "--format", "json")
    assert both["outcome"] == "partly" and both["promised_ms"] > made["promised_ms"]
    _, hint = call.error(EXIT_NOT_FOUND, "verify", *paths, "--claim", "unfused-3")
    assert hint.startswith("try: one of: unfused-")


def about(title: str, *ops: tuple[str, str]) -> Finding:
    """A finding on some ops and their lines."""
    listed = tuple(SubjectOp(name, 1, 1.0, 1.0, None, None, source) for name, source in ops)
    place = JumpTarget("op-profile", "")
    return Finding(
        "slow-kernel", title, 1.0, "step", 0.1, 9.0, False, "", (), "", place, subject=Subject(ops=listed)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        (about("", ("fusion.1", "a.py:1")), about("", ("fusion.1", "b.py:1")), True),
        (about("", ("fusion.1", "a.py:1")), about("", ("gmm.2", "a.py:1")), True),
        (about("", ("gmm.1", "a.py:10")), about("", ("gmm.7", "a.py:14")), True),
        (about("", ("gmm.1", "a.py:10")), about("", ("attention", "a.py:14")), False),
        (about("", ("gmm.1", "a.py:10")), about("", ("gmm.7", "b.py:14")), False),
        (about("Core host0:1 is 9 % slower"), about("Core host0:1 is 7 % slower"), True),
        (about("Core host0:1 is 9 % slower"), about("Core host1:1 is 9 % slower"), False),
        (about("Steps wait for input"), about("Steps wait for input on host-1"), True),
    ],
)
def test_findings_are_the_same_by_what_they_are_about(old: Finding, new: Finding, is_same: bool) -> None:
    assert paired([old], [new], {}) == ([(old, new)] if is_same else [(old, None), (None, new)])


def test_findings_are_paired_by_what_they_share_most() -> None:
    one, two = about("one", ("a", "x.py:1"), ("b", "x.py:2")), about("two", ("c", "x.py:3"))
    after = [about("new two", ("c", "x.py:3"), ("a", "x.py:1")), about("new one", ("b", "x.py:2"), ("a", "x.py:1"))]
    assert paired([one, two], after, {}) == [(one, after[1]), (two, after[0])]
    renumbered = {"a": "c", "b": "d", "c": ""}
    assert paired([about("one", ("a", "")), about("two", ("c", ""))], [found := about("", ("c", ""))], renumbered) == [
        (about("one", ("a", "")), found),
        (about("two", ("c", "")), None),
    ]
