"""How the page on how a model runs is made, and what of it stands by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.words import NO_TIMED_STEPS
from tpuprof.parsers.formats.hlo.programs import module_of
from tpuprof.parsers.memory.model import HBM, SpaceMemory
from tpuprof.parsers.ops.table import OpTable, merge_tables
from tpuprof.parsers.pages.common import device_of
from tpuprof.parsers.pages.overview.accounts_of_ops import NOT_IN_STEPS
from tpuprof.parsers.pages.overview.use import blocks as by_block
from tpuprof.parsers.pages.overview.use.blocks import Blocks
from tpuprof.parsers.pages.overview.use.goodput import goodput
from tpuprof.parsers.pages.overview.use.hlo_flow import HloFlow, Placed
from tpuprof.parsers.pages.overview.use.memory_blocks import MemoryRow, memory_blocks
from tpuprof.parsers.pages.overview.use.model_use import ModelUse
from tpuprof.parsers.pages.overview.use.model_use import model_use as use_of
from tpuprof.parsers.pages.overview.use.page import ModelPage
from tpuprof.parsers.pages.overview.use.samples import NO_PROGRAM, NO_TRAINING, Samples, samples_of
from tpuprof.parsers.session.makers.ops.modules import modules_in
from tpuprof.parsers.session.makers.summaries import read
from tpuprof.parsers.session.pages import MEMORY, MODEL_USE, OP_ACCOUNTS, OVERVIEW

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import HloModule
    from tpuprof.parsers.session.session import Session


def model_use(session: Session, host: str | None) -> ModelUse:
    """What of the peak the program uses."""
    device = device_of(read(session, host).summaries)
    peak = None if device is None else device.peaks.flops_per_second
    return use_of(session.page(OVERVIEW, host).account, session.page(OP_ACCOUNTS, host), peak)


def model(session: Session, host: str | None) -> ModelPage:
    """The whole page."""
    page, use, of_ops = session.page(OVERVIEW, host), session.page(MODEL_USE, host), session.page(OP_ACCOUNTS, host)
    found = read(session, host)
    table = merge_tables([summary.table for summary in found.summaries])
    module = _programs(session, host)
    flow = by_block.flow_of(module)
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
        samples = _samples(module(_step_program(table)), places, len(page.account.cores))
    rows, memory, why = _memory(session, host, table, flow)
    if why:
        unknown["memory"] = why
    return ModelPage(
        hosts=page.hosts,
        use=use,
        blocks=blocks.blocks,
        layers=blocks.layers,
        goodput=goodput(page),
        samples=samples,
        step_time=page.performance.step_time,
        memory=rows,
        module=None if memory is None else str(memory.module),
        peak_bytes=None if memory is None else memory.peak_bytes,
        warnings=page.warnings,
        simulated=page.environment.simulated,
        unknown=unknown,
    )


_UNKNOWN_SAMPLES: Samples | str = NO_TIMED_STEPS


def _programs(session: Session, host: str | None) -> Callable[[int], HloModule | None]:
    return partial(module_of, modules_in(session, read(session, host).files))


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


def _memory(
    session: Session, host: str | None, table: OpTable, flow: Callable[[int], HloFlow | None]
) -> tuple[tuple[MemoryRow, ...], SpaceMemory | None, str]:
    """Blocks at the peak of the step's program, its memory, and why they are unknown."""
    program = _step_program(table)
    try:
        compiled = session.page(MEMORY, host)
        label = next((each for each in compiled.places if each.program_id == program), None)
        if label is None:
            return (), None, NO_PROGRAM
        memory = compiled.space(label, HBM)
    except ProfileError as error:
        return (), None, error.sentence
    of = flow(program)
    return ((), None, NO_PROGRAM) if of is None else (memory_blocks(memory, of), memory, "")
