"""What the fence reads of the reference data. Each is copied into a folder and gives its calls."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.fence.reports import OF_LOGS, OF_ONE_RUN, OF_TWO_RUNS, Call, copied, reports, stamped

REAL = {
    "v6e": "profiles/tpu-v6e-inference",
    "v100": "profiles/gpu-v100-bert",
    "mi300": "profiles/gpu-mi300-jax",
    "cpu-only": "profiles/cpu-only",
    "broken": "profiles/broken",
    "synthetic-a": "golden/synthetic-a/host0.xplane.pb",
    "synthetic-b": "golden/synthetic-b/host0.xplane.pb",
    "synthetic-c": "golden/synthetic-c/host0.xplane.pb",
}


def whole(name: str, shared: Path, root: Path) -> Sequence[Call]:
    """One of `REAL`."""
    source = shared / REAL[name]
    if source.suffix == ".pb":
        copied(source, root / name / source.name)
    else:
        copied(source, root / name)
    return reports(name)


def cut(shared: Path, root: Path) -> Sequence[Call]:
    """What is left of a real profile whose second half is missing."""
    source = next((shared / REAL["v6e"]).rglob("*.xplane.pb"))
    target = root / "cut" / source.name
    target.parent.mkdir()
    target.write_bytes(source.read_bytes()[: source.stat().st_size // 2])
    stamped(target.parent)
    return reports("cut")


def hosts(shared: Path, root: Path) -> Sequence[Call]:
    """Hosts of one run: whole ones, one cut off, one empty."""
    folder = root / "hosts" / "plugins" / "profile" / "run"
    for number, name in enumerate(("synthetic-a", "synthetic-b", "synthetic-a", "synthetic-h1")):
        copied(shared / "golden" / name / "host0.xplane.pb", folder / f"host{number}.xplane.pb")
    third = folder / "host2.xplane.pb"
    content = third.read_bytes()
    third.write_bytes(content[: len(content) * 2 // 3])
    (folder / "host4.xplane.pb").write_bytes(b"")
    stamped(folder)
    one_host = [("overview", "--host", "host1", "--format", "json"), ("ops", "--host", "host9")]
    return reports("hosts", [*OF_ONE_RUN, *one_host])


def two_runs(shared: Path, root: Path) -> Sequence[Call]:
    """Two runs compared: of one program, and of two different ones."""
    for name in ("synthetic-a", "synthetic-b", "synthetic-c"):
        copied(shared / "golden" / name / "host0.xplane.pb", root / name / "host0.xplane.pb")
    copied(shared / REAL["v6e"], root / "v6e")
    pairs = (("synthetic-a", "synthetic-b"), ("synthetic-c", "synthetic-a"), ("synthetic-a", "v6e"))
    return [("diff", before, after, *options) for before, after in pairs for options in OF_TWO_RUNS]


def logs(shared: Path, root: Path) -> Sequence[Call]:
    """Out-of-memory triage of every real error text."""
    folder = root / "logs"
    folder.mkdir()
    for log in sorted((shared / "oom").glob("*.txt")):
        shutil.copy(log, folder / log.name)
    names = sorted(path.name for path in folder.iterdir())
    return [("oom", f"logs/{log}", *options) for log in names for options in OF_LOGS]


PROFILES: Mapping[str, Callable[[Path, Path], Sequence[Call]]] = {
    **{name: partial(whole, name) for name in REAL},
    "cut": cut,
    "hosts": hosts,
    "diff": two_runs,
    "oom": logs,
}
"""Each takes the folder of the reference data and an empty one."""
