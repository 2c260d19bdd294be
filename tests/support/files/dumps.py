"""A genuine dump of XLA: what ``--xla_dump_to`` wrote of a training step on a CPU, as texts and as a proto."""

from __future__ import annotations

import zipfile
from pathlib import Path

DUMP = Path(__file__).parents[2] / "parsers" / "formats" / "hlo" / "dump.zip"
"""JAX 0.10.2 with ``--xla_dump_hlo_as_text --xla_dump_hlo_as_proto``; the files of the last stage."""

STEM = "module_0006.jit_train_step.cpu_after_optimizations"


def dumped(folder: Path, *ends: str) -> Path:
    """Puts files of the dump into a folder: those whose names end so behind `STEM`."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(DUMP) as archive:
        for end in ends:
            (folder / f"{STEM}{end}").write_bytes(archive.read(f"dump/{STEM}{end}"))
    return folder


TEXTS = (".txt", "-buffer-assignment.txt", "-live-range.txt", "-buffer-assignment-values.txt")
