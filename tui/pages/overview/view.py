"""The overview tab: the page, a cursor over findings and ops, one over steps, and search over all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import work
from textual.message import Message

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.findings.finding import KIND_OWNERS
from tpuprof.parsers.pages.overview.ledger import owners_without
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, Owner
from tpuprof.parsers.steps.what_if import Without, without
from tpuprof.tui.draw.columns import ComposedGraph, Cursor
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.pages.overview.details import op_details, op_line, step_details, step_line
from tpuprof.tui.pages.overview.drawing import compose, notes
from tpuprof.tui.pages.overview.fields import sections
from tpuprof.tui.pages.overview.findings import finding_details, finding_line, jump_words
from tpuprof.tui.pages.overview.headline import verdict
from tpuprof.tui.pages.overview.inference import drawing
from tpuprof.tui.pages.overview.inference.drawing import module_details
from tpuprof.tui.pages.overview.ledger.bars import OWNER_LETTER, Bar, shown_bars
from tpuprof.tui.pages.overview.ledger.card import bar_details, bar_line, place_of
from tpuprof.tui.pages.overview.ledger.what_if import AS_IT_IS, WhatIf, sentence, taken_words
from tpuprof.tui.widgets.chrome import KeyRow, motion_keys
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.step_graph_tab import NamedStep, Panel, PanelItem, StepGraphTab
from tpuprof.tui.widgets.tab import CursorMoved, Jump, PageWanted, Payload

if TYPE_CHECKING:
    from tpuprof.parsers.pages.findings.finding import JumpTarget
    from tpuprof.parsers.pages.inference import InferencePage, LatencyRow
    from tpuprof.parsers.steps.ledger import Ledger
    from tpuprof.tui.report.describe import Section

MEANINGS: Mapping[str, str] = {
    "Step time": "of the slowest core in each step. ~ means inferred: the time between starts of the busiest program.",
    "Duty cycle": "share of the capture in which a chip runs an op that neither waits nor moves data for the host.",
    "Idle": "share of the capture in which a core ran no op at all.",
    "FLOPS": "model FLOPs of all ops by the compiler's count, over the capture, against the device's peak.",
    "HBM BW": "bytes that ops move to and from HBM by the compiler's count, against the device's peak.",
    "Why slow?": "what takes more of a step than it needs to, most first; ~ marks an estimate. Enter tells what it "
    "rests on, `o` goes to where to look.",
    "Verdict": "the largest cause of a step that is not ideal. INPUT-BOUND: it waits for input; HOST-BOUND: no "
    "program runs, because the host has not launched it; COMPILING: the host compiles meanwhile; WAITING FOR a host or "
    "core that is late; COLLECTIVE-BOUND: no compute hides collectives; TRANSFER-BOUND: data moves from and to the "
    "host; COPY-BOUND: data moves within the device; IDLE: a program runs, but no op; BUSY, ROOF UNKNOWN: nobody "
    "counted the ops' work; NOT TRACED: no op runs, and no event says what the host does.",
    "OF THE ROOF": "MEMORY-BOUND or COMPUTE-BOUND AT n % OF THE ROOF: the ops lose more than any cause takes, or no "
    "cause takes 5 % of a step. At their roof the ops would take n % of it.",
    "A step goes": "to its owners, which add up to the mean step. Enter on a bar tells what it is, since when, the "
    "steps and cores that have most of it, and its ops; `o` goes to where to look. On a low screen the cursor goes "
    "over the parts of one bar; `i` lists all owners.",
    "What if": "Space on a bar takes its owner away from the step, on a reason what that is about as a whole; again "
    "puts it back, Esc all. A core that becomes faster helps only as far as others wait for it: the steps are played "
    "again with their waits. Lengths and shares of bars stay those of the step as it is measured.",
    "AT THE ROOF": "the part of the mean step that its computing ops would take at their roof; FLOPS beside it is of "
    "the device's peak, over the whole capture.",
    "Letters": f"{'; '.join(f'{OWNER_LETTER[owner]} {OWNER_TITLES[owner]}' for owner in OWNERS)}; O others.",
    "Steps": "one column each from 0, by owners that add up to it: busy is what computes and copies, at the roof or "
    "below; waiting is for other cores; idle is the rest without an op. The slow ones are marked.",
    "C V D N H ?": "the class of an op: compute (matrix unit), vector, copy (DMA), collective (network), host, "
    "unknown. Without steps all time is shown by class; a dot is idle time.",
    "self": "share of the self time of all ops, idle left out: what an op takes without the ops inside it.",
    "count": "how often the op ran, summed over cores.",
    "FLOP/s": "FLOPs by the compiler's count over the op's time; n/a where the profile has no count.",
    "REQUEST, RUN": "in programs that serve: what a request took, or a run of the module with most time; `v` takes it "
    "apart.",
    "EFFICIENCY": "the larger of FLOPS and HBM BW: how near the program is to its roof. On wide screens, and in `i`.",
    "OPS PLACED": "where framework ops ran; EAGER: their time that ran eagerly; MATRIX OPS: operands' width. Also in "
    "`i`.",
    "n/a": "the profile cannot tell: the notes (`W`) say why. It is never 0 instead.",
}
LATENCY_MEANINGS: Mapping[str, str] = {
    "Session": "a request; where a profile has none, a run of the module with most time. The page says which.",
    "50%, 99%": "so many percent of the sessions take no longer. A row is the session at that place, with its own "
    "parts.",
    "host": "what is neither device time nor transfer; from a launch on, the time until the core could start.",
    "queued": "time from a launch on in which the core was busy with earlier runs.",
    "device": "runs of modules; transfer: to the device and from it.",
    "Per second": "sessions over the time from a host's first start to its last end. Tokens a second cannot be told: "
    "no event counts tokens.",
    "Histogram": "requests by latency, or runs of the module under the cursor, in bins of one width; of one ratio (log "
    "scale) where the longest takes more than ten times the shortest. Below: where the percentiles lie.",
    "share": "of a module: of the time of all modules over all cores, each core's runs added up. Of a model: of "
    "latencies.",
    "phase": "prefill, decode or sampling, where the module's name says so.",
    "s32[8,1]": "arguments that tell the batch: arrays of whole numbers, and what differs from the module's other "
    "shapes.",
    "n/a": "the profile cannot tell: the notes (`W`) say why. It is never 0 instead.",
}


@dataclass()
class LeftReady(Message):
    """The step without some owners is computed."""

    left: Without


class OverviewTab(StepGraphTab[Overview]):
    """Shows an overview, or the state of loading one."""

    MEANINGS = MEANINGS
    CARD = (
        (
            "worth",
            "what a step would save if what the finding is about cost nothing, or what it should; ~: an estimate.",
        ),
        ("rests on", "the figures behind a finding, each as it stands on the page that `o` goes to."),
        (
            "a bar",
            "what the owner is, its time in the mean step, since when or at which rhythm it comes, which reasons claim "
            "how much of it: no two the same time. Then its ops, clones together, by self time over the whole capture "
            "and all cores, and the steps and cores that have most of it.",
        ),
        (
            "step",
            "its time on the slowest core, then its owners, which add up to it: means over its cores; usually: in "
            "the median step.",
        ),
        ("rank, share", "of an op: by self time over all cores."),
    )

    def __init__(self, look: ScreenLook, *, id: str) -> None:
        super().__init__(look, id=id)
        self._wants_latencies = False
        self._taken: str | None = None
        """The annotation whose spans are taken for requests."""
        self._measured: Overview | None = None
        """The page as it was read: without what is left of owners' times where some are taken away."""
        self._ledger: Ledger | None = None
        self._what_if = AS_IT_IS

    def _composed(self, page: Overview, width: int, height: int, cursor: Cursor) -> ComposedGraph:
        if self._shows_latencies and page.inference is not None:
            shown = replace(self._latencies_of(page.inference), warnings=page.warnings)
            return drawing.compose(shown, Pen(width, self.look.glyphs), height, cursor)
        return compose(page, Pen(width, self.look.glyphs), height, cursor, self._what_if)

    @property
    def _shows_latencies(self) -> bool:
        return self._wants_latencies and self._page is not None and self._page.inference is not None

    def _steps(self, page: Overview) -> Sequence[NamedStep]:
        return () if self._shows_latencies or page.serves else page.steps

    def _sections(self, page: Overview) -> Sequence[Section]:
        return sections(page)

    @property
    def meanings(self) -> Iterable[tuple[str, str]]:
        """What the figures of the view are called and mean."""
        return (LATENCY_MEANINGS if self._shows_latencies else MEANINGS).items()

    @property
    def note(self) -> str:
        """What a session is, where latencies are shown."""
        if not self._shows_latencies or self._page is None or self._page.inference is None:
            return ""
        return self._latencies_of(self._page.inference).note

    def _latencies_of(self, page: InferencePage) -> InferencePage:
        """The page with the sessions that were chosen last, where it has them."""
        return page.chosen(self._taken) or page

    @property
    def keys(self) -> Sequence[KeyRow]:
        """Keys for what there is to move over, and that of the other view."""
        keys = super().keys
        if self._shows_latencies:
            short = "module", "", "details"
            first, *others = motion_keys("module", "", "Details of the module", ends="one", short=short)
            offers = [KeyRow("group", "requests")] * ("group" in self.commands)
            return (first, KeyRow("view", "overview"), *offers, *others, KeyRow("figures", "figures"))
        if "what_if" in self.commands:
            owners, taken = self._owners_here, self._what_if
            words = "put back" if owners and taken.takes(owners) else "what if"
            keys = (*keys[:-1], KeyRow("mark", words, rank=0 if taken.owners else 1), keys[-1])
        if self._what_if.owners:
            keys = (*keys[:-1], KeyRow("back", "as it is"), keys[-1])
        if "latencies" not in self.commands:
            return keys
        if self._page is not None and self._page.serves:
            return (keys[0], KeyRow("view", "latencies"), *keys[1:])
        return (*keys, KeyRow("view", "latencies", rank=1))

    def _module(self, page: Overview, index: int) -> LatencyRow | None:
        """The module on that row, where modules are what is listed."""
        return page.inference.modules[index] if self._shows_latencies and page.inference is not None else None

    def _listed(self, page: Overview) -> Mapping[Panel, Sequence[str]]:
        if self._shows_latencies and page.inference is not None:
            return {"ops": [row.name for row in page.inference.modules]}
        return {
            "findings": [finding.title for finding in page.findings],
            "owners": [bar.label for bar in self._bars(page)],
            "ops": [op.name for op in page.top_ops],
        }

    def _bars(self, page: Overview) -> Sequence[Bar]:
        """The bars of the waterfall that are drawn, or the parts of the one bar of a low screen."""
        return () if self._shows_latencies else shown_bars(page.account, self.size.height)

    def _searched(self, page: Overview) -> Mapping[Panel, Sequence[str]]:
        if self._shows_latencies:
            return self._listed(page)
        ops = (filter(None, (op.name, op.category, op.hlo_category, op.op_class)) for op in page.top_ops)
        return {**self._listed(page), "ops": ["\n".join(words) for words in ops]}

    def _first_step(self, page: Overview) -> int:
        return max(range(len(page.steps)), key=lambda index: page.steps[index].duration_ps)

    def _line_on(self, page: Overview, place: PanelItem, pen: Pen) -> Line:
        if place.panel == "steps":
            return step_line(place.index, page, pen)
        if place.panel == "owners":
            return bar_line(self._bars(page)[place.index], pen)
        if place.panel == "findings":
            return finding_line(page.findings[place.index], pen)
        if module := self._module(page, place.index):
            return pen.fit([(" module ", "dim"), (module.name, "strong")])
        return op_line(page.top_ops[place.index], pen)

    def _lines_on(self, page: Overview, place: PanelItem, pen: Pen) -> list[Line]:
        if place.panel == "steps":
            return step_details(place.index, page, pen)
        if place.panel == "owners" and page.account is not None:
            bar = self._bars(page)[place.index]
            jump = jump_words(place_of(bar, page.account), page)
            return bar_details(bar, page.account, page.findings, jump, pen)
        if place.panel == "findings":
            return finding_details(page.findings[place.index], page, pen)
        if module := self._module(page, place.index):
            return module_details(module, pen)
        return op_details(page.top_ops[place.index], page, pen)

    @property
    def details(self) -> tuple[str, Callable[[Pen], list[Line]]] | None:
        """What is under the cursor, in full."""
        found = super().details
        return ("Module", found[1]) if found is not None and self._shows_latencies else found

    def show(self, part: str, payload: Payload) -> None:
        """Shows a page, be it of some hosts only; cursors stay on the same op and step where the new page has them.

        The account by core and step is of the page that is shown, and answers what was asked of it.
        """
        if part == "ledger":
            self._ledger = payload
            self._compute_left()
            return
        self._measured, self._ledger, self._what_if = payload, None, AS_IT_IS
        self._show_page(payload)

    def _show_page(self, payload: Overview) -> None:
        old, self._page = self._page, payload
        self._wants_latencies = self._wants_latencies and payload.inference is not None
        self._keep_cursors(old, payload)
        if old is None or not payload.findings:
            self._panel = self._first_panel(payload)
            self._list = self._panel if self._panel != "steps" else "ops"
        findings = self._lists["findings"]
        self._lists["findings"] = findings.at(findings.cursor, len(payload.findings))
        self.redraw()

    @property
    def commands(self) -> tuple[str, ...]:
        """From an op to the same one in the ops tab, from a step to the timeline, from a finding to where to look."""
        page, place, always = self._page, self.place, super().commands
        if page is None:
            return ()
        always += ("latencies",) if page.inference is not None else ()
        if self._shows_latencies and page.inference is not None and page.inference.offers:
            always += ("group",)
        if place is None or self._shows_latencies:
            return always
        if page.account is not None and place.panel in ("findings", "owners"):
            always += ("what_if",)
        there = self._place_of(page, place)
        if there is not None:
            always = ("graph", *always) if _jump_to(page, there).what == "op" else always
            return ("same_op", *always)
        return ("same_op", *(("on_timeline", "graph") if place.panel == "ops" else ()), *always)

    def command(self, name: str, by: int = 1) -> str:
        """Shows latencies, or the overview with its graph again; the step without some owners; or all figures."""
        if name == "what_if":
            return self._take_away()
        if name == "group":
            return self._take_next()
        if name != "latencies":
            return super().command(name, by)
        self._show_latencies(not self._shows_latencies)
        return ""

    def _take_next(self) -> str:
        """Takes the spans of the next annotation for requests, after the last one none."""
        page = self._page.inference if self._page is not None else None
        names: list[str | None] = [None, *(offer.subject for offer in page.offers)] if page is not None else [None]
        at = names.index(self._taken) if self._taken in names else 0
        self._taken = names[(at + 1) % len(names)]
        self.redraw()
        return "" if self._taken is None else f"sessions are the spans of {self._taken}"

    def _show_latencies(self, wanted: bool) -> None:
        page, self._wants_latencies = self._page, wanted
        self._lists = {panel: Listing() for panel in self._lists if panel != "steps"}
        if page is not None:
            self._panel = self._list = self._first_panel(page)
        self.scroll_lines_to(0)
        self.redraw()

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        """The latencies, and the step without some owners."""
        latencies = {"latencies": lambda: self._show_latencies(False)} if self._wants_latencies else {}
        return latencies | ({"what if": lambda: self._show_left(AS_IT_IS)} if self._what_if.owners else {})

    @property
    def view_name(self) -> str:
        """Name of the view that is shown."""
        return "latencies" if self._shows_latencies else ""

    @property
    def op_elsewhere(self) -> str | None:
        """The op under the cursor, or that a finding or bar is about."""
        there = self.jump("graph") if "graph" in self.commands else None
        return None if there is None else there.name or None

    def why_not(self, verb: str) -> str:
        """Why a verb does nothing here."""
        words = {
            "view": "No latencies: this program serves no requests that the profile shows.",
            "sort": "Reasons come by worth, ops by self time.",
            "reverse": "Reasons come by worth, ops by self time.",
            "mark": "Only a reason or a bar of a step can be taken away from it.",
            "timeline": "Only an op has a longest run; `o` goes to where more is known.",
        }
        return words.get(verb, "") if self._page is not None else ""

    # --- the step without some owners

    @property
    def _owners_here(self) -> frozenset[Owner]:
        """The owners of the bar under the cursor, or those that the finding there is about as a whole."""
        page, place = self._page, self.place
        if page is None or place is None:
            return frozenset()
        if place.panel == "owners":
            return self._bars(page)[place.index].names
        return (
            frozenset(KIND_OWNERS.get(page.findings[place.index].kind, ()))
            if place.panel == "findings"
            else frozenset()
        )

    def _take_away(self) -> str:
        """Takes the owners under the cursor away from the step, or puts them back; says what comes of it."""
        page, owners = self._page, self._owners_here
        account = None if page is None else page.account
        if account is None:
            return "No account of a step is there"
        if not owners:
            return "This reason is about a part of an owner's time: take away a bar below"
        if not any(each.owner in owners and each.time_ps + each.between_ps > 0 for each in account.owners):
            return f"No part of a step is {taken_words(owners)}"
        self._what_if = self._what_if.toggled(owners)
        if not self._what_if.owners:
            self._show_left(AS_IT_IS)
            return "The step as it is"
        self.redraw()
        words = f"Without {taken_words(self._what_if.owners)}"
        if self._ledger is None:
            self.post_message(PageWanted())
            return f"{words}: the account of each core and step is being read"
        self._compute_left()
        return words

    @property
    def wanted(self) -> str:
        """The account by core and step, where owners are to be taken away and it is not read yet."""
        return "ledger" if self._what_if.owners and self._ledger is None else ""

    def show_failure(self, page: str, error: ProfileError) -> None:
        """The account could not be read: the step is shown as it is."""
        self._show_left(AS_IT_IS)

    def _compute_left(self) -> None:
        """Begins to compute the step that is asked for."""
        if self._ledger is None:
            self._show_left(AS_IT_IS)
        elif not self._what_if.is_whole:
            self._without(self._ledger, self._what_if.owners)

    @work(thread=True, exclusive=True, group="what-if", description="what-if")
    def _without(self, of: Ledger, owners: frozenset[Owner]) -> None:
        self.post_message(LeftReady(without(of, owners)))

    def on_left_ready(self, message: LeftReady) -> None:
        """Shows what is left, unless another step is asked for by now."""
        message.stop()
        left = message.left
        if left.of is self._ledger and frozenset(left.owners) == self._what_if.owners:
            self._show_left(WhatIf(self._what_if.owners, left))
            self.post_message(CursorMoved(sentence(left, self.look.glyphs)))

    def _show_left(self, what_if: WhatIf) -> None:
        """Shows the step without some owners, or as it is; the cursor stays on its bar."""
        page, here = self._measured, self._owners_here
        self._what_if = what_if
        if page is None:
            return
        account = page.account
        if account is not None and what_if.left is not None:
            account = replace(account, owners=owners_without(account.owners, what_if.left))
        self._page = replace(page, account=account)
        found = (index for index, bar in enumerate(self._bars(self._page)) if bar.names & here)
        if self.place is not None and self.place.panel == "owners" and (index := next(found, None)) is not None:
            self._lists["owners"] = Listing(index)
        self.redraw()

    def jump(self, command: str) -> Jump | None:
        """To where a finding points, to a step or an op's longest run on the timeline, to the op in the ops tab."""
        page, place, selected = self._page, self.place, self.selection
        if page is None or place is None or selected is None or command not in ("same_op", "on_timeline", "graph"):
            return None
        there = self._place_of(page, place)
        if command == "graph":
            return Jump("graph", "op", selected if there is None else _jump_to(page, there).name)
        if command == "same_op" and there is not None:
            return _jump_to(page, there)
        if command == "same_op" and place.panel == "ops":
            return Jump("op-profile", "framework_op", selected)
        return Jump("timeline", "step" if place.panel == "steps" else "op", selected)

    def _place_of(self, page: Overview, place: PanelItem) -> JumpTarget | None:
        """Where to look for a finding or an owner; None for ops and steps, which are where they are."""
        if place.panel == "findings":
            return page.findings[place.index].place
        if place.panel == "owners" and page.account is not None:
            return place_of(self._bars(page)[place.index], page.account)
        return None

    def verdict_lines(self, pen: Pen) -> list[Line]:
        """The headline in full, for the notes."""
        return verdict(self._page, pen) if self._page is not None else []

    def unknown_lines(self, pen: Pen) -> list[Line]:
        """What is unknown, and why, for the notes."""
        return notes(replace(self._page, warnings=()), pen) if self._page is not None else []


def _jump_to(page: Overview, place: JumpTarget) -> Jump:
    """To a tab, and the op or step there."""
    if place.target is None:
        return Jump(place.tab)
    is_step = any(step.name == place.target for step in page.steps)
    is_of_step = place.tab == "input" or (place.tab == "timeline" and is_step)
    return Jump(place.tab, "step" if is_of_step else "op", place.target)
