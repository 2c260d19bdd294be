"""What a core is called: one name in every answer, and the other names that profiles and their viewers have for it.

Every answer says ``host0:2``: the host, and the number in the name of the core's plane. A question may use any name
that stands somewhere: that of the plane (``/device:TPU:2``), that of the timeline and of XProf's trace viewer
(``Chip 2: TPU core 0``), each with or without its host, or the number alone.
"""

from __future__ import annotations

import re

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern

_WHOSE = r"(?:(?P<host>.+?)(?: / |[: ]))?"
_TITLE = pattern(_WHOSE + r"Chip (?P<chip>[0-9]{1,10}): TPU core (?P<core>[0-9]{1,10})", re.ASCII | re.IGNORECASE)
_PLANE = pattern(_WHOSE + r"(?:/device:[TG]PU:|[TG]PU )(?P<number>[0-9]{1,10})", re.ASCII | re.IGNORECASE)
_NUMBER = pattern(r"(?:(?P<host>.*):)?(?P<chip>chip ?)?(?P<number>[0-9]{1,10})", re.ASCII | re.DOTALL)
_DEVICE_PLANE = pattern(r"/device:[TG]PU:(?P<number>[0-9]+)(?P<sparse> SparseCore[ x]*[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class CoreName:
    """A core, or a chip, as a question names it.

    Attributes:
        host: whose it is; empty where the name does not say.
        core: ``2`` or ``chip1``, as `HostFile.core` has it; empty where the name is a title.
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
        return CoreName(match["host"] or "", f"{'chip' if match['chip'] else ''}{int(match['number'])}")
    return None
