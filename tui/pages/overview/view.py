"""The overview tab: the page, a cursor over findings and ops, one over steps, and search over all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS
from tpuprof.tui.draw.columns import ComposedGraph, Cursor, Panel, PanelItem
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.pages.overview.drawing import WHY_NOT, compose, notes, op_details, op_line, step_details, step_line
from tpuprof.tui.pages.overview.fields import sections
from tpuprof.tui.pages.overview.findings import finding_details, finding_line, jump_to, jump_words
from tpuprof.tui.pages.overview.headline import verdict
from tpuprof.tui.pages.overview.inference import drawing
from tpuprof.tui.pages.overview.inference.drawing import module_details
from tpuprof.tui.pages.overview.ledger.card import bar_details, bar_line, place_of
from tpuprof.tui.pages.overview.ledger.drawing import OWNER_LETTER, Bar, shown_bars
from tpuprof.tui.report.declared import drawn_by
from tpuprof.tui.report.page import ShownPage
from tpuprof.tui.widgets.chrome import Failed, KeyRow, motion_keys, state_lines, verb_row
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.step_graph_tab import NamedStep, StepGraphTab
from tpuprof.tui.widgets.tab import Jump, Payload, jump_row, op_rows

if TYPE_CHECKING:
    from tpuprof.parsers.pages.shared.latencies import InferencePage, LatencyRow
    from tpuprof.tui.pages.overview.ledger.model_use.screen import ModelView
    from tpuprof.tui.report.describe import Section

_account = drawn_by("tpuprof.tui.pages.overview.ledger.report:AccountContent")
_model_meanings = drawn_by("tpuprof.tui.pages.overview.ledger.model_use.screen:meanings")

MEANINGS: Mapping[str, str] = {
    "Step time": "of the slowest core in each step. ~: inferred, the time between ends of the busiest program.",
    "Duty cycle": "share of the capture in which a chip runs ops other than waits and infeed; copies of host memory "
    "count, as in XProf.",
    "Idle": "share of the capture in which a core ran no op at all.",
    "FLOPS": "FLOPs of all ops by the compiler's count, first op to last, as a share of the device's peak. Includes "
    "recomputation; MFU (tpuprof-tui report model) does not.",
    "HBM BW": "bytes that ops move to and from HBM by the compiler's count, as a share of the device's peak.",
    "Why slow?": "what takes more of a step than it needs, the largest first; ~ marks an estimate. Enter shows the "
    "evidence, o goes to where to look.",
    "Verdict": "the largest cause of lost time in a step. INPUT-BOUND: it waits for input; HOST-BOUND: no "
    "program runs, because the host has not launched it; COMPILING: the device waits while the host compiles; "
    "WAITING FOR a host or core that is late; COLLECTIVE-BOUND: no compute hides collectives; TRANSFER-BOUND: data "
    "moves to and from the host; COPY-BOUND: data moves within the device; IDLE: a program runs, but no op; BUSY, "
    "ROOF UNKNOWN: the ops' work is unknown; NOT TRACED: no op runs, and no event shows what the host does; "
    "MEMORY-BOUND or COMPUTE-BOUND: the ops lose more than any cause takes, or no cause takes 5% of a step.",
    "A step goes": "to its parts, which add up to the mean step. Enter on a part shows what it is, since when, its "
    "ops, and where it is largest; o goes to where to look; i lists all parts.",
    "Letters": f"{'; '.join(f'{OWNER_LETTER[owner]} {OWNER_TITLES[owner]}' for owner in OWNERS)}; O others.",
    "Steps": "one column each from 0, by owners that add up to it: busy is compute and copies, at the roof or "
    "below; waiting is for other cores; idle is the rest without an op. Slow steps are marked.",
    "C V D N H ?": "the class of an op: compute (matrix unit), vector, copy (DMA), collective (network), host, "
    "unknown. Without steps all time is shown by class; a dot is idle time.",
    "self": "share of the self time of all ops, without idle time: self time is an op's time without the ops "
    "inside it.",
    "count": "how often the op ran, summed over cores.",
    "FLOP/s": "FLOPs by the compiler's count over the op's time; n/a where the profile has no count.",
    "REQUEST, RUN": "in serving programs: the time of a request, or of a run of the module with the most time; v "
    "breaks it down.",
    "n/a": "unknown: the notes (W) say why. Unknown is never shown as 0.",
}


class OverviewTab(StepGraphTab[Overview]):
    """Shows an overview, or the state of loading one."""

    MEANINGS = MEANINGS
    CARD = (
        ("saves", "what a step would save if the cause cost nothing, or only what it should; ~: an estimate."),
        ("evidence", "the figures behind a finding, each as on the page that o opens."),
        (
            "a bar",
            "what the owner is, its time in the mean step, since when or in which rhythm it comes, and how much of "
            "it each finding explains: no two explain the same time. Then its ops, clones together, by self time over "
            "the whole capture and all cores, and the steps and cores where it is largest.",
        ),
        (
            "step",
            "its time on the slowest core, then its owners (means over its cores), which add up to it; usually: in "
            "the median step.",
        ),
        ("rank, share", "of an op: by self time over all cores."),
    )

    def __init__(self, look: ScreenLook, *, id: str) -> None:
        super().__init__(look, id=id)
        self._view = "overview"
        self._model: ModelView | None = None
        """What the view of the model shows, once that is read."""
        self._no_model: ProfileError | None = None
        self._taken: str | None = None
        """The annotation whose spans are taken for requests."""

    def _composed(self, page: Overview, width: int, height: int, cursor: Cursor) -> ComposedGraph:
        if self.view_name == "latencies" and page.inference is not None:
            shown = replace(self._latencies_of(page.inference), warnings=page.warnings)
            return drawing.compose(shown, Pen(width, self.look.glyphs), height, cursor)
        if self.view_name == "model":
            pen = Pen(width, self.look.glyphs)
            return self._model.compose(pen, cursor) if self._model else self._waiting(pen, height)
        return compose(page, Pen(width, self.look.glyphs), height, cursor)

    def _waiting(self, pen: Pen, height: int) -> ComposedGraph:
        """What stands for the view of the model while it is read, or cannot be."""
        words = "The blocks of the model: being read now. After Esc, r reads them again."
        why = self._no_model
        lines = pen.wrap(words, "dim", [("  ", "dim")]) if why is None else state_lines(Failed(why), pen, height)
        return ComposedGraph(tuple(lines), -1, -1)

    @property
    def views(self) -> Mapping[str, str]:
        """The views that the page has something for; of a program that serves the latencies come first."""
        page = self._page
        if page is None:
            return {}
        model = {"model": "Model: layers, blocks, MFU"} if page.account is not None else {}
        latencies = {"latencies": "Latency of requests or runs"} if page.inference is not None else {}
        return {"overview": "Overview", **(latencies | model if page.infers else model | latencies)}

    @property
    def view_name(self) -> str:
        return self._view if self._view in self.views else "overview"

    @property
    def names(self) -> Mapping[tuple[str, str], Sequence[str]]:
        return {} if self._page is None else {("op-profile", "framework_op"): [op.name for op in self._page.top_ops]}

    def _written(self, page: Overview) -> tuple[str, object]:
        if self.view_name == "model" and self._model is not None:
            return "model", self._model.content
        return ("inference", page.inference) if self.view_name == "latencies" else ("overview", page)

    @property
    def shown_table(self) -> ShownPage | None:
        page, shown = self._page, super().shown_table
        if page is None or shown is None or self.view_name != "overview":
            return shown
        findings = ShownPage("findings", lambda: (page, "the reasons"))
        account = ShownPage("ledger", lambda: (_account(page, None), "the account"))
        return replace(shown, parts={"Why is it slow": findings, "Where a step goes": account})

    def _steps(self, page: Overview) -> Sequence[NamedStep]:
        return () if self.view_name != "overview" or page.serves else page.steps

    def _sections(self, page: Overview) -> Sequence[Section]:
        return sections(page) if self.view_name != "model" or self._model is None else self._model.sections

    @property
    def meanings(self) -> Iterable[tuple[str, str]]:
        if self.view_name == "model":
            model: Mapping[str, str] = _model_meanings()
            return model.items()
        return (drawing.MEANINGS if self.view_name == "latencies" else MEANINGS).items()

    @property
    def note(self) -> str:
        if self.view_name != "latencies" or self._page is None or self._page.inference is None:
            return ""
        return self._latencies_of(self._page.inference).note

    def _latencies_of(self, page: InferencePage) -> InferencePage:
        """The page with the sessions that were chosen last, where it has them."""
        return page.chosen(self._taken) or page

    @property
    def keys(self) -> Sequence[KeyRow]:
        if self._page is None:
            return super().keys
        is_overview = self.view_name == "overview"
        words = "go there" if is_overview and self._panel != "ops" else "in ops"
        leads_on = (
            *jump_row("there", self._there, words, 2 if is_overview else 4),
            *jump_row("timeline", self._on_timeline),
            *op_rows(self._op, but=("there", "timeline")),
        )
        if not is_overview:
            what = "module" if self.view_name == "latencies" else "block"
            motions = motion_keys(what, "", f"Details of the {what}", ends="one", short=(what, "", "details"))
            figures = verb_row("figures", self._open_figures, short="figures", rank=3)
            return (*motions, figures, *self._view_keys, *self._request_keys, *leads_on)
        return (*super().keys, *self._view_keys, *leads_on)

    @property
    def _view_keys(self) -> Sequence[KeyRow]:
        """The keys of the views, where there are several; of a program that serves the footer has them first."""
        if len(self.views) == 1:
            return ()
        is_first = self.view_name != "overview" or (self._page is not None and self._page.serves)
        title = "Next view: latencies of requests or runs, the model, and back"
        return self.view_keys(title, self.next_view(), 0 if is_first else 4)

    @property
    def _request_keys(self) -> Sequence[KeyRow]:
        """The key that takes other spans for requests, where there are some."""
        page = self._page.inference if self._page is not None and self.view_name == "latencies" else None
        return () if page is None or not page.offers else (verb_row("group", self._take_next, short="requests"),)

    def _module(self, page: Overview, index: int) -> LatencyRow | None:
        return page.inference.modules[index] if self.view_name == "latencies" and page.inference is not None else None

    def _listed(self, page: Overview) -> Mapping[Panel, Sequence[str]]:
        if self.view_name == "latencies" and page.inference is not None:
            return {"ops": [row.name for row in page.inference.modules]}
        if self.view_name == "model":
            return {"ops": () if self._model is None else self._model.names}
        return {
            "findings": [finding.title for finding in page.findings],
            "owners": [bar.label for bar in self._bars(page)],
            "ops": [op.name for op in page.top_ops],
        }

    def _bars(self, page: Overview) -> Sequence[Bar]:
        """The parts of the bar of the mean step."""
        return () if self.view_name != "overview" else shown_bars(page.account)

    def _searched(self, page: Overview) -> Mapping[Panel, Sequence[str]]:
        if self.view_name != "overview":
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
        if self.view_name == "model" and self._model is not None:
            return self._model.line(place.index, pen)
        return op_line(page.top_ops[place.index], pen)

    def _lines_on(self, page: Overview, place: PanelItem, pen: Pen) -> list[Line]:
        if place.panel == "steps":
            return step_details(place.index, page, pen)
        if place.panel == "owners" and page.account is not None:
            bar = self._bars(page)[place.index]
            return bar_details(bar, page.account, page.findings, jump_words(place_of(bar, page.account), page), pen)
        if place.panel == "findings":
            return finding_details(page.findings[place.index], page, pen)
        if module := self._module(page, place.index):
            return module_details(module, pen)
        if self.view_name == "model" and self._model is not None:
            return self._model.details(place.index, pen)
        return op_details(page.top_ops[place.index], page, pen)

    @property
    def details(self) -> tuple[str, Callable[[Pen], list[Line]]] | None:
        found = super().details
        title = {"latencies": "Module", "model": "Block"}.get(self.view_name)
        return (title, found[1]) if found is not None and title is not None else found

    def show(self, part: str, payload: Payload) -> None:
        """Shows a page, be it of some hosts only; cursors stay on the same op and step where the new page has them."""
        if part == "model":
            self._model = payload
            self.redraw()
            return
        self._model = self._no_model = None
        old, self._page = self._page, payload
        self._view = self.view_name
        self._keep_cursors(old, payload)
        if old is None or not payload.findings:
            self._panel = self._first_panel(payload)
            self._list = self._panel if self._panel != "steps" else "ops"
        findings = self._lists["findings"]
        self._lists["findings"] = findings.at(findings.cursor, len(payload.findings))
        self.redraw()

    def _take_next(self) -> str:
        """Takes the spans of the next annotation for requests, after the last one none."""
        page = self._page.inference if self._page is not None else None
        names: list[str | None] = [None, *(offer.subject for offer in page.offers)] if page is not None else [None]
        at = names.index(self._taken) if self._taken in names else 0
        self._taken = names[(at + 1) % len(names)]
        return "" if self._taken is None else f"sessions are the spans of {self._taken}"

    def go_to(self, what: str, name: str, program: int | None = None) -> str:
        page, self._view = self._page, what
        self.ask_for_page()
        self._lists = {panel: Listing() for panel in self._lists if panel != "steps"}
        if page is not None:
            self._panel = self._list = self._first_panel(page)
        self.scroll_lines_to(0)
        return ""

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        return {self.view_name: lambda: self.go_to("overview", "")} if self.view_name != "overview" else {}

    @property
    def op_elsewhere(self) -> str | None:
        return self._op

    def why_not(self, verb: str) -> str:
        return WHY_NOT.get(verb, "") if self._page is not None else ""

    @property
    def wanted(self) -> str:
        is_missing = self.view_name == "model" and self._model is None and self._no_model is None
        return "model" if is_missing else ""

    def show_failure(self, page: str, error: ProfileError) -> None:
        self._no_model = error
        self.redraw()

    @property
    def _there(self) -> Jump | None:
        """To where a finding or an owner points, from an op or a block to the ops tab, from a step to the timeline."""
        page, place, name = self._page, self.place, self.selection
        if page is None or place is None or name is None or self.view_name == "latencies":
            return None
        if self.view_name == "model":
            largest = "" if self._model is None else self._model.largest_op(place.index)
            return Jump("op-profile", "op", largest) if largest else None
        if place.panel == "ops":
            return Jump("op-profile", "framework_op", name)
        if place.panel == "steps":
            return Jump("timeline", "step", name)
        if place.panel == "findings":
            return Jump(*jump_to(page, page.findings[place.index].place))
        account = page.account
        return None if account is None else Jump(*jump_to(page, place_of(self._bars(page)[place.index], account)))

    @property
    def _op(self) -> str | None:
        """The op under the cursor, that with most of a block's time, or the one that a finding or an owner leads to."""
        there = self._there
        return there.name or None if there is not None and there.what in _OF_OPS else None

    @property
    def _on_timeline(self) -> Jump | None:
        """To the longest run of the op or the module under the cursor, or to the step."""
        there, op = self._there, self._op
        if self.view_name == "latencies":
            op = self.selection
        if op is not None:
            return Jump("timeline", "op", op)
        return there if there is not None and there.tab == "timeline" and there.name else None

    def verdict_lines(self, pen: Pen) -> list[Line]:
        return verdict(self._page, pen) if self._page is not None else []

    def unknown_lines(self, pen: Pen) -> list[Line]:
        return notes(replace(self._page, warnings=()), pen) if self._page is not None else []


_OF_OPS = ("op", "framework_op", "kernels")
"""What jumps lead to that is an op, which has a graph."""
