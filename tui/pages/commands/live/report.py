"""A reading of the chips as a line of text or JSON, for logs and pipes, or as Markdown."""

from __future__ import annotations

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.capture.runtime_metrics import headline
from tpuprof.tui.draw.format import utc
from tpuprof.tui.pages.commands.live.fields import AFTER_DEVICES, BEFORE_DEVICES, DEVICES, ReadingPair
from tpuprof.tui.report.declared import Metrics, Section, values_of
from tpuprof.tui.report.json import line, schema
from tpuprof.tui.report.markdown import escaped, joined
from tpuprof.tui.report.page import CommandReport, TextLook


def json(pair: ReadingPair, _: TextLook, limit: int) -> str:
    """One line."""
    devices = Section(DEVICES, pair.reading.devices, limit=limit)
    held = values_of((Metrics(BEFORE_DEVICES, pair), devices, Metrics(AFTER_DEVICES, pair)))
    why = {f"devices[].{name}": reason for name, reason in pair.reading.unknown.items()}
    return line({"schema": schema("live"), **held.values}, {**held.reasons, **why})


def markdown(pair: ReadingPair, _: TextLook, limit: int) -> str:
    """The sentence, who did not answer, and a row a device."""
    devices = Section(DEVICES, pair.reading.devices, "Devices", limit)
    silent = [escaped(f"{address}: {reason}.") for address, reason in pair.reading.silent.items()]
    return joined([escaped(headline(pair.reading)), *silent, *devices.markdown()])


def text(pair: ReadingPair, _: TextLook, __: int) -> str:
    """The time and the sentence, one line for a log."""
    silent = "".join(f" {printable(address)}: {reason}." for address, reason in pair.reading.silent.items())
    return f"{utc(pair.reading.time_seconds)} {headline(pair.reading)}{silent}\n"


REPORT = CommandReport(ReadingPair, {"json": json, "md": markdown, "text": text})
