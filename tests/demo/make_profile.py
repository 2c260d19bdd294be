"""Composes the demo profile, and larger ones for benchmarks, from the committed compiler output.

    python tests/demo/make_profile.py OUT.xplane.pb[.gz] [--steps N] [--cores N] [--size 50MB|250MB|1GB] [--seed N]

Shapes, op order, FLOPs, bytes and buffers are a TPU compiler's; every time is simulated. The same arguments give the
same bytes. Without arguments it rewrites the demo that the wheel carries.
"""

from __future__ import annotations

import argparse
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.demo.profile.device_plane import device_plane
from tests.demo.profile.host_plane import environment_plane, host_plane, metadata_plane
from tests.demo.profile.schedule import Template
from tests.demo.profile.timeline import DemoSpec, compose_timeline, programs
from tests.support.files.wire import field
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

DEMO_PATH = Path(__file__).parents[2] / "tui" / "demo" / "demo.xplane.pb.gz"
WARNING = b"times are simulated: composed from compiler output, not measured"
PROBE_STEPS = 20
STEP_MS = 247
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}


def chunks(spec: DemoSpec, plans: tuple[Template, ...], host: int = 0) -> Iterator[bytes]:
    """A host's XSpace, in pieces to write one after the other; one plane at a time is in memory."""
    timeline = compose_timeline(spec, plans, host)
    for core in range(spec.cores):
        yield from device_plane(timeline, core).chunks()
    for build in (metadata_plane, host_plane, environment_plane):
        yield from build(timeline).chunks()
    name = spec.hostname if spec.hosts == 1 else f"{spec.hostname}-{host}"
    yield field(3, WARNING) + field(4, name.encode())


def sized(spec: DemoSpec, plans: tuple[Template, ...]) -> DemoSpec:
    """The same profile with as many steps as its size asks for."""
    if spec.size_bytes is None:
        return spec
    steps = _steps_of(spec, plans)
    # Later events take more bytes for their times, so the middle of the profile shows what a step takes.
    middle = replace(spec, begin_ms=spec.begin_ms + steps * STEP_MS // 2)
    return replace(spec, steps=_steps_of(middle, plans), size_bytes=None)


def _steps_of(spec: DemoSpec, plans: tuple[Template, ...]) -> int:
    """Steps that fill `size_bytes`, by what a few more of them add."""
    few, more = (sum(map(len, chunks(replace(spec, steps=steps), plans))) for steps in (1, 1 + PROBE_STEPS))
    return max(1, 1 + round(((spec.size_bytes or 0) - few) * PROBE_STEPS / (more - few)))


def compose(spec: DemoSpec = DemoSpec(), host: int = 0) -> XSpace:  # noqa: B008 - frozen
    """The profile of one host as a message."""
    plans = programs()
    return XSpace.FromString(b"".join(chunks(sized(spec, plans), plans, host)))


def write_profile(path: Path, spec: DemoSpec = DemoSpec()) -> list[Path]:  # noqa: B008 - frozen
    """Writes the profile, gzipped where the name ends in ``.gz``; of several hosts, one file each (``-0``, ``-1`` …
    before the first dot). Returns the files."""
    plans = programs()
    spec = sized(spec, plans)
    paths = [path]
    if spec.hosts > 1:
        stem, dot, ending = path.name.partition(".")
        paths = [path.with_name(f"{stem}-{host}{dot}{ending}") for host in range(spec.hosts)]
    for host, target in enumerate(paths):
        with target.open("wb") as file:
            pieces: Iterable[bytes] = chunks(spec, plans, host)
            for piece in _gzipped(pieces) if target.suffix == ".gz" else pieces:
                file.write(piece)
    return paths


def _gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A gzip stream without name or time in its header."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def parse_size(text: str) -> int:
    """``250MB`` → 250000000."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(KB|MB|GB)", text.upper())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 50MB")
    return round(float(found[1]) * UNITS[found[2]])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", nargs="?", type=Path, default=DEMO_PATH)
    parser.add_argument("--steps", type=int, default=DemoSpec().steps)
    parser.add_argument("--cores", type=int, default=DemoSpec().cores)
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=parse_size, default=None)
    given = parser.parse_args(arguments)
    spec = DemoSpec(steps=given.steps, cores=given.cores, seed=given.seed, size_bytes=given.size, hosts=given.hosts)
    for path in write_profile(given.out, spec):
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
