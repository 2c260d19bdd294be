"""The order of op tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.made.big_table import big_page
from tpuprof.parsers.pages.ops.framework_ops import framework_ops_page
from tpuprof.parsers.pages.ops.order import TEXT_KEYS, framework_op_order, hlo_op_order
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.pages.ops.columns import framework_op_columns, hlo_op_columns

PAGE = big_page(500)
KEYS = sorted({column.key for column in hlo_op_columns(PAGE, BLOCK) if column.key})


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("key", KEYS)
def test_every_column_orders_every_row_once(key: str, descending: bool) -> None:
    order = hlo_op_order(PAGE, key, descending)
    assert sorted(order.tolist()) == list(range(500))


def test_every_column_of_framework_ops_orders_them() -> None:
    page = framework_ops_page(PAGE, [])
    for key in {column.key for column in framework_op_columns(page, BLOCK) if column.key}:
        assert sorted(framework_op_order(page, key, key not in TEXT_KEYS).tolist()) == list(range(len(page)))


def test_numbers_texts_and_ties() -> None:
    occurrences = PAGE.table.occurrences[hlo_op_order(PAGE, "count", True)]
    assert (occurrences[:-1] >= occurrences[1:]).all()
    names = [PAGE.table.name[row] for row in hlo_op_order(PAGE, "name", False)]
    assert names == sorted(names)
    categories = [PAGE.table.category[row] or "" for row in hlo_op_order(PAGE, "category", False)]
    assert categories == sorted(categories)
    assert hlo_op_order(PAGE, "program", False).tolist() == list(range(500))  # all alike: they stay as they are


@pytest.mark.parametrize("descending", [True, False])
def test_unknown_figures_come_last(descending: bool) -> None:
    utilization = PAGE.rates.flops_utilization.copy()
    utilization[[3, 8]] = np.nan
    page = replace(PAGE, rates=replace(PAGE.rates, flops_utilization=utilization))
    assert set(hlo_op_order(page, "flops", descending)[-2:].tolist()) == {3, 8}


def test_an_unknown_column_is_an_error() -> None:
    with pytest.raises(KeyError):
        hlo_op_order(PAGE, "colour", True)
