"""Adds faults that a run of `tests.fuzz` has kept to the past failures."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.fuzz.corpus import keep

for path in map(Path, sys.argv[1:]):
    target, _, number = path.name.rpartition("-")
    keep(target, int(number), path.read_bytes())
