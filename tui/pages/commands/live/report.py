"""A reading of the chips as a line of text or JSON, for logs and pipes, or as Markdown."""

from __future__ import annotations

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.capture.runtime_metrics import Reading, headline
from tpuprof.tui.draw.format import utc
from tpuprof.tui.pages.commands.live.fields import AFTER_DEVICES, BEFORE_DEVICES, DEVICES, Told
from tpuprof.tui.report.fields import figure_reasons, figure_values, first, reasons, table_records
from tpuprof.tui.report.json import line, schema
from tpuprof.tui.report.markdown import escaped, joined, main_table
from tpuprof.tui.report.page import CommandReport, Look


def read(reading: Reading, before: Reading | None) -> Told:
    """A reading beside the one before it."""
    return Told(reading, before)


def json(told: Told, _: Look, limit: int) -> str:
    """One line."""
    devices = told.reading.devices
    body = {
        "schema": schema("live"),
        **figure_values(BEFORE_DEVICES, told),
        DEVICES.key: table_records(DEVICES, devices, first(len(devices), limit)),
        **figure_values(AFTER_DEVICES, told),
    }
    why = figure_reasons(AFTER_DEVICES) | reasons(DEVICES.fields, "devices[]", {})
    return line(body, why | {f"devices[].{name}": reason for name, reason in told.reading.unknown.items()})


def markdown(told: Told, _: Look, limit: int) -> str:
    """The sentence, and a row a device."""
    devices = told.reading.devices
    shown = first(len(devices), limit)
    return joined([escaped(headline(told.reading)), *main_table("Devices", DEVICES, devices, shown, len(devices))])


def text(told: Told, _: Look, __: int) -> str:
    """The time and the sentence, one line for a log."""
    silent = "".join(f" {printable(address)}: {reason}." for address, reason in told.reading.silent.items())
    return f"{utc(told.reading.time_seconds)} {headline(told.reading)}{silent}\n"


REPORT = CommandReport(
    read=read,
    writers={"json": json, "md": markdown, "text": text},
    tables=(DEVICES,),
    figures=(*BEFORE_DEVICES, *AFTER_DEVICES),
)
