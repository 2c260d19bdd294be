"""What `compile_kernels.py` stored."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto

ARCHIVE = Path(__file__).parent / "kernels.zip"


@dataclass(frozen=True)
class Said:
    """What the compiler's texts say of a kernel: bundles, slots and their use by unit, bytes by allocation."""

    bundles: int
    slots: dict[str, int]
    used: dict[str, int]
    allocations: list[tuple[str, str, int]]


@cache
def stored(name: str) -> bytes:
    with zipfile.ZipFile(ARCHIVE) as archive:
        return archive.read(name)


def program(name: str) -> HloModule:
    proto = HloProto()
    proto.hlo_module.MergeFromString(stored(f"{name}.hlo.pb"))
    return HloModule(proto)


def said(name: str) -> Said:
    return Said(**json.loads(stored(f"{name}.json")))
