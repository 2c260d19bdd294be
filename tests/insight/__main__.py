"""Scores the program's findings.

python -m tests.insight [--half tuned|held] [--case NAME …] [--reveal] [--write FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.insight.cases.all import CASES, HALF_OF
from tests.insight.cases.case import HALVES, PARTS
from tests.insight.score import Answer, Score, answer, score, table, write


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.insight", description="Scores the program's findings.")
    parser.add_argument("--half", choices=HALVES, help="one half alone")
    parser.add_argument("--case", nargs="+", metavar="NAME", help="these cases, with all that is found")
    parser.add_argument("--reveal", action="store_true", help="show the held half's cases too: not while tuning")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the cases' profiles there instead")
    given = parser.parse_args()
    chosen = [case for case in CASES if given.half in (None, HALF_OF[case.name])]
    if given.case:
        chosen = [case for case in CASES if case.name in given.case]
    if not given.reveal:
        named = [case for case in chosen if HALF_OF[case.name] == "tuned"]
        hidden = [case for case in chosen if HALF_OF[case.name] == "held"]
    else:
        named, hidden = chosen, []
    if given.write:
        for case in named:
            print(write(case, given.write))
        return
    answers = [answer(case) for case in named]
    print(table(answers))
    if given.case:
        print("\n".join(map(_all_of, answers)))
    answers += [answer(case) for case in hidden if not given.case]
    for half in HALVES if given.half is None else (given.half,):
        for part in () if given.case else PARTS:
            chosen_answers = [one for one in answers if one.case.part == part]
            print(f"{half}, {part}: {_words(score(chosen_answers, HALF_OF, half))}")


def _all_of(one: Answer) -> str:
    lines = [f"\n{one.case.name}"]
    for finding in one.findings:
        worth = "of unknown worth" if finding.worth_ps is None else f"{finding.worth_ps / 1e9:.3f} ms a {finding.per}"
        lines.append(f"  {finding.kind} {worth}, “{finding.title}”")
        lines += [f"      {sentence}" for sentence in (finding.basis, *finding.evidence)]
    for planted in one.case.planted:
        truth = planted.truth
        lines.append(f"  truth: {planted.kinds} at {planted.place}, {truth.step_ps / 1e9:.3f} ms a step, ")
        lines.append(f"      {truth.capture_ps / 1e9:.3f} ms a capture; a step is {truth.whole_step_ps / 1e9:.3f} ms")
    return "\n".join(lines)


def _words(of: Score) -> str:
    right = f"{of.right} of {of.problems} right ({of.anywhere} with findings further down)"
    when = f", when is said of {of.says_when} of {of.timed}" if of.timed else ""
    return (
        f"{right}, {of.silent} without a word{when}, {of.quiet} of {of.healthy} healthy left alone, {of.points} points"
    )


if __name__ == "__main__":
    main()
