"""Where a step goes as pictures: the waterfall of its owners, and the owners of each step."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.overview.ledger import MeanStep
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.model_use.model_use import PART_TITLES, ModelUse
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS
from tpuprof.parsers.steps.step_account import AccountRow
from tpuprof.tui.draw.format import duration, share
from tpuprof.tui.html.picture import WIDTH, Area, Picture, Words
from tpuprof.tui.pages.overview.ledger.drawing import OWNER_CLASS, bars
from tpuprof.tui.pages.overview.ledger.model_use.drawing import PART_CLASSES

_LEFT, _RIGHT = 190.0, 150.0  # room for names, and for figures
_ROW = 20.0
_GRAPH = 140.0  # height of the graph of steps
_MOST_STEPS = 200
_ROOM = WIDTH - _LEFT - _RIGHT


def pictures(page: Overview) -> list[Picture]:
    """Both of the overview; none where the profile has no steps."""
    account = page.account
    if account is None or not account.step_ps:
        return []
    return [_waterfall(account), *([_steps(account.steps)] if len(account.steps) > 1 else [])]


def use_pictures(use: ModelUse) -> list[Picture]:
    """From the peak of the cores down to MFU; none where HFU is unknown."""
    rows = [(PART_TITLES[part.part], PART_CLASSES[part.part], part.time_ps, part.fraction) for part in use.parts]
    return [_falling("From the peak to MFU", ("peak", use.step_ps or 0.0), rows, "")] if rows else []


def _waterfall(account: MeanStep) -> Picture:
    """From the step as measured down to what its ops would take at their roof, an owner a bar."""
    shown = bars(account)
    rows = [(bar.label, bar.op_class, bar.time_ps, bar.time_ps / account.step_ps) for bar in shown]
    return _falling("Where a step goes", ("measured", account.step_ps), rows, account.verdict.statement)


def _falling(
    title: str, whole: tuple[str, float], rows: Sequence[tuple[str, OpClass, float, float]], note: str
) -> Picture:
    """A bar a row, each beginning where the one above it ends.

    Args:
        whole: name and time of the first bar.
        rows: name, class, time, and fraction of the whole of each other one.
    """
    areas = [Area("rule", [(_LEFT, 3.0, _ROOM, _ROW - 6)])]
    words = [*_named(whole[0], whole[1], 1.0, 0)]
    left = _LEFT
    for number, (name, kind, time_ps, fraction) in enumerate(rows, 1):
        begin, left = left, left + _ROOM * fraction
        areas.append(Area(kind, [(min(begin, left), number * _ROW + 3, max(abs(left - begin), 0.5), _ROW - 6)]))
        words += _named(name, time_ps, fraction, number)
    return Picture(title, _ROW * len(areas), areas, words, note)


def _named(name: str, time_ps: float, fraction: float, row: int) -> tuple[Words, Words, Words]:
    base, middle = row * _ROW + 14, WIDTH - _RIGHT / 2 + 15
    return (
        Words(0, base, name, _LEFT - 10),
        Words(middle, base, duration(time_ps), _RIGHT / 2 + 10, anchor="end"),
        Words(WIDTH, base, share(fraction), _RIGHT / 2 - 15, "dim", "end"),
    )


def _steps(steps: Sequence[AccountRow]) -> Picture:
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


def _by_class(step: AccountRow) -> dict[OpClass, float]:
    """A step's time by class, that at the roof at the bottom."""
    times: dict[OpClass, float] = {}
    for owner, time_ps in reversed(list(zip(OWNERS, step.owner_ps, strict=True))):
        if time_ps > 0:
            times[OWNER_CLASS[owner]] = times.get(OWNER_CLASS[owner], 0.0) + time_ps
    return times


def _legend(steps: Sequence[AccountRow]) -> tuple[tuple[OpClass, str], ...]:
    """Which owners each colour stands for, that at the roof first."""
    owners = [owner for place, owner in enumerate(OWNERS) if any(step.owner_ps[place] > 0 for step in steps)]
    named: dict[OpClass, list[str]] = {}
    for owner in reversed(owners):
        named.setdefault(OWNER_CLASS[owner], []).append(OWNER_TITLES[owner])
    return tuple((kind, "; ".join(titles)) for kind, titles in named.items())
