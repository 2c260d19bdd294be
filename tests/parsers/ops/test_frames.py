"""Which call of a stack is the user's own."""

from __future__ import annotations

import pytest

from tpuprof.parsers.ops.frames import StackFrame, own_call

MINE = "/home/ada/train/model.py:62:8 attend"
INSTALLED = "/usr/lib/python3.11/site-packages/flax/linen/linear.py:120 dot_product"
JAX = "/home/ada/src/jax/jax/_src/lax/lax.py:900 dot_general"


def test_the_innermost_call_of_the_user_goes_before_those_of_libraries_below_it() -> None:
    own = own_call(("/home/ada/train/main.py:5 <module>", MINE, INSTALLED, JAX))
    assert own == StackFrame("/home/ada/train/model.py", 62, "attend") and own.words == "attend (model.py:62)"


def test_a_checkout_of_a_library_goes_before_an_installed_one_where_nothing_is_the_users() -> None:
    assert own_call((INSTALLED, JAX)) == StackFrame("/home/ada/src/jax/jax/_src/lax/lax.py", 900, "dot_general")
    assert own_call((INSTALLED,)) == StackFrame(INSTALLED.partition(":")[0], 120, "dot_product")


@pytest.mark.parametrize(
    ("call", "own"),
    [
        ("model.py:62", StackFrame("model.py", 62, "")),
        ("<ipython-input-3>:7 step", StackFrame("<ipython-input-3>", 7, "step")),
        ("C:\\mine\\model.py:62 mlp", StackFrame("C:\\mine\\model.py", 62, "mlp")),
        ("no place", None),
    ],
)
def test_a_call_is_read_with_its_line_and_function_as_far_as_they_are_there(call: str, own: StackFrame | None) -> None:
    assert own_call((call,)) == own


def test_a_place_without_a_function_is_the_place_alone() -> None:
    assert StackFrame("a/b/model.py", 62, "").words == "model.py:62"
    assert own_call(()) is None
