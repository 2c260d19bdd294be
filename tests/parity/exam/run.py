"""An exam: questions put to a program, the answers judged, and what came of it kept in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from tests.parity.exam.ask import Runner, words_of
from tests.parity.exam.judging import VERDICTS, Asked, Question, Value, Verdict, judge
from tests.parity.exam.profiles import Made

SCORES = Path(__file__).parent / "data" / "scores.json"


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer.

    Attributes:
        key: of the question. answer: what was said, as text. size: bytes that were printed, or named to be read.
    """

    key: str
    answer: str
    verdict: Verdict
    size: int
    seconds: float


@dataclass(frozen=True)
class Score:
    """All answers by the program that gave them, and XProf's version."""

    answers: Mapping[str, list[Answered]]
    version: str

    def write(self) -> None:
        """Keeps it for the table of tests/parity/README.md."""
        SCORES.parent.mkdir(exist_ok=True)
        kept = {
            name: [{**asdict(each), "seconds": round(each.seconds, 2)} for each in answers]
            for name, answers in self.answers.items()
        }
        SCORES.write_text(json.dumps({"xprof": self.version, "answers": kept}, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls) -> Score:
        """What the last run with XProf came to."""
        found = json.loads(SCORES.read_text())
        return cls(
            {name: [Answered(**each) for each in answers] for name, answers in found["answers"].items()}, found["xprof"]
        )


def answered(question: Question, asked: Asked, made: Mapping[str, Made], run: Runner) -> Answered:
    """Puts a question; a command that ends with an error and prints no JSON can't tell."""
    reply = run(words_of(asked.command, made))
    answer = None if reply.data is None else asked.read(reply)
    verdict = judge(answer, question.truth(made), question.tolerance)
    return Answered(question.key, words(answer), verdict, reply.size, reply.seconds)


def words(answer: Value | None) -> str:
    """An answer for a table."""
    if answer is None:
        return "-"
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    if isinstance(answer, int | float):
        return f"{answer:,.4g}" if answer < 1000 else f"{answer:,.0f}"
    return answer if isinstance(answer, str) else ", ".join(sorted(answer))


def exam(
    questions: Iterable[Question], answers: Mapping[str, Asked], made: Mapping[str, Made], run: Runner
) -> list[Answered]:
    """Puts all questions of the profiles that are at hand."""
    return [answered(each, answers[each.key], made, run) for each in questions if each.profile in made]


def counts(answers: Iterable[Answered]) -> dict[Verdict, int]:
    """How many answers are right, unknown and wrong."""
    found = [each.verdict for each in answers]
    return {verdict: found.count(verdict) for verdict in VERDICTS}


def median_size(answers: Iterable[Answered]) -> float:
    """Bytes of the median answer."""
    return median(each.size for each in answers)
