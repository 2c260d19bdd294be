"""Where a step goes as pictures: the waterfall of its owners, and the owners of each step."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.overview.ledger import Account, StepAccount
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS
from tpuprof.tui.draw.format import duration, share
from tpuprof.tui.html.picture import WIDTH, Area, Picture, Words
from tpuprof.tui.pages.overview.ledger.bars import OWNER_CLASS, bars

_LEFT, _RIGHT = 190.0, 150.0  # room for names, and for figures
_ROW = 20.0
_GRAPH = 140.0  # height of the graph of steps
_MOST_STEPS = 200
_ROOM = WIDTH - _LEFT - _RIGHT


def pictures(page: Overview) -> list[Picture]:
    """Both; none where the profile has no steps."""
    account = page.account
    if account is None or not account.step_ps:
        return []
    return [_waterfall(account), *([_steps(account.steps)] if len(account.steps) > 1 else [])]


def _waterfall(account: StepAccount) -> Picture:
    """From the step as measured down to what its ops would take at their roof, an owner a bar."""
    areas = [Area("rule", [(_LEFT, 3.0, _ROOM, _ROW - 6)])]
    words = [*_named("measured", account.step_ps, 1.0, 0)]
    left = _LEFT
    for number, bar in enumerate(bars(account), 1):
        width = _ROOM * bar.time_ps / account.step_ps
        areas.append(Area(bar.op_class, [(left, number * _ROW + 3, max(width, 0.5), _ROW - 6)]))
        words += _named(bar.label, bar.time_ps, bar.time_ps / account.step_ps, number)
        left += width
    return Picture("Where a step goes", _ROW * len(areas), areas, words, account.verdict.statement)


def _named(name: str, time_ps: float, fraction: float, row: int) -> tuple[Words, Words, Words]:
    base, middle = row * _ROW + 14, WIDTH - _RIGHT / 2 + 15
    return (
        Words(0, base, name, _LEFT - 10),
        Words(middle, base, duration(time_ps), _RIGHT / 2 + 10, anchor="end"),
        Words(WIDTH, base, share(fraction), _RIGHT / 2 - 15, "dim", "end"),
    )


def _steps(steps: Sequence[Account]) -> Picture:
    """A column a step, divided by the classes whose colours its owners have."""
    shown = steps[:_MOST_STEPS]
    longest = max(step.time_ps for step in shown) or 1.0
    width = (WIDTH - 70) / len(shown)
    boxes: dict[OpClass, list[tuple[float, float, float, float]]] = {}
    for number, step in enumerate(shown):
        bottom = 10 + _GRAPH
        for kind, time_ps in _by_class(step).items():
            height = _GRAPH * time_ps / longest
            bottom -= height
            boxes.setdefault(kind, []).append((70 + number * width, bottom, max(width * 0.85, 0.5), height))
    places = sorted({0, len(shown) // 2, len(shown) - 1})
    words = [
        Words(60, 18, duration(longest), 60, "dim", "end"),
        Words(60, _GRAPH + 10, "0", 60, "dim", "end"),
        *(Words(70 + place * width, _GRAPH + 25, shown[place].name, max(width, 60), "dim") for place in places[:-1]),
        Words(WIDTH, _GRAPH + 25, shown[-1].name, 60, "dim", "end"),
    ]
    note = f"the first {_MOST_STEPS} of {counted(len(steps), 'step')}" if len(steps) > len(shown) else ""
    areas = [Area(kind, some) for kind, some in boxes.items()]
    return Picture("Steps, mean over cores", _GRAPH + 30, areas, words, note, _legend(shown))


def _by_class(step: Account) -> dict[OpClass, float]:
    """A step's time by class, that at the roof at the bottom."""
    times: dict[OpClass, float] = {}
    for owner, time_ps in reversed(list(zip(OWNERS, step.owner_ps, strict=True))):
        if time_ps > 0:
            times[OWNER_CLASS[owner]] = times.get(OWNER_CLASS[owner], 0.0) + time_ps
    return times


def _legend(steps: Sequence[Account]) -> tuple[tuple[OpClass, str], ...]:
    """Which owners each colour stands for, that at the roof first."""
    owners = [owner for place, owner in enumerate(OWNERS) if any(step.owner_ps[place] > 0 for step in steps)]
    named: dict[OpClass, list[str]] = {}
    for owner in reversed(owners):
        named.setdefault(OWNER_CLASS[owner], []).append(OWNER_TITLES[owner])
    return tuple((kind, "; ".join(titles)) for kind, titles in named.items())
