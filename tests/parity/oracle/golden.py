"""The profiles that XProf's stored answers are about, and the answers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

PROFILES = {
    "synthetic-a": "golden/synthetic-a/host0.xplane.pb",
    "synthetic-b": "golden/synthetic-b/host0.xplane.pb",
    "synthetic-c": "golden/synthetic-c/host0.xplane.pb",
    "synthetic-h1": "golden/synthetic-h1/host0.xplane.pb",
    "tpu-v6e-inference": "profiles/tpu-v6e-inference/plugins/profile/run/host0.xplane.pb",
}
"""The file of each, in the folder of reference data."""


def golden_answer(shared: Path, profile: str, tool: str) -> Any:
    """XProf's stored answer of one tool (``hlo_stats``) for one profile."""
    file = shared / "golden" / profile / f"{tool}.json"
    return json.loads(file.read_bytes() if file.exists() else gzip.decompress(Path(f"{file}.gz").read_bytes()))
