"""What lines of code cost: sums, shares, names, and the call stacks of profiles that write them either way round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tests.parsers.pages.ops.test_op_pages import Profile, page_of, profiles, summed
from tpuprof.parsers.ops.frames import call_stack
from tpuprof.parsers.ops.roofline import work_of
from tpuprof.parsers.pages.ops.op_profile import NO_SOURCE, source_location
from tpuprof.parsers.pages.ops.sources import scope_of, short_names, source_trees, sources_page


@given(profiles())
def test_lines_add_up_to_the_ops_and_each_op_is_in_one(profile: Profile) -> None:
    page = sources_page(page_of(profile))
    table = page.ops.table
    assert page.self_ps.sum() == table.self_ps.sum()
    assert page.occurrences.sum() == table.occurrences.sum()
    assert page.op_count.sum() == len(table)
    np.testing.assert_allclose(summed(page.work), summed(work_of(table)), rtol=1e-9)
    assert set(page.source) == set(table.texts("source")) and len(set(page.source)) == len(page)
    named = [ps for text, ps in zip(page.source, page.self_ps.tolist(), strict=True) if text]
    assert named == sorted(named, reverse=True) and not any(text == "" for text in page.source[:-1])
    if table.self_ps.sum():
        assert page.op_fraction.sum() == pytest.approx(1) and page.cumulative_fraction[-1] == pytest.approx(1)


@given(profiles())
def test_a_line_is_the_same_in_the_tree_and_in_the_table(profile: Profile) -> None:
    trees = source_trees(page_of(profile))
    for tree in (trees.with_idle, trees.without_idle):
        lines = [node for node, kind in enumerate(tree.kind) if kind == "line"]
        assert len(lines) == len(trees.page)
        for node in lines:
            at = trees.row.get(tree.name[node], trees.row.get("", -1))
            assert tree.name[node] in (trees.page.source[at], NO_SOURCE)
            assert tree.time_ps[node] == trees.page.self_ps[at] and tree.row[node] == trees.page.main[at]
            assert len(tree.ops_under(node)) == trees.page.op_count[at]
            np.testing.assert_array_equal(tree.rates.efficiency[node], trees.page.rates.efficiency[at])


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("model.py:62", ("model.py", 62)),
        ("/a/model.py:62:7", ("/a/model.py", 62)),
        ("<embedded module '_launcher'>:153:2", ("<embedded module '_launcher'>", 153)),
        ("model.py", ("model.py", None)),
        (":62", (":62", None)),
    ],
)
def test_places(source: str, place: tuple[str, int | None]) -> None:
    assert source_location(source) == place


def test_files_of_one_name_show_the_folders_that_tell_them_apart() -> None:
    files = ["a/x/model.py", "b/x/model.py", "train.py", "model.py", "/model.py"]
    found = short_names([*files, "train.py"])
    assert found == {
        "a/x/model.py": "a/x/model.py",
        "b/x/model.py": "b/x/model.py",
        "train.py": "train.py",
        "model.py": "model.py",
        "/model.py": "/model.py",
    }


def test_calls_come_outermost_first_whichever_way_the_profile_has_them() -> None:
    of_tpu, of_gpu = "main.py:3\nmodel.py:62:2", "model.py:62 mlp\nmain.py:3 <module>"
    assert call_stack("model.py:62", of_tpu) == ("main.py:3", "model.py:62:2")
    assert call_stack("model.py:62", of_gpu) == ("main.py:3 <module>", "model.py:62 mlp")
    assert call_stack("", of_gpu) == ("model.py:62 mlp", "main.py:3 <module>")
    assert call_stack("model.py:62", "") == ()


@pytest.mark.parametrize(
    ("framework_op", "scope"),
    [
        ("jit(train_step)/transpose(jvp(layers))/while/body/closed_call/mlp/dot_general:", "mlp"),
        ("jit(train_step)/jvp(embed)/gather:", "embed"),
        ("jit(eval_step)/layers/while/body/attention/bhqk,bkhd->bqhd/dot_general:", "attention"),
        ("jit(f)/jit(main)/add:", "f"),
        ("add", None),
        ("", None),
    ],
)
def test_the_scope_that_a_person_named(framework_op: str, scope: str | None) -> None:
    assert scope_of(framework_op) == scope
