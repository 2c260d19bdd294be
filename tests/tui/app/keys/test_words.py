"""ctrl+p finds what people mean, by words of their own."""

from __future__ import annotations

import pytest

from tests.support.app.scene import after, list_above, scene
from tests.support.app.stage import make_demo_app
from tpuprof.tui.widgets.lists.popup import CommandList

MEANT = {
    "Show Overview": "compile step steps bottleneck slow why",
    "Show Input pipeline": "input data dataset",
    "Show Timeline": "timeline trace zoom perfetto events",
    "Show Memory": "memory hbm oom peak allocator batch",
    "Show Memory or B": "buffer",
    "3 v or 3": "kernel kernels pallas",
    "Show Roofline": "roofline mxu flops bandwidth",
    "Show Collectives": "collective all-reduce network",
    "Show Model: layers, blocks, MFU": "layer model mfu tokens",
    "1 v or 1": "latency percentile",
    "E": "export csv save screenshot",
    "T": "theme colour settings",
    "?": "help mouse keys options",
    "D": "diff baseline yesterday before",
    "q": "quit exit",
    "Esc": "close back undo",
    "y": "copy yank clipboard",
    "s": "sort order",
    "/": "filter search find grep",
    "H": "host core straggler late",
    "e or b": "source line editor",
    "Enter": "open details",
    "Tab or shift+Tab": "next previous",
    "R": "run runs history",
    "r": "reload refresh",
    "W": "notes warnings",
}
"""Words, and the titles or keys of what one of them may find first."""


@pytest.mark.parametrize("tab", ["1", "3"])
async def test_each_word_finds_what_it_means(tab: str) -> None:
    async with scene(make_demo_app(), [tab, "ctrl+p"]) as (app, _):
        listed, wrong = list_above(app, CommandList), []
        for meant, word in ((meant, word) for meant, words in MEANT.items() for word in words.split()):
            listed.filter(word)
            cells = listed.rows[0].cells if listed.count else ()
            wrong += [] if {*cells} & {*meant.split(" or ")} else [(word, meant, cells)]
        assert not wrong


async def test_names_of_views_columns_ops_modules_and_hosts_lead_there() -> None:
    async with scene(make_demo_app(), ["5", "3"], 120, 40) as (_, pilot):
        assert "[HLO ops]" in await after(pilot, "ctrl+p", *"hlo", "enter")
        assert "sorted by average, largest first" in await after(pilot, "ctrl+p", *"sort by average", "enter")
        assert "▸C   8.2% ██████ fusion.397" in await after(pilot, "ctrl+p", *"fusion.397", "enter")
        assert "HBM of device 0 (1 of 4)" in await after(pilot, "ctrl+p", *"allocators over", "enter")
        assert "jit_eval_step(" in await after(pilot, "ctrl+p", *"jit_eval", "enter")
        assert "host demo" in await after(pilot, "ctrl+p", *"demo", "enter")
