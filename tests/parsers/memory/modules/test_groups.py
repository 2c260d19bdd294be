"""Groups of buffers, and the scopes that they are grouped by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.modules.build import GIB, MIB, space_of, training_space
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.modules.groups import NO_SCOPE, NO_SOURCE, group_rows, padding_of, scope_of


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("jit(step)/jvp(Model)/h_7/attention/dot_general", "Model/h_7/attention"),
        ("jit(step)/transpose(jvp(Model))/h_7/attention/dot_general", "Model/h_7/attention"),
        ("jit(step)/jit(main)/transpose(jvp(Model))/h_7/while/body/closed_call/mlp/jit(gelu)/tanh:", "Model/h_7/mlp"),
        ("jit(step)/jvp()/checkpoint/rematted_computation/layer/add", "layer"),
        ("jit(step)/vmap(jvp(loss))/cond/branch_1_fun/log", "loss"),
        ("jit(step)/layers/bhqk,bkhd->bqhd/dot_general", "layers"),
        ("jit(step)/add", ""),
        ("state['params']['layers']['qkv']", "state['params']['layers']"),
        ("state.params.kernel", "state.params"),
        ("batch", ""),
        ("broadcast.53", ""),
        ("", ""),
        ("///", ""),
        ("a/(((((/b", "a/((((("),
    ],
)
def test_scopes(name: str, scope: str) -> None:
    assert scope_of(name) == scope


@given(st.text(alphabet="jitvp()/ab[]'._->", max_size=200))
def test_any_name_has_a_scope(name: str) -> None:
    assert len(scope_of(name)) <= len(name)


def test_layers_meet_in_one_group() -> None:
    page = training_space(layers=3)
    groups = group_rows(page, page.at(page.peak_position), "scope")
    by_name = {group.name: group for group in groups}
    assert by_name["Model/h_1/attention"].size_bytes == 512 * MIB
    assert by_name["Model/h_1/attention/softmax"].padding_bytes == 112 * MIB
    assert len(by_name["state['params']['layers']"].rows) == 2
    assert by_name[NO_SCOPE].size_bytes == 512
    assert [group.size_bytes for group in groups] == sorted((group.size_bytes for group in groups), reverse=True)


def test_groups_by_source_and_category() -> None:
    page = training_space(layers=3)
    rows = page.at(page.peak_position)
    sources = {group.name: len(group.rows) for group in group_rows(page, rows, "source")}
    assert sources == {
        NO_SOURCE: 7,
        "models/transformer.py:212": 3,
        "models/transformer.py:218": 3,
        "models/transformer.py:260": 3,
    }
    categories = {group.name: group.size_bytes for group in group_rows(page, rows, "category")}
    assert categories["temporary"] == page.temporaries_bytes
    assert categories["parameter"] == page.arguments_bytes
    assert group_rows(page, rows[:0], "source") == ()


def test_padding_is_unknown_where_the_elements_are() -> None:
    page = space_of([Buffer("a", "temporary", GIB), Buffer("b", "temporary", 8, 2), Buffer("c", "temporary", 2, 4)], 3)
    assert padding_of(page, np.arange(3)).tolist() == [-1, 6, 0]
    assert group_rows(page, np.arange(3), "category")[0].padding_bytes == 6
