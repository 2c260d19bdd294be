"""Types of TPU, as profiles, runtimes and people write them."""

from __future__ import annotations

import re

from tpuprof.parsers.base.regex import pattern

_TYPE = pattern(r"tpu[ _-]?v?(\d{1,2})[ _-]?(litepod|lite|[a-z]?)(?:[ _-]chip)?", re.ASCII)

_GENERATIONS = {
    **{"2": "TPU v2", "3": "TPU v3", "4": "TPU v4", "7x": "TPU7x"},
    **{"5lite": "TPU v5e", "5litepod": "TPU v5e", "5e": "TPU v5e", "6lite": "TPU v6e", "6e": "TPU v6e"},
    **{"5": "TPU v5p", "5p": "TPU v5p"},  # runtimes call a v5p just v5
}


def generation_of(device_type: str | None) -> str | None:
    """The usual name of a TPU generation: ``TPU v5e`` of ``TPU v5 lite``; None for others, GPUs and unknown types.

    ``TPU v5`` alone is a v5p: so its runtime calls it.
    """
    match = _TYPE.fullmatch(" ".join((device_type or "").lower().split()))
    return None if match is None else _GENERATIONS.get(match[1] + match[2])
