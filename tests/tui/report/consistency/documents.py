"""What the reports of a profile show, as JSON, and how a figure is read from it by its key in `--describe`."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from tests.fence.profiles import DECODE, FEATURES, TRAIN, simulated
from tests.insight.cases.all import CASES, HALF_OF
from tests.insight.score import write as write_case
from tests.support.build import write_run
from tests.support.composed import slices
from tests.support.composed.engines import REPLICAS, TRAINER_AND_ROLLOUT, engines_space
from tests.support.reports import asked_of
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.logdir import Run, open_logdir
from tpuprof.parsers.pages.overview.accounts_of_ops import OpAccounts
from tpuprof.parsers.pages.overview.model import OP_ACCOUNTS, OVERVIEW, Overview
from tpuprof.parsers.session.session import Session
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages import PAGES
from tpuprof.tui.report.describe import Described, described
from tpuprof.tui.report.output import whole

Documents = Mapping[str, Any]
"""The JSON of each page that a profile has, by the page's name."""

PLANTED = (
    "activations-to-the-host-v6e",
    "all-reduce-exposed-v5e",
    "barrier-before-each-step-2-hosts-v5e",
    "callback-in-each-step-v5p",
    "four-hosts-host-3-saves-once",
    "four-hosts-two-chips-throttled",
    "gathers-on-a-sparse-core-v5p",
    "healthy-infeed-v4",
    "healthy-serving-mixed-phases-v6e",
    "host-saves-checkpoint-v5e",
    "hosts-host-1-collects-garbage-every-4th-step",
    "input-slow-loader-v5e",
    "pipeline-of-4-v5p",
    "remat-of-scanned-layers-v6e",
    "rl-advantages-in-f32",
    "reduce-scatter-exposed-2-hosts-v5e",
    "rhythm-recompiles-every-5th-step",
    "slow-core-unmarked-v6e",
    "straggler-host-late-4-hosts-v4",
    "two-slices-host-3-late-every-5th-step",
)
"""Cases of the tuned half of `tests/insight`, each with something else that a page shows."""

GROUPS = {"replicas": REPLICAS, "trainer-and-rollout": TRAINER_AND_ROLLOUT}
"""Several groups of cores in one profile."""

MADE = ("demo", "decode", "train", *FEATURES, *GROUPS, "several-hosts", "truncated", "two-slices", *PLANTED)
"""Profiles that our own scripts make."""

REAL = {
    "v6e": "profiles/tpu-v6e-inference",
    "v100": "profiles/gpu-v100-bert",
    "mi300": "profiles/gpu-mi300-jax",
    "cpu-only": "profiles/cpu-only",
    "synthetic-a": "golden/synthetic-a/host0.xplane.pb",
    "synthetic-b": "golden/synthetic-b/host0.xplane.pb",
    "synthetic-c": "golden/synthetic-c/host0.xplane.pb",
}
"""Profiles among the reference data."""


@cache
def _made(name: str) -> tuple[Documents, Overview, OpAccounts | None]:
    with tempfile.TemporaryDirectory() as folder:
        (run,) = open_logdir(_written(name, Path(folder))).runs
        session = Session(run)
        return _of_group_shown(_documents(run, session)), session.page(OVERVIEW), session.page(OP_ACCOUNTS)


def _of_group_shown(found: dict[str, Any]) -> Documents:
    """The documents with figures of that group's cores alone whose steps the pages show."""
    if groups := found["overview"]["groups"]:
        shown = max(groups, key=lambda group: (len(group["cores"]), group["busy_percent"]))["number"]
        found["cores"]["cores"] = [
            core if core["group"] == shown else {"core": core["core"]} for core in found["cores"]["cores"]
        ]
        rows = found["hosts"]["hosts"]  # of one host
        row = next(row for row in rows if row["group"] == shown)
        means = {key: fmean(of[key] for of in rows) for key in ("device_idle_percent", "device_duty_cycle_percent")}
        found["hosts"]["hosts"] = [{**row, **means, "core_count": sum(of["core_count"] for of in rows)}]
        found["hosts"]["steps"] = [step for step in found["hosts"]["steps"] if step["group"] == shown]
    return found


def made_documents(name: str) -> Documents:
    return _made(name)[0]


def made_overview(name: str) -> Overview:
    """The overview of one of them, which cards are drawn from."""
    return _made(name)[1]


def made_op_accounts(name: str) -> OpAccounts | None:
    """The mean step of one of them by op."""
    return _made(name)[2]


