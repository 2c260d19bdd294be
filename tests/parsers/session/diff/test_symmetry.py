"""A comparison seen from its other side is the same one, and a run compared with itself has not changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.session.diff.build import MS, check_identity
from tests.parsers.session.diff.phased import Environment, Run, serving
from tests.support.build import session_at
from tpuprof.parsers.session.diff.compare import compare
from tpuprof.parsers.session.diff.model import Change, Diff

OTHER_WAY = {"more": "less", "less": "more", "new": "gone", "gone": "new"}
OPS = ("fusion.1", "fusion.20", "copy.3", "all-reduce.4", "custom-call.5", "custom-call.6", "convolution.7", "idle")


@st.composite
def programs(draw: st.DrawFn) -> list[Run]:
    """Programs with their ops."""
    names = ("jit_a", "jit_b")[: draw(st.integers(1, 2))]
    ops = st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 30).map(lambda ms: ms * MS)), min_size=1, max_size=4)
    return [(name, draw(ops)) for name in names]


@st.composite
def steps_of(draw: st.DrawFn) -> list[list[Run]]:
    """Steps that run some of the programs each, with a little noise."""
    of = draw(programs())
    chosen = draw(st.lists(st.lists(st.sampled_from(of), min_size=1, max_size=3), min_size=1, max_size=7))
    return [
        [(name, [(op, time + (at * 7919 + number) % 5 * MS // 50) for op, time in ops]) for name, ops in step]
        for number, step in enumerate(chosen)
        for at in [len(step)]
    ]


TOLD: st.SearchStrategy[Environment | None] = st.none() | st.fixed_dictionaries(
    {"libtpu_version": st.sampled_from(("0.1", "0.2"))},
    optional={"command_line_args": st.sampled_from(("train --x=1", "train --x=2 --y=1"))},
)


def changes(diff: Diff) -> Iterator[tuple[object, Change]]:
    """All changes of a comparison, by what they are of on either side."""
    yield "total", diff.total
    for name in ("typical", "mean", "median", "minimum", "maximum", "odd") if diff.steps else ():
        yield name, getattr(diff.steps, name)
    for owner in diff.owners:
        yield ("owner", owner.owner, owner.has_ops), owner.mean
        yield ("typical owner", owner.owner), owner.typical
    for title, rows in (("category", diff.categories), ("class", diff.classes)):
        yield from (((title, row.name, row.op_class), row.time) for row in rows)
    for phase in diff.phases:
        names = sorted((phase.name, phase.old_name or phase.name))
        yield from (((*names, name, phase.in_steps), getattr(phase, name)) for name in ("time", "runs", "share"))
        yield from (((*names, *key), change) for key, change in op_changes(phase.ops))
    yield from op_changes(diff)


def op_changes(diff: Diff) -> Iterator[tuple[tuple[object, ...], Change]]:
    for op in diff.ops:
        names = sorted((op.name, op.old_name or op.name))
        for name in ("time", "count"):
            yield (
                (*names, op.program * (op.time.mark in ("new", "gone")), op.matched_by, op.text_changed, name),
                getattr(op, name),
            )


def told(pairs: Iterable[tuple[object, Change]], back: bool) -> list[str]:
    """Changes as words, in one order; with `back` from the other side."""
    out = []
    for key, change in pairs:
        ends = (change.after, change.before) if back else (change.before, change.after)
        mark = OTHER_WAY.get(change.mark, change.mark) if back else change.mark
        noise = None if change.noise is None else float(f"{change.noise:.6g}")
        out.append(f"{key} {[None if end is None else round(end) for end in ends]} {noise} {mark}")
    return sorted(out)


@settings(max_examples=EXAMPLES // 3)
@given(steps_of(), steps_of(), TOLD, TOLD)
def test_from_the_other_side_every_change_is_the_opposite(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[list[Run]],
    after: list[list[Run]],
    of_a: Environment | None,
    of_b: Environment | None,
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    a, b = (
        session_at(serving(folder, name, steps, env)) for name, steps, env in (("a", before, of_a), ("b", after, of_b))
    )
    forth, back = compare(a, b), compare(b, a)
    assert told(changes(forth), False) == told(changes(back), True)
    other_side = {"before": "after", "after": "before"}
    untold = {".".join(other_side.get(part, part) for part in key.split(".")) for key in back.unknown}
    assert forth.basis == back.basis and forth.unknown.keys() == untold
    assert (forth.before.units, forth.after.units) == (back.after.units, back.before.units)
    opposite = {(each.kind, each.name): (each.after, each.before) for each in back.settings}
    assert {(each.kind, each.name): (each.before, each.after) for each in forth.settings} == opposite
    for each in forth.settings:
        assert (each.mark == "same") == (each.before == each.after)
        assert each.mark == {(True, False): "new", (False, True): "gone"}.get(
            (each.before is None, each.after is None), each.mark
        )
    assert ("settings" in forth.unknown) == (None in (of_a, of_b))
    assert all(f"HLO of {module.name}(" in module.problem for module in forth.modules)
    assert not any("None" in f"{phase.ops.before.unit_name}{phase.ops.after.unit_name}" for phase in forth.phases)
    assert sorted(number for group in forth.groups for number in group.members) == [*range(len(forth.ops))]
    sizes = [abs(group.change.time.delta or 0.0) for group in forth.groups]
    assert sizes == sorted(sizes, reverse=True)
    itself = compare(a, a)
    for of in (forth, itself):
        if of.owners:
            check_identity(of)
    assert {change.mark for _, change in changes(itself)} <= {"same", "unknown"}
    assert all(change.before == change.after for _, change in changes(itself))
    assert all(phase.in_steps == (itself.basis == "step") for phase in itself.phases)
    count = {(op.program, op.name): op.count.before for op in itself.ops if op.count.before}  # in typical steps
    for phase in itself.phases:
        ops = [(op.count.before, count.get((op.program, op.name))) for op in phase.ops.ops]
        assert len({round((a_run or 0) / a_step, 6) for a_run, a_step in ops if a_step}) < 2
    assert all(phase.old_name is None and phase.ops.before.units == phase.runs.before for phase in itself.phases)
