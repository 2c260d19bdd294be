"""What the views of the ops tab have in common: the pages they show, what is fetched for their cards, and filters.

What takes time, parsing an HLO module and reading a source file, a view asks the `CardCache` for and draws without
until it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from tpuprof.parsers.base.record import dataclass, field, replace
from tpuprof.parsers.files.source_lines import SourceExcerpt, source_excerpt
from tpuprof.parsers.formats.hlo.programs import HloModules, module_of
from tpuprof.parsers.pages.ops.details import op_details
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage, FrameworkTypes, framework_rows
from tpuprof.parsers.pages.ops.sources import SourceTrees, source_trees
from tpuprof.parsers.pages.shared.key import Later, named_in
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.details.card import op_card
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.report.fields import filter_texts

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import HloModule
    from tpuprof.parsers.pages.ops.kernels.call_units import KernelRow
    from tpuprof.parsers.pages.ops.op_groups import OpGroups
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
    from tpuprof.parsers.pages.ops.ops import OpsPage
    from tpuprof.parsers.pages.ops.roofline import RooflinePage

Key = int | str | None
"""What can be fetched: the module of a program id, lines around a place in code, `CALLS`, or (None) the ops by line."""

Found: TypeAlias = Any  # what there is for a key is of the key's kind; see `fetch`
_OP_OF_PAGE = "tpuprof.parsers.pages.program.measured:op_of_page"
_op_of_page = Later(_OP_OF_PAGE)
CALLS = "custom calls"  # what is asked for to know what custom calls use of the units; no source is called so
CUSTOM_CALL = "custom-call"


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
        return self.profile.ops


@dataclass()
class CardCache:
    """The pages, and what was fetched for their cards and trees.

    Attributes:
        want: starts to fetch what is not there yet; whoever does that puts it into `found`.
        found: what `fetch` gave for each key that was asked for; None before that, too.
    """

    pages: OpPages
    want: Callable[[CardCache, Key], object]
    found: dict[Key, Found] = field(default_factory=dict)

    @cached_property
    def named(self) -> frozenset[int]:
        return frozenset(number for modules in self.pages.modules for number in modules.names)

    @cached_property
    def _rows(self) -> dict[tuple[str, int | None], int]:
        """The row of each op by its name and program, and of the first of each name, whose program is None here."""
        table = self.pages.ops.table
        ops = [*enumerate(zip(table.name, table.program_id.tolist(), strict=True))][::-1]
        return {key: row for row, (name, program) in ops for key in ((name, program), (name, None))}

    def row_of(self, op: str | None, program: int | None = None) -> int | None:
        """Row in the ops page of the op of that name in a program, else in any; None where there is none."""
        return None if op is None else self._rows.get((op, program), self._rows.get((op, None)))

    def get(self, key: Key) -> Found:
        if key not in self.found:
            self.found[key] = None
            self.want(self, key)
        return self.found[key]

    def module(self, program_id: int) -> HloModule | None:
        """A module, if it is parsed already."""
        return self.get(program_id) if program_id in self.named else None

    @property
    def sources(self) -> SourceTrees | None:
        """The ops by line of code, if anyone has asked for them and they are summed already."""
        return self.found.get(None)

    def excerpt(self, source: str) -> SourceExcerpt | None:
        """Lines around a place in a source file, if they are read already."""
        return self.get(source) if source else None

    def uses(self, program_id: int, symbol_id: int) -> list[KernelRow]:
        """What a custom call uses of the units, if that is read already."""
        calls: Sequence[KernelRow] = self.get(CALLS) or ()
        return [row for row in calls if (row.use.program_id, row.use.symbol_id) == (program_id, symbol_id)]


def fetch(key: Key, pages: OpPages) -> object:
    """What is wanted, which takes a while; None where the profile has no such module, or this machine no such file."""
    if key is None:
        return source_trees(pages.ops)
    if key == CALLS:
        return pages.calls() if pages.calls is not None else ()
    if isinstance(key, str):
        return source_excerpt(key)
    named_in(_OP_OF_PAGE)  # what cards need with a module takes a while to import
    return module_of(pages.modules, key)


def hlo_card(cards: CardCache, row: int, pen: Pen, groups: OpGroups | None = None) -> list[Line]:
    """The card of an HLO op, with what is fetched so far; or of a group of them, with the texts of its longest op."""
    page, own = cards.pages.listed, row if groups is None else int(groups.main[row])
    program = int(page.table.program_id[own])
    module = cards.module(program)
    details, compiled = op_details(page, own, module), _op_of_page(page, own, module)
    excerpt = cards.excerpt(details.source)
    if groups is not None:
        return op_card(groups.page, replace(details, row=row), pen, excerpt, int(groups.op_count[row]), (), compiled)
    is_call = cards.pages.calls is not None and page.table.category[row] == CUSTOM_CALL
    uses = cards.uses(program, int(page.table.symbol_id[row])) if is_call else ()
    return op_card(page, details, pen, excerpt, uses=uses, compiled=compiled)


def framework_texts(page: FrameworkOpsPage, ops: OpsPage, name: str, types: FrameworkTypes | None = None) -> list[str]:
    """The distinct texts, a line each, that the HLO ops of each framework op, or of each of `types`, have there."""
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
