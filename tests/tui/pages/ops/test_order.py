"""The order of op tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.made.big_table import big_page
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.report.fields import order

PAGE = big_page(500)


def test_numbers_texts_and_ties() -> None:
    occurrences = PAGE.table.occurrences[order(HLO_OPS, PAGE, "count", True)]
    assert (occurrences[:-1] >= occurrences[1:]).all()
    names = [PAGE.table.name[row] for row in order(HLO_OPS, PAGE, "op", False)]
    assert names == sorted(names)
    categories = [PAGE.table.category[row] or "" for row in order(HLO_OPS, PAGE, "HLO category", False)]
    assert categories == sorted(categories)
    assert order(HLO_OPS, PAGE, "program", False).tolist() == list(range(500))  # all alike: they stay as they are


@pytest.mark.parametrize("descending", [True, False])
def test_unknown_figures_come_last(descending: bool) -> None:
    utilization = PAGE.rates.flops_utilization.copy()
    utilization[[3, 8]] = np.nan
    page = replace(PAGE, rates=replace(PAGE.rates, flops_utilization=utilization))
    assert set(order(HLO_OPS, page, "FLOPS", descending)[-2:].tolist()) == {3, 8}
