"""The facts of the runs of a list, kept from one look at it to the next."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from tpuprof.parsers.base.errors import Problem, ProfileError, one_part
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.kept_by_run import KeptByRun
from tpuprof.parsers.pages.shared.split_runs import split_words
from tpuprof.parsers.session.run_facts import OF_STEPS, RunFacts, nothing_known, run_facts
from tpuprof.parsers.session.session import Session


class KnownRuns(KeptByRun[RunFacts]):
    """Finds the facts of the runs of a list, and keeps them from one look to the next.

    A run whose files are as they were isn't opened again. Where a run's small lines don't give its steps, an overview
    that someone has looked at does (`Session.kept_page`).

    Args:
        cache: where they are kept; None to keep none.
        place: the path of the list's log folder.
    """

    def __init__(self, cache: HostCache | None, place: str) -> None:
        super().__init__(cache, "facts", place, RunFacts)

    def facts(self, run: Run, is_cancelled: Callable[[], bool] = lambda: False) -> RunFacts:
        """The facts of a run; one that can't be read has none, and says why."""
        try:
            with one_part(f"read the run {printable(run.name)}"):
                return self._facts(run, is_cancelled)
        except ProfileError as error:
            return nothing_known(error.sentence, [Problem(error.code, run.path, error.sentence, error.hint)])

    def _facts(self, run: Run, is_cancelled: Callable[[], bool]) -> RunFacts:
        facts = self._with_overview(run, self.value(run, lambda: run_facts(run, is_cancelled=is_cancelled)))
        split = tuple(Problem("other_folder", run.path, words) for words in split_words(run))
        return replace(facts, problems=(*facts.problems, *split)) if split else facts

    def _with_overview(self, run: Run, facts: RunFacts) -> RunFacts:
        """The facts, with the steps of an overview in the cache where they lack them."""
        if self._cache is None or facts.core_step_ps is not None or not run.hosts:
            return facts
        overview = Session(run, cache=self._cache).kept_page(OVERVIEW)
        step = None if overview is None else overview.performance.step_time
        if step is None:
            return facts
        unknown = MappingProxyType({key: why for key, why in facts.unknown.items() if key not in OF_STEPS})
        median_ps, source = int(step.median_ps), step.source
        return replace(facts, core_step_ps=median_ps, step_count=step.count, step_source=source, unknown=unknown)
