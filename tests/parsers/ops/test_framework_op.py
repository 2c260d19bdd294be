"""Framework op names as XProf reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.pages.findings.build import Op, table
from tpuprof.parsers.ops.framework_op import is_gradient, parse_framework_op
from tpuprof.parsers.ops.table import kernel_name


@pytest.mark.parametrize(
    ("full", "name", "kind"),
    [
        ("jit(step)/dot_general:", "jit(step)/dot_general", "dot_general"),
        ("jit(f)/jit(main)/add_12:", "jit(f)/jit(main)/add_12", "add"),
        ("model/layer/MatMul_1:MatMul", "model/layer/MatMul_1", "MatMul"),
        ("model/layer/MatMul_1:", "model/layer/MatMul_1", "MatMul"),
        ("x:transpose[permutation=(0, 3, 1, 2)]", "x", "transpose"),
        ("Iterator::Batch::Map::TFRecord", "Iterator::Batch::Map::TFRecord", "Dataset"),
        ("MemcpyHtoD", "MemcpyHtoD", "MemcpyHToD"),
        ("no colon", "no colon", ""),
        ("a b:Has Space", "a b:Has Space", ""),
        ("", "", ""),
    ],
)
def test_name_and_type(full: str, name: str, kind: str) -> None:
    op = parse_framework_op(full)
    assert (op.name, op.type) == (name, kind)


def test_gradients_are_recognised_by_their_scope() -> None:
    assert is_gradient("jit(train)/transpose(jvp(mlp))/dot_general")
    assert is_gradient("gradient_tape/model/MatMul")
    assert not is_gradient("jit(f)/transpose")
    assert not is_gradient("jit(f)/jvp(mlp)/dot_general")


@given(
    st.lists(st.sampled_from(["lay", "blo", "f"]), max_size=2),
    st.lists(st.sampled_from(["layer", "jvp(x)", "block"]), max_size=2),
    st.sampled_from(["layer", "block", "kernel"]),
)
def test_a_kernel_is_named_by_its_function_or_its_scope(calls: list[str], scopes: list[str], op: str) -> None:
    named = [scope for scope in scopes if "(" not in scope]
    path = "/".join([*(f"jit({function})" for function in calls), *scopes, "pallas_call"])
    expected = named[-1] if named else op
    if calls and (scopes[-1:] != [op] or op.startswith(calls[-1])):
        expected = calls[-1]
    assert kernel_name(table([Op(f"{op}.1", "custom-call", 1, scope=path)]), 0) == expected
