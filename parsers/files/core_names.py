"""What a core is called: one name in every answer, and the other names that profiles and their viewers have for it.

Every answer says ``host0:2``: the host, and the number in the name of the core's plane. A question may use any name
that stands somewhere: that of the plane (``/device:TPU:2``), that of the timeline and of XProf's trace viewer
(``Chip 2: TPU core 0``), each with or without its host, or the number alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern

_WHOSE = r"(?:(?P<host>.+?)(?: / |[: /]))?"
_TITLE = pattern(_WHOSE + r"Chip (?P<chip>[0-9]{1,10}): TPU core (?P<core>[0-9]{1,10})", re.ASCII | re.IGNORECASE)
_PLANE = pattern(
    _WHOSE + r"(?:/device:[TG]PU:|(?<!/device:)[TG]PU[: ])(?P<number>[0-9]{1,10})", re.ASCII | re.IGNORECASE
)
_NUMBER = pattern(r"(?:(?P<host>.*):)?(?P<chip>chip ?)?(?P<number>[0-9]{1,10}(?:,[0-9]{1,10})*)", re.ASCII | re.DOTALL)
_GROUP = pattern(r"group ?(?P<number>[0-9]{1,6})", re.ASCII | re.IGNORECASE)
_DEVICE_PLANE = pattern(
    r"(?P<kind>/device:[TG]PU:)(?P<number>[0-9]{1,99})(?P<sparse> SparseCore[ x]*[0-9]+)?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class CoreName:
    """A core, or a chip, as a question names it.

    Attributes:
        host: whose it is; empty where the name does not say.
        core: ``2``, ``chip1``, or several cores, ``0,2``, as `HostFile.core` has it; empty where the name is a title.
        title: ``Chip 2: TPU core 0``, of which only the profile knows the number; empty for other names.
    """

    host: str
    core: str
    title: str = ""


def core_label(host: str, core: int | str) -> str:
    """The one name of a core, or of a chip: ``host0:2``."""
    return f"{host}:{core}"


def host_of(core: str) -> str:
    """The host in the name of a core."""
    return core.rpartition(":")[0]


def label_of_plane(host: str, plane: str) -> str:
    """The name of the core that a plane is of, ``host0:2``, or ``host0:2 SparseCore 1``; empty for other planes."""
    match = _DEVICE_PLANE.fullmatch(plane)
    if match is None:
        return ""
    return core_label(host, match["number"]) + (match["sparse"] or "").replace("SparseCore x", "SparseCore ")


def told_apart(planes: Sequence[str]) -> list[str]:
    """The names of a file's planes, in which each device has a number of its own.

    A file that was joined of the profiles of several processes has several planes of one name, and each is a core of
    its own. Those of the second process go on counting where the first one's end.
    """
    matches = [_DEVICE_PLANE.fullmatch(name) for name in planes]
    if len(set(planes)) == len(planes):
        return list(planes)
    seen: Counter[str] = Counter()
    step = 1 + max((int(match["number"]) for match in matches if match is not None), default=0)
    apart = []
    for name, match in zip(planes, matches, strict=True):
        if match is not None and seen[name]:
            number = int(match["number"]) + seen[name] * step
            apart.append(f"{match['kind']}{number}{match['sparse'] or ''}")
        else:
            apart.append(name)
        seen[name] += 1
    return apart


def title_of(chip: int, core: int) -> str:
    """How the timeline, as XProf's trace viewer, calls a TensorCore: by its chip, and its number there."""
    return f"Chip {chip}: TPU core {core}"


def core_named(text: str) -> CoreName | None:
    """What a question calls a core or a chip; None for a text that is none of the names."""
    text = text.strip()
    if (match := _TITLE.fullmatch(text)) is not None:
        return CoreName(match["host"] or "", "", title_of(int(match["chip"]), int(match["core"])))
    if (match := _PLANE.fullmatch(text)) is not None:
        return CoreName(match["host"] or "", str(int(match["number"])))
    if (match := _NUMBER.fullmatch(text)) is not None:
        numbers = ",".join(str(int(number)) for number in match["number"].split(","))
        return CoreName(match["host"] or "", f"{'chip' if match['chip'] else ''}{numbers}")
    return None


def group_named(text: str) -> int | None:
    """The number of a group of cores, ``group 2``; None for a text that names none."""
    match = _GROUP.fullmatch(text.strip())
    return None if match is None else int(match["number"])


BETWEEN_HOSTS = "; "
"""Stands between the cores of several hosts, ``host0:0,1; host1:0``."""


def labels_together(cores: Sequence[str]) -> str:
    """Some cores by one name, ``host0:0,1; host1:0``."""
    by_host: dict[str, list[str]] = {}
    for core in cores:
        by_host.setdefault(host_of(core), []).append(core.rpartition(":")[2])
    return BETWEEN_HOSTS.join(core_label(host, ",".join(numbers)) for host, numbers in by_host.items())
