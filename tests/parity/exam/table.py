"""The exam's tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.parity.exam.judging import KINDS, Question
from tests.parity.exam.questions.all import QUESTIONS
from tests.parity.exam.run import Answered, Score, counts, median_size

_SIGNS = {"right": "right", "can't tell": "can't tell", "wrong": "**wrong**"}


def whole(questions: Iterable[Question], score: Score) -> str:
    """A row a question, and the totals."""
    by_key = {name: {each.key: each for each in answers} for name, answers in score.answers.items()}
    head = "".join(f" {name} | | bytes | s |" for name in by_key)
    lines = [f"| question | profile |{head}", "|---|---|" + "---|---|---:|---:|" * len(by_key)]
    for question in questions:
        cells = [_cells(answers.get(question.key)) for answers in by_key.values()]
        lines.append(f"| {question.text} | {question.profile} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_totals(score)])


def _cells(answered: Answered | None) -> str:
    if answered is None:
        return "not asked | | |"
    shown = answered.answer if len(answered.answer) <= 40 else answered.answer[:37] + "..."
    return f"{shown} | {_SIGNS[answered.verdict]} | {answered.size:,} | {answered.seconds:.2f}"


def _totals(score: Score) -> list[str]:
    lines = []
    for name, answers in score.answers.items():
        found = counts(answers)
        called = f"{name} {score.version}" if name == "XProf" else name
        lines.append(
            f"- {called}: {', '.join(f'{count} {verdict}' for verdict, count in found.items())}; "
            f"{sum(each.size for each in answers) / 1000:.0f} KB, the median answer {median_size(answers):,.0f} bytes; "
            f"{sum(each.seconds for each in answers):.1f} s"
        )
    return lines


def short(score: Score) -> str:
    """The table of README.md: a row a kind of question, the totals, and each question not answered correctly."""
    kinds = {question.key: question for question in QUESTIONS}
    head = "".join(f" {name} right, can't tell, wrong | KB | s |" for name in score.answers)
    lines = [f"| questions of |{head}", "|---|" + "---|---:|---:|" * len(score.answers)]
    for kind in (*KINDS, None):
        cells = [
            _summed([each for each in answers if kind is None or kinds[each.key].kind == kind])
            for answers in score.answers.values()
        ]
        lines.append(f"| {'**all**' if kind is None else kind} | {' | '.join(cells)} |")
    lost = [
        f"- {name}, {each.verdict}: {kinds[each.key].text}"
        for name, answers in score.answers.items()
        for each in answers
        if each.verdict != "right"
    ]
    return "\n".join([*lines, "", *lost])


def _summed(answers: Sequence[Answered]) -> str:
    found = counts(answers)
    size, seconds = sum(each.size for each in answers), sum(each.seconds for each in answers)
    return f"{', '.join(map(str, found.values()))} | {size / 1000:.1f} | {seconds:.1f}"
