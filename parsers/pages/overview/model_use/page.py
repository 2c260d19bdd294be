"""The page on how a model runs: its use of the peak, its blocks and layers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.words import NO_TIMED_STEPS
from tpuprof.parsers.formats.hlo.programs import module_of
from tpuprof.parsers.ops.table import OpTable, merge_tables
from tpuprof.parsers.pages.overview.accounts_of_ops import NOT_IN_STEPS
from tpuprof.parsers.pages.overview.model import OP_ACCOUNTS, OVERVIEW
from tpuprof.parsers.pages.overview.model_use import blocks as by_block
from tpuprof.parsers.pages.overview.model_use.blocks import BlockRow, Blocks
from tpuprof.parsers.pages.overview.model_use.hlo_flow import Placed
from tpuprof.parsers.pages.overview.model_use.model_use import ModelUse, model_use
from tpuprof.parsers.pages.overview.model_use.samples import NO_PROGRAM, NO_TRAINING, Samples, samples_of
from tpuprof.parsers.pages.shared.common import device_of
from tpuprof.parsers.pages.shared.key import PageKey, PageSession
from tpuprof.parsers.pages.shared.modules import modules_in
from tpuprof.parsers.pages.shared.summaries import read
from tpuprof.parsers.steps.model import StepTime

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import HloModule


@dataclass(frozen=True, slots=True)
class ModelPage:
    """How a model runs.

    Attributes:
        hosts: names of the hosts that the figures cover.
        use: what of the peak it uses.
        blocks, layers: the mean step by block and pass, and by layer and block; each adds up to it. Empty if unknown.
        samples: tokens or samples of a step by its compiled program, or why these are unknown.
        step_time: how long steps take; None without any.
        warnings: about the profile itself.
        simulated: the profile says of itself that its times were composed, not measured.
        unknown: why `blocks` is empty.
    """

    hosts: tuple[str, ...]
    use: ModelUse
    blocks: tuple[BlockRow, ...]
    layers: tuple[BlockRow, ...]
    samples: Samples | str
    step_time: StepTime | None
    warnings: tuple[str, ...]
    simulated: bool
    unknown: Mapping[str, str] = field(default_factory=dict)


def model_use_of_run(session: PageSession, host: str | None) -> ModelUse:
    """What of the peak the program uses."""
    device = device_of(read(session, host).summaries)
    peak = None if device is None else device.peaks.flops_per_second
    return model_use(session.page(OVERVIEW, host).account, session.page(OP_ACCOUNTS, host), peak)


def model_of_run(session: PageSession, host: str | None) -> ModelPage:
    """The whole page."""
    page, use, of_ops = session.page(OVERVIEW, host), session.page(MODEL_USE, host), session.page(OP_ACCOUNTS, host)
    found = read(session, host)
    table = merge_tables([summary.table for summary in found.summaries])
    module = partial(module_of, modules_in(session, found.files))
    failed: list[str] = []
    flow = by_block.flow_of(module, failed)
    unknown: dict[str, str] = {}
    blocks, places, samples = Blocks((), ()), list[Placed](), _UNKNOWN_SAMPLES
    if of_ops is None or page.account is None:
        unknown["blocks"] = NO_TIMED_STEPS if page.account is None else NOT_IN_STEPS
    else:
        places = by_block.places_of(table, flow)
        steps = len(page.account.steps)
        blocks = by_block.model_blocks(of_ops, table, places, len(page.account.cores), steps, use.peak)
        unknown |= by_block.unnamed(blocks)
    if page.account is not None:
        places = places or by_block.places_of(table, flow)
        look = partial(_samples, module(_step_program(table)), places, len(page.account.cores))
        samples = behind_wall("count the samples of a step", look, failed) or _UNKNOWN_SAMPLES
    return ModelPage(
        hosts=page.hosts,
        use=use,
        blocks=blocks.blocks,
        layers=blocks.layers,
        samples=samples,
        step_time=page.performance.step_time,
        warnings=(*page.warnings, *failed),
        simulated=page.environment.simulated,
        unknown=unknown,
    )


_UNKNOWN_SAMPLES: Samples | str = NO_TIMED_STEPS


def _step_program(table: OpTable) -> int:
    """The program whose ops take most time in steps, or most where no step is known; 0 without any."""
    times = np.maximum(table.in_steps_ps if table.in_steps_ps.any() else table.self_ps, 0)
    if not len(times):
        return 0
    programs, group = np.unique(table.program_id, return_inverse=True)
    return int(programs[np.bincount(group, times).argmax()])


def _samples(hlo: HloModule | None, places: list[Placed], cores: int) -> Samples | str:
    if hlo is None:
        return NO_PROGRAM
    if not any(place.phase == "backward" for place in places):
        return NO_TRAINING
    return samples_of(hlo, any(place.block == "attention" for place in places), cores)


MODEL_USE = PageKey(model_use_of_run)
MODEL = PageKey(model_of_run)
