"""The tracebacks of optional parts that failed, for `--debug`: a page was shown without them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tpuprof.parsers.base.errors import LOGGER
from tpuprof.parsers.base.urls import masked
from tpuprof.tui.report.output import write_stderr


class FailedParts(logging.Handler):
    """Keeps what is logged, each text once, and prints it when the command ends: a screen may be in the way before."""

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__()
        self._arguments, self._texts = arguments, dict[str, None]()

    def emit(self, record: logging.LogRecord) -> None:
        self._texts[masked(self.format(record), self._arguments)] = None

    def __enter__(self) -> None:
        logging.getLogger(LOGGER).addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger(LOGGER).removeHandler(self)
        write_stderr("".join(f"{text}\n" for text in self._texts))
