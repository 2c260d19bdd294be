"""What the views of the ops tab have in common: the pages they show, what is fetched for their cards, and filters.

What takes time, parsing an HLO module and reading a source file, a view asks the `CardCache` for and draws without
until it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias, cast

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.ops.details import op_details
from tpuprof.parsers.pages.ops.framework_types import framework_rows
from tpuprof.parsers.pages.ops.sources import source_trees
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.source_lines import SourceExcerpt, source_excerpt
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.card import op_card
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.report.fields import filter_texts

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import HloModule
    from tpuprof.parsers.formats.hlo.programs import HloModules
    from tpuprof.parsers.pages.counters import KernelRow
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.framework_types import FrameworkTypes
    from tpuprof.parsers.pages.ops.op_groups import OpGroups
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
    from tpuprof.parsers.pages.ops.ops import OpsPage
    from tpuprof.parsers.pages.ops.roofline import RooflinePage
    from tpuprof.parsers.pages.ops.sources import SourceTrees

Key = int | str | None
"""What can be fetched: the module of a program id, lines around a place in code, `CALLS`, or (None) the ops by line."""


CALLS = "custom calls"
"""What is asked for to know what custom calls use of the units; no source is called so."""

CUSTOM_CALL = "custom-call"

Fetchable: TypeAlias = "HloModule | SourceExcerpt | SourceTrees | Sequence[KernelRow] | None"


@dataclass(frozen=True, slots=True)
class OpPages:
    """What the ops tab shows of one host, or of all; the framework ops come later, they need the host's lines.

    Attributes:
        profile, profile_without_idle: the trees.
        roofline, roofline_without_feeds: with and without infeed and outfeed ops.
        modules: the HLO modules of each host.
        listed: the HLO ops as the table lists them: behind those of the cores what SparseCores ran for them.
        calls: reads what custom calls use of the units, on any thread; None where the profile does not record it.
    """

    profile: OpProfilePage
    profile_without_idle: OpProfilePage
    roofline: RooflinePage
    roofline_without_feeds: RooflinePage
    modules: tuple[HloModules, ...]
    listed: OpsPage
    calls: Callable[[], Sequence[KernelRow]] | None = None

    @property
    def ops(self) -> OpsPage:
        """The HLO ops that everything else is made of."""
        return self.profile.ops


@dataclass(slots=True)
class CardCache:
    """What was fetched for cards and trees, by its key; `want` starts fetching what is not there yet.

    Attributes:
        modules: parsed HLO modules; None for a program whose module the profile lacks.
        excerpts: lines of source files; None where the file is not on this machine.
        sources: the ops by line of code; None before anyone asked for them.
        named: program ids whose modules the profile holds.
        calls: what custom calls use of the units, once that is read.
    """

    want: Callable[[Key], None]
    named: frozenset[int] = frozenset()
    modules: dict[int, HloModule | None] = field(default_factory=dict)
    excerpts: dict[str, SourceExcerpt | None] = field(default_factory=dict)
    sources: SourceTrees | None = None
    calls: Sequence[KernelRow] = ()

    def put(self, key: Key, value: Fetchable) -> None:
        """Keeps what `fetch` gave for a key."""
        if key is None:
            self.sources = cast("SourceTrees", value)
        elif key == CALLS:
            self.calls = cast("Sequence[KernelRow]", value)
        elif isinstance(key, int):
            self.modules[key] = cast("HloModule | None", value)
        else:
            self.excerpts[key] = cast("SourceExcerpt | None", value)

    def module(self, program_id: int) -> HloModule | None:
        """A module, if it is parsed already."""
        if program_id in self.named and program_id not in self.modules:
            self.want(program_id)
        return self.modules.get(program_id)

    def by_source(self) -> SourceTrees | None:
        """The ops by line of code, if they are summed already."""
        if self.sources is None:
            self.want(None)
        return self.sources

    def excerpt(self, source: str) -> SourceExcerpt | None:
        """Lines around a place in a source file, if they are read already."""
        if source and source not in self.excerpts:
            self.want(source)
        return self.excerpts.get(source)

    def uses(self, program_id: int, symbol_id: int) -> list[KernelRow]:
        """What a custom call uses of the units, if that is read already."""
        self.want(CALLS)
        return [row for row in self.calls if (row.use.program_id, row.use.symbol_id) == (program_id, symbol_id)]


def fetch(key: Key, pages: OpPages) -> Fetchable:
    """What is wanted, which takes a while; None where the profile has no such module, or this machine no such file."""
    if key is None:
        return source_trees(pages.ops)
    if key == CALLS:
        return pages.calls() if pages.calls is not None else ()
    if isinstance(key, str):
        return source_excerpt(key)
    found = (modules.module(key) for modules in pages.modules if key in modules.names)
    return next((module for module in found if module is not None), None)


def hlo_card(pages: OpPages, row: int, card_cache: CardCache, pen: Pen) -> list[Line]:
    """The card of an HLO op, with what is fetched so far."""
    page = pages.listed
    program = int(page.table.program_id[row])
    details = op_details(page, row, card_cache.module(program))
    is_call = pages.calls is not None and page.table.category[row] == CUSTOM_CALL
    uses = card_cache.uses(program, int(page.table.symbol_id[row])) if is_call else ()
    return op_card(page, details, pen, card_cache.excerpt(details.source), uses=uses)


def group_of_ops_card(pages: OpPages, groups: OpGroups, group: int, card_cache: CardCache, pen: Pen) -> list[Line]:
    """The card of a group of ops: their times and work, and what the profile says of the longest one."""
    row = int(groups.main[group])
    details = op_details(pages.ops, row, card_cache.module(int(pages.ops.table.program_id[row])))
    number, excerpt = int(groups.op_count[group]), card_cache.excerpt(details.source)
    return op_card(groups.page, replace(details, row=group), pen, excerpt, number)


def framework_texts(page: FrameworkOpsPage, ops: OpsPage, name: str, types: FrameworkTypes | None = None) -> list[str]:
    """A column of the HLO ops for the framework ops that they stem from: the distinct texts of each, a line each.

    Args:
        types: to have it for the types of framework ops.
    """
    sides = (page if types is None else types.page).is_host.tolist()
    if name == "side":
        return ["host" if is_host else "device TensorCore" for is_host in sides]
    found: list[dict[str, None]] = [{} for _ in sides]
    rows = framework_rows(page, ops)
    rows = rows if types is None else types.group[rows]
    for row, text in zip(rows.tolist(), filter_texts(HLO_OPS, ops, (name,))[name], strict=True):
        found[row][text] = None
    if name == "remat":
        return ["yes" if "yes" in texts else "no" if texts else "" for texts in found]
    return ["\n".join(texts) for texts in found]
