"""What to do first: the right thing, with the right numbers, in the right order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.oom.advice.needs import GIB, MADE, MIB, buffer, made, need_of, needs
from tests.parsers.memory.oom.advice.test_need import module
from tests.support.golden import check_golden
from tpuprof.parsers.memory.account.need import MARGIN, Need, need_of_memory
from tpuprof.parsers.memory.account.roles import read
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.advice.advice import MOST_ADVICE, advise, toggles, what_if
from tpuprof.parsers.memory.oom.advice.batch import batch_cuts, fitting_batch, smaller_batch
from tpuprof.parsers.memory.oom.advice.plan import plan
from tpuprof.parsers.memory.oom.advice.rule import saving_of
from tpuprof.parsers.memory.oom.model import Advice

MODULES = {
    "jit_train_step": 8 * GIB,
    "jit_train_step_v6e": 8 * GIB,
    "jit_eval_step": None,
    "jit_conv_step_v5e": 16 * GIB,
}
"""Programs of the demo, and the capacity of the HBM that they are advised for."""


def told_advice(advice: Iterable[Advice]) -> Iterator[str]:
    """All that is said of each."""
    for each in advice:
        yield f"{each.kind}: {each.sentence} ({each.source})" if each.source else f"{each.kind}: {each.sentence}"
        yield f"    {each.how}"
        yield f"    {each.arithmetic}"
        yield f"    saves {each.saving_bytes}, at least {each.least_bytes}, by {each.change}; buffers {each.buffers}"


def told(need: Need) -> Iterator[str]:
    """All that is said of a need: the advice, what each change saves alone and all together, the batch and the plan."""
    yield from told_advice(advise(need))
    changes = toggles(need)
    together = what_if(need, [change.key for change in changes])
    for change in changes:
        alone, beside = what_if(need, (change.key,)).saved_bytes, together.saved_by.get(change.key, 0)
        yield f"{change.key}, {change.title}: {alone}, with the others {beside}"
    if changes:
        yield f"all of them: {together.used_bytes} used, buffers of {together.sizes}"
    facts, planned = read(need), plan(need)
    if facts.batch is not None:
        yield f"batch {facts.batch}: {smaller_batch(facts)} is tried, {fitting_batch(facts)} fits"
    if planned is not None:
        yield f"plan: {planned.sentence}"


def test_advice_is_what_it_was_word_by_word() -> None:
    """On each made need, named by what it shows, and on programs of the demo."""
    cases = {name: made(name) for name in MADE}
    cases |= {name: need_of_memory(module(name, capacity)) for name, capacity in MODULES.items()}
    texts = (f"# {name}\n" + "".join(f"{line}\n" for line in told(need)) for name, need in cases.items())
    check_golden(Path(__file__).with_name("advice.txt"), "\n".join(texts))


@given(needs())
def test_savings_are_in_the_listed_buffers_and_ranked(need: Need) -> None:
    found = advise(need)
    assert len(found) <= MOST_ADVICE
    savings = [advice.saving_bytes for advice in found]
    known = [saving for saving in savings if saving is not None]
    assert known == sorted(known, reverse=True)
    assert savings == [*known, *([None] * (len(savings) - len(known)))]
    for advice in found:
        assert all(0 <= index < len(need.buffers) for index in advice.buffers)
        if advice.saving_bytes is not None:
            held = sum(max(0, need.buffers[index].size_bytes) for index in advice.buffers)
            assert 0 < advice.saving_bytes <= held
        for text in (advice.sentence, advice.how, advice.arithmetic):
            assert text
            assert text.isprintable()
        sizes = [max(0, need.buffers[index].size_bytes) for index in advice.buffers]
        assert sizes == sorted(sizes, reverse=True)


def activations(shape: str) -> list[Buffer]:
    return [buffer(shape, f"jit(f)/jvp(net)/op{n}") for n in range(2)]


@given(needs())
def test_the_fitting_batch_fits(need: Need) -> None:
    facts = read(need)
    fitting, smaller, over = fitting_batch(facts), smaller_batch(facts), facts.need.over_bytes
    saving = saving_of(facts, batch_cuts(facts))
    if facts.batch is None:
        assert (fitting, smaller, saving) == (None, None, 0)
    elif over is not None and over > 0:
        assert smaller is not None and 1 <= smaller < facts.batch
        assert fitting is None or (smaller <= fitting < facts.batch and saving >= over)
    else:
        assert smaller == facts.batch // 2
        assert fitting is None or fitting >= facts.batch


@given(st.integers(2, 300), st.integers(1, 8), st.sampled_from(["2,1,0", "0,2,1", "2,0,1"]))
def test_less_is_left_of_a_smaller_batch(batch: int, capacity: int, order: str) -> None:
    need = need_of(*activations(f"f32[{batch},256,1024]{{{order}:T(8,128)}}"), capacity=capacity * 64 * MIB)
    facts = read(need)
    fitting, over = fitting_batch(facts), facts.need.over_bytes
    assert over is not None
    if fitting is None:
        smallest = activations(f"f32[1,256,1024]{{{order}:T({'1' if order == '2,0,1' else '8'},128)}}")
        assert sum(each.size_bytes for each in smallest) > (1 - MARGIN) * capacity * 64 * MIB
    elif over > 0:
        assert saving_of(facts, batch_cuts(facts)) >= over
