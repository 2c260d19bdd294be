"""Framework op names as XProf reads them."""

from __future__ import annotations

import pytest

from tpuprof.parsers.ops.framework_op import is_gradient, parse_framework_op


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
