"""An exam: every question put to a program, and the answers judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tests.exam.ask import Runner, words_of
from tests.exam.profiles import Made
from tests.exam.question import VERDICTS, Asked, Question, Reply, Value, Verdict, judge


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer: what was said, whether that is right, how many bytes and seconds it took."""

    key: str
    answer: Value | None
    verdict: Verdict
    size: int
    seconds: float


def answered(question: Question, asked: Asked | None, made: Mapping[str, Made], run: Runner) -> Answered:
    """Puts a question; where there is no command for it, the program can't tell."""
    if asked is None:
        return Answered(question.key, None, "can't tell", 0, 0.0)
    reply = run(words_of(asked.command, made))
    answer = _read(asked, reply)
    verdict = judge(answer, question.truth(made), question.tolerance)
    return Answered(question.key, answer, verdict, reply.size, reply.seconds)


def _read(asked: Asked, reply: Reply) -> Value | None:
    """The answer; None where the command ended with an error and printed no JSON."""
    return None if reply.data is None else asked.read(reply)


def exam(
    questions: Iterable[Question], answers: Mapping[str, Asked], made: Mapping[str, Made], run: Runner
) -> list[Answered]:
    """Puts all questions of the profiles that are at hand."""
    return [
        answered(question, answers.get(question.key), made, run) for question in questions if question.profile in made
    ]


def counts(answers: Sequence[Answered]) -> dict[Verdict, int]:
    """How many answers are right, unknown and wrong."""
    return {verdict: sum(each.verdict == verdict for each in answers) for verdict in VERDICTS}


def median_size(answers: Sequence[Answered]) -> float:
    """Bytes of the median answer."""
    return median(each.size for each in answers)