def _written(name: str, folder: Path) -> str:
    """Writes a profile; returns where it is."""
    if name == "demo":
        return str(demo_path())
    if name == "two-slices":
        return str(slices.write_run(folder))
    if name in PLANTED:
        case = next(case for case in CASES if case.name == name)
        assert HALF_OF[name] == "tuned"
        return str(write_case(case, folder))
    scene = DECODE if name in ("decode", "truncated") else TRAIN
    hosts = [FEATURES[name]()] if name in FEATURES else simulated(scene)
    if name in GROUPS:
        hosts = [engines_space(GROUPS[name]).SerializeToString()]
    if name == "truncated":
        hosts = [hosts[0][: len(hosts[0]) // 2]]
    if name == "several-hosts":  # the third one's file is cut off
        hosts = [*hosts[:2], hosts[2][: len(hosts[2]) * 2 // 3], hosts[3]]
    return str(write_run(folder, **{f"host{number}": data for number, data in enumerate(hosts)}))


ASKED = {"facts": True}
"""Options with which pages show more."""


def documents(path: str) -> Documents:
    """The JSON of every page that the run at a path has."""
    (run,) = open_logdir(path).runs
    return _documents(run, Session(run))


def _documents(run: Run, session: Session) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for page in PAGES:
        if page.is_of_arrays:
            continue
        report = page.load_report()
        wanted = {name: value for name, value in ASKED.items() if name in page.options}
        options: dict[str, Any] = {**dict.fromkeys(page.options), **wanted}
        asked = asked_of(run, "json", limit=0, session=lambda _: session, **options)
        try:
            content = report.read(asked)
        except ProfileError:  # it has nothing for this page
            continue
        found[page.name] = json.loads(whole(report.writers["json"](content, asked)))
    return found


@cache
def keys_of(page: str) -> Mapping[str, Described]:
    """What `--describe` says of a page's keys."""
    report = next(each for each in PAGES if each.name == page).load_report()
    return {row.key: row for row in described(report)}


How = Literal["each", "sum", "mean", "count", "first"]


@dataclass(frozen=True)
class At:
    """Where a page shows a quantity.

    Attributes:
        page: its name.
        key: as `--describe` has it, or several with `` + `` between, which add up to it.
        where: of which rows: the value of another of their keys, or several with a bar between; empty for all.
        how: whether each row has one, or what is done with all rows.
        by: the key that names the rows; those of one name are left out. Empty where rows are in one order everywhere.
    """

    page: str
    key: str
    where: str = ""
    how: How = "each"
    by: str = ""

    def __str__(self) -> str:
        how = f"{self.how} of " if self.how not in ("each", "first") else ""
        return f"{self.page}: {how}{self.key}{f' ({self.where})' * bool(self.where)}"

    @property
    def keys(self) -> tuple[str, ...]:
        """Those of `--describe`."""
        return tuple(self.key.split(" + "))

    @property
    def meaning(self) -> str:
        """What `--describe` says of it."""
        return "; ".join(keys_of(self.page)[key].meaning for key in self.keys)

    def read(self, shown: Documents) -> Any:
        """A figure, a list of figures or figures by name; None where the page is not there or does not know it."""
        if self.page not in shown:
            return None
        parts = [self._one(shown[self.page], key) for key in self.keys]
        if len(parts) == 1:
            return parts[0]
        if None in parts:
            return None
        return [sum(each) for each in zip(*parts, strict=True)] if isinstance(parts[0], list) else sum(parts)

    def _one(self, document: Any, whole: str) -> Any:
        unit = keys_of(self.page)[whole].unit
        rows, _, last = whole.rpartition("[].")
        if not rows:
            return in_base_units(next(values(document, whole), None), unit)
        key, _, chosen = self.where.partition("=")
        found: list[tuple[str, Any]] = []
        for row in values(document, f"{rows}[]"):
            if not key or str(next(values(row, key))) in chosen.split("|"):
                name = str(next(values(row, self.by))) if self.by else ""
                found.append((name, in_base_units(next(values(row, last), None), unit)))
        figures = [value for _, value in found]
        if self.how == "count":
            return len(found)
        if self.how == "first":
            return figures[0] if figures else None
        if self.how in ("sum", "mean"):
            if not found and next(values(document, rows), None) == []:
                return None  # there are no rows at all
            if None in figures or (self.how == "mean" and not figures):
                return None
            return sum(figures) / (len(figures) if self.how == "mean" else 1)
        if not self.by:
            return figures or None
        names = Counter(name for name, _ in found)
        return {name: value for name, value in found if names[name] == 1}


BASE = {"fraction, 0-1": 100.0, "ps": 1e-9, "count": 1.0}
"""What figures are multiplied with to be in percent and in milliseconds."""


def in_base_units(value: Any, unit: str) -> Any:
    """A figure in milliseconds or percent, whichever unit the page has it in."""
    return value * BASE[unit] if unit in BASE and isinstance(value, int | float) else value


def values(document: Any, key: str) -> Iterator[Any]:
    """What stands at a dotted key; `[]` goes through the elements of a list; nothing is within null."""
    head, _, rest = key.partition(".")
    name, is_list = head.removesuffix("[]"), head.endswith("[]")
    if not isinstance(document, dict) or name not in document:
        return
    for each in document[name] or () if is_list else (document[name],):
        yield from values(each, rest) if rest else (each,)
