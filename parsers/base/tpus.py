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


_CALLED = {"trillium": "TPU v6e", "ironwood": "TPU7x"}
_MACHINE = pattern(r"ct(\d)(e|l|lp|p)-\w+-\d+t", re.ASCII)
_OF_MACHINE = {"5l": "5e", "5lp": "5e", "4p": "4"}
_SLICE = pattern(r"[ -](?:podslice|slice|pod|standard-\d+t|\d+(?:x\d+){0,3}|chips?)\Z", re.ASCII)


def generation_named(text: str) -> str | None:
    """The generation that a person means: ``v6e``, ``TPU v4``, a slice (``v5litepod-8``), a machine of a cloud
    (``ct5lp-hightpu-4t``, ``tpu-v6e-slice``) or the name in public, ``Trillium``; None for anything else.
    """
    words = " ".join(text.lower().split())
    if (machine := _MACHINE.fullmatch(words)) is not None:
        words = machine[1] + machine[2]
        words = _OF_MACHINE.get(words, words)
    while words and generation_of(words) is None and (end := _SLICE.search(words)) is not None:
        words = words[: end.start()]
    words = words.removeprefix("google ").removeprefix("cloud ")
    return _CALLED.get(words.removeprefix("tpu ")) or generation_of(words) or generation_of(f"tpu {words}")
