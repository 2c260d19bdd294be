"""The report on the op profile: its tree by program for people, all three trees in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
from tpuprof.tui.draw.format import count, share
from tpuprof.tui.draw.layout import wrap
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.fields.device import DEVICE, OP_COUNT, SIMULATED, WHOLE_TIME
from tpuprof.tui.pages.ops.fields.op_profile import WALKED, Nodes, Walk
from tpuprof.tui.pages.ops.report.common import NOT_WORTH_SAYING, markdown_head, text_head, text_notes, time_rows
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import Figure, markdown_rows
from tpuprof.tui.report.markdown import escaped, figures_table, joined, rows_table, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import page_text
from tpuprof.tui.report.units import TEXT

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import Instruction
    from tpuprof.parsers.formats.hlo.programs import HloModules
    from tpuprof.parsers.pages.ops.ops import OpsPage

PATH_SEPARATOR = " / "
INDENT = "\u00a0\u00a0"  # what a browser does not fold


HEADLINE: Figure[OpProfilePage] = Figure(
    "headline", TEXT, lambda page: page.headline, "what the tree says, in a sentence"
)


@dataclass(frozen=True, slots=True)
class OpProfile:
    """The page, and the modules that say what is inside fusions."""

    page: OpProfilePage
    modules: Sequence[HloModules]


def read(asked: Asked) -> OpProfile:
    """Reads the page."""
    session = asked.session(asked.run)
    return OpProfile(session.op_profile(asked.host), session.modules(asked.host))


def json(profile: OpProfile, asked: Asked) -> str:
    """The three trees; see `trees`."""
    from tpuprof.tui.pages.ops.report.op_profile_trees import op_profile_json  # noqa: PLC0415 - for JSON alone

    ops = profile.page.ops
    return op_profile_json(profile.page, asked.run, asked.most_rows, lambda row: fused(ops, profile.modules, row))


def fused(ops: OpsPage, modules: Sequence[HloModules], row: int) -> Sequence[Instruction]:
    """The instructions inside a fusion, none where it is no fusion or the profile lacks its module."""
    if not (ops.table.category[row] or "").endswith("fusion"):
        return ()
    program = int(ops.table.program_id[row])
    found = (known.module(program) for known in modules if program in known.names)
    module = next((module for module in found if module is not None), None)
    return () if module is None else module.fused(ops.table.name[row])


def csv(profile: OpProfile, asked: Asked) -> str:
    """The tree by program, a line a node below the root, depth first; at most `limit` children a node."""
    walked = walk(Nodes(profile.page.ops, profile.page.by_program), asked.most_rows)
    return table_csv(WALKED, walked, range(len(walked)))


def walk(nodes: Nodes, limit: int = 0) -> Walk:
    """Goes through the nodes below the root, depth first, at most `limit` children each (0: all)."""
    tree = nodes.tree
    rows: list[tuple[int, int, str, int]] = []
    stack = [(child, 0, "") for child in tree.top_children(0, limit=limit)[0][::-1].tolist()]
    while stack:
        node, depth, above = stack.pop()
        path = f"{above}{PATH_SEPARATOR}{tree.name[node]}" if above else tree.name[node]
        children, hidden = tree.top_children(node, limit=limit)
        rows.append((node, depth, path, hidden))
        stack += [(child, depth + 1, path) for child in children[::-1].tolist()]
    return Walk(nodes, *(map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])))


def markdown(profile: OpProfile, asked: Asked) -> str:
    """The tree by program, indented; at most `limit` children a node."""
    page, limit = profile.page, asked.most_rows
    ops, tree = page.ops, page.by_program
    figures = [
        *time_rows(ops),
        ("FLOPS utilization, of peak", share(float(tree.rates.flops_utilization[0]))),
        ("HBM bandwidth utilization, of peak", share(float(tree.rates.bandwidth_utilization[0, 0]))),
    ]
    walked = walk(Nodes(ops, tree), limit)
    cells = markdown_rows(WALKED, walked, range(len(walked)))
    work = [WALKED.markdown.index(key) for key in ("occurrences", "flops_utilization", "bandwidth_utilization.hbm")]
    for node, depth, row in zip(walked.node, walked.depth, cells, strict=True):
        row[0] = INDENT * depth + row[0]
        for place in work if tree.kind[node] == "idle" else ():
            row[place] = ""
    lines = markdown_head("Op profile", ops, asked.run.name)
    lines += ["", escaped(page.headline), *figures_table(figures)]
    lines += rows_table("Op profile by program", WALKED, cells)
    left_out = tree.top_children(0, limit=limit)[1]
    lines += ["", f"Not shown: {count(left_out)} more."] if left_out else []
    return joined([*lines, *unknown_block(ops.unknown, NOT_WORTH_SAYING)])


def text(profile: OpProfile, asked: Asked) -> str:
    """The tree by program, every node open; at most `limit` children a node."""
    from tpuprof.tui.pages.ops.tree import whole_tree  # noqa: PLC0415 - for text alone

    page, glyphs = profile.page, asked.look.glyphs

    def lines(width: int) -> list[Line]:
        return [
            *text_head(f"Op profile of {asked.run.name}", page.ops, width, glyphs),
            *wrap(page.headline, width, "strong", glyphs),
            *whole_tree(page, page.by_program, width, glyphs, asked.most_rows),
            *text_notes(page.ops.warnings, page.ops.unknown, width, glyphs),
        ]

    return page_text(lines, asked.look)


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(WALKED,),
    csv_table=WALKED,
    figures=(*WHOLE_TIME, *DEVICE, SIMULATED, OP_COUNT, HEADLINE),
    warnings=lambda profile: profile.page.ops.warnings,
)
