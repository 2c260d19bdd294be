"""All forty questions."""

from __future__ import annotations

from tests.parity.exam.judging import Question
from tests.parity.exam.questions import device, program

QUESTIONS: tuple[Question, ...] = (*program.QUESTIONS, *device.QUESTIONS)
"""In the order in which they are asked."""
