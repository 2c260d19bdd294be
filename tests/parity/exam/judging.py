"""A question of a profile, what is true of it, and how an answer compares with that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any, Literal

from tests.parity.exam.profiles import Made

Value = float | bool | str | frozenset[str]
"""A number, yes or no, a name, or a set of names."""

Truth = Value | tuple[str, ...]
"""What is true; of a name also several that are right."""

Verdict = Literal["right", "can't tell", "wrong"]
VERDICTS: tuple[Verdict, ...] = ("right", "can't tell", "wrong")

Kind = Literal["steps", "ops", "causes", "rates", "memory", "cores and hosts", "changes", "capture"]
KINDS: tuple[Kind, ...] = ("steps", "ops", "causes", "rates", "memory", "cores and hosts", "changes", "capture")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command printed: its exit code, its bytes, the JSON in them (None without any), and how long it took."""

    code: int
    size: int
    data: Any
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A command that answers a question, and where the answer stands.

    Attributes:
        command: words after the program's name; ``{name}`` in one is the path of that profile's logdir, and
            ``{name:file}`` its first file.
        read: takes the answer out of what was printed; None where the command says that it does not know.
    """

    command: tuple[str, ...]
    read: Callable[[Reply], Value | None]


@dataclass(frozen=True, slots=True)
class Question:
    """A question.

    Attributes:
        key: its short name. profile: which one it is about. text: as an engineer asks it.
        truth: from what was planted, or from arithmetic over the raw events.
        tolerance: how far a number may be off, as a share of the truth.
    """

    key: str
    kind: Kind
    text: str
    profile: str
    truth: Callable[[Mapping[str, Made]], Truth]
    tolerance: float = 0.02


def judge(answer: Value | None, truth: Truth, tolerance: float) -> Verdict:
    """Compares an answer with the truth."""
    if answer is None:
        return "can't tell"
    return "right" if _is_right(answer, truth, tolerance) else "wrong"


def _is_right(answer: Value, truth: Truth, tolerance: float) -> bool:
    if isinstance(truth, bool) or isinstance(answer, bool):
        return answer is truth
    if isinstance(truth, float):
        return isinstance(answer, float | int) and isclose(answer, truth, rel_tol=tolerance)
    if isinstance(truth, frozenset):
        return answer == truth
    names = (truth,) if isinstance(truth, str) else truth
    return isinstance(answer, str) and answer in names
