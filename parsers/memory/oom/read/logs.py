"""Several logs of one job, as one: hosts of a job report the same error, which counts once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from tpuprof.parsers.memory.oom.model import OomLog, OomReport


def joined(names: Sequence[str], logs: Sequence[OomLog]) -> OomLog:
    """The errors of some logs, each once, in order of the logs; one log stays as it is.

    Args:
        names: what people call each log.
    """
    if len(logs) == 1:
        return logs[0]
    keys, kept = list[OomReport](), list[OomReport]()
    for name, log in zip(names, logs, strict=True):
        for report in log.reports:
            key = replace(report, at_line=0, count=1, device=None, unknown={})
            if key in keys:
                place = keys.index(key)
                kept[place] = replace(kept[place], count=kept[place].count + report.count)
            else:
                keys.append(key)
                kept.append(replace(report, log=name))
    return OomLog(
        reports=tuple(kept),
        notes=tuple(f"{name}: {note}" for name, log in zip(names, logs, strict=True) for note in log.notes),
        lines=sum(log.lines for log in logs),
        bytes_read=sum(log.bytes_read for log in logs),
        dumps=tuple(dict.fromkeys(chain.from_iterable(log.dumps for log in logs))),
    )
