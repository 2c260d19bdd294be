"""Picks the format of the op pages' reports; each format's module is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.hlo.modules import Instruction
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.ops.roofline import RooflinePage
from tpuprof.parsers.session.session import Session
from tpuprof.tui.report.render import Format, Look

OpPage = Literal["ops", "op-profile", "framework-ops", "roofline"]


def op_report(
    name: OpPage, session: Session, host: str | None, run: Run, form: Format, look: Look, limit: int = 0
) -> tuple[str, tuple[str, ...]]:
    """One of the op pages in a format, and the warnings that go with it; at most `limit` rows, 0 for all."""
    if name == "ops":
        ops = session.ops(host)
        return _ops(ops, run, form, look, limit), ops.warnings
    if name == "op-profile":
        profile = session.op_profile(host)
        return _op_profile(profile, session.modules(host), run, form, look, limit), profile.ops.warnings
    if name == "framework-ops":
        page = session.framework_ops(host)
        return _framework_ops(page, session.ops(host), run, form, look, limit), page.warnings
    roofline = session.roofline(host)
    return _roofline(roofline, run, form, look, limit), roofline.ops.warnings


def _ops(page: OpsPage, run: Run, form: Format, look: Look, limit: int) -> str:
    if form == "json":
        from tpuprof.tui.pages.ops.report.json import ops_json  # noqa: PLC0415

        return ops_json(page, run, limit)
    if form == "csv":
        from tpuprof.tui.pages.ops.report.csv import ops_csv  # noqa: PLC0415

        return ops_csv(page, limit)
    if form == "md":
        from tpuprof.tui.pages.ops.report.markdown import ops_markdown  # noqa: PLC0415

        return ops_markdown(page, run, limit)
    from tpuprof.tui.pages.ops.report.text import ops_text  # noqa: PLC0415
    from tpuprof.tui.report.text_report import glyphs_for  # noqa: PLC0415

    return ops_text(page, run, look.width, glyphs_for(look.ascii_only, look.color), limit, look.color)


def _op_profile(
    page: OpProfilePage, modules: Sequence[HloModules], run: Run, form: Format, look: Look, limit: int
) -> str:
    if form == "json":
        from tpuprof.tui.pages.ops.report.op_profile_json import op_profile_json  # noqa: PLC0415

        return op_profile_json(page, run, limit, lambda row: fused(page.ops, modules, row))
    if form == "csv":
        from tpuprof.tui.pages.ops.report.csv import op_profile_csv  # noqa: PLC0415

        return op_profile_csv(page, limit)
    if form == "md":
        from tpuprof.tui.pages.ops.report.markdown import op_profile_markdown  # noqa: PLC0415

        return op_profile_markdown(page, run, limit)
    from tpuprof.tui.pages.ops.report.text import op_profile_text  # noqa: PLC0415
    from tpuprof.tui.report.text_report import glyphs_for  # noqa: PLC0415

    return op_profile_text(page, run, look.width, glyphs_for(look.ascii_only, look.color), limit, look.color)


def fused(ops: OpsPage, modules: Sequence[HloModules], row: int) -> Sequence[Instruction]:
    """The instructions inside a fusion, none where it is no fusion or the profile lacks its module."""
    if not (ops.table.category[row] or "").endswith("fusion"):
        return ()
    program = int(ops.table.program_id[row])
    found = (known.module(program) for known in modules if program in known.names)
    module = next((module for module in found if module is not None), None)
    return () if module is None else module.fused(ops.table.name[row])


def _framework_ops(page: FrameworkOpsPage, ops: OpsPage, run: Run, form: Format, look: Look, limit: int) -> str:
    if form == "json":
        from tpuprof.tui.pages.ops.report.json import framework_ops_json  # noqa: PLC0415

        return framework_ops_json(page, ops, run, limit)
    if form == "csv":
        from tpuprof.tui.pages.ops.report.csv import framework_ops_csv  # noqa: PLC0415

        return framework_ops_csv(page, ops, limit)
    if form == "md":
        from tpuprof.tui.pages.ops.report.markdown import framework_ops_markdown  # noqa: PLC0415

        return framework_ops_markdown(page, ops, run, limit)
    from tpuprof.tui.pages.ops.report.text import framework_ops_text  # noqa: PLC0415
    from tpuprof.tui.report.text_report import glyphs_for  # noqa: PLC0415

    return framework_ops_text(page, ops, run, look.width, glyphs_for(look.ascii_only, look.color), limit, look.color)


def _roofline(page: RooflinePage, run: Run, form: Format, look: Look, limit: int) -> str:
    if form == "json":
        from tpuprof.tui.pages.ops.report.json import roofline_json  # noqa: PLC0415

        return roofline_json(page, run, limit)
    if form == "csv":
        from tpuprof.tui.pages.ops.report.csv import roofline_csv  # noqa: PLC0415

        return roofline_csv(page, limit)
    if form == "md":
        from tpuprof.tui.pages.ops.report.markdown import roofline_markdown  # noqa: PLC0415

        return roofline_markdown(page, run, limit)
    from tpuprof.tui.pages.ops.report.text import roofline_text  # noqa: PLC0415
    from tpuprof.tui.report.text_report import glyphs_for  # noqa: PLC0415

    return roofline_text(page, run, look.width, glyphs_for(look.ascii_only, look.color), limit, look.color)
