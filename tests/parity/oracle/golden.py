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
"""The file of each that has one host, in the folder of reference data."""

RUNS = (*PROFILES, "synthetic-k1", "synthetic-k4")
"""These and those of several hosts, of TPUs."""

GPUS = "synthetic-k5"
"""Two hosts with GPUs."""


def files_of(shared: Path, profile: str) -> dict[str, Path]:
    """The file of each host of a profile, by the host's name."""
    pattern = PROFILES.get(profile, f"golden/{profile}/*.xplane.pb")
    return {path.name.removesuffix(".xplane.pb"): path for path in sorted(shared.glob(pattern))}


def golden_answer(shared: Path, profile: str, tool: str, host: str = "") -> Any:
    """XProf's stored answer of one tool (``hlo_stats``) for one profile; of some tools, there is one a host."""
    folder = shared / "golden" / profile
    file = next(path for name in (f"{tool}.{host}", tool) for path in sorted(folder.glob(f"{name}.json*")))
    return json.loads(file.read_bytes() if file.suffix == ".json" else gzip.decompress(file.read_bytes()))
