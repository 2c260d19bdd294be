"""Profiles and files made of seeds whose messages were changed, in all the ways that they are packed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

from tests.demo.profile.hlo_module import Module
from tests.fence.profiles import DECODE, FEATURES, simulated
from tests.fuzz.mutate import mutated
from tests.fuzz.structure import containers, graphs, messages, wire
from tests.fuzz.structure.documents import changed_kept, changed_trace
from tests.support.build import tpu_plane
from tests.support.composed import slices
from tests.support.files.chrome import packed, xprof_trace
from tests.support.files.hlo_graphs import SMALL
from tests.support.files.pprof import pprof, training
from tests.support.made.op_pages import op_space
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

_FILES = (
    "host0.xplane.pb",
    "host1.xplane.pb.gz",
    "m.hlo_proto.pb",
    "host0.trace.json.gz",
    "memory.prof",
    "a/b/c.xplane.pb",
)


@cache
def profiles() -> tuple[bytes, ...]:
    """One of each kind: of TPUs, GPUs, a CPU, SparseCores, counters, requests, two slices, an inference."""
    small = XSpace()
    ops = [("fusion.1", "loop fusion", n * 100, 50) for n in range(4)]
    tpu_plane(small, 0, ops, steps=[(str(n), n * 100, (n + 1) * 100) for n in range(4)])
    spaces = (small, op_space())
    made = [made() for made in FEATURES.values()]
    return (*(space.SerializeToString() for space in spaces), *made, slices.host_bytes("host0"), *simulated(DECODE))


@cache
def modules() -> tuple[bytes, ...]:
    """Compiled modules; and small ones: a loop, products and convolutions, calls and branches."""
    small = read_module_text("small", SMALL.splitlines())
    compiled = (Module(name).proto_bytes for name in ("jit_train_step", "jit_eval_step"))
    return (*compiled, *(each.SerializeToString() for each in (small, *graphs.modules())))


@cache
def _traces() -> tuple[bytes, ...]:
    """Each profile's trace, as XProf writes it."""
    return tuple(xprof_trace(XSpace.FromString(data)) for data in profiles()[:-2])


def profile(rng: random.Random) -> bytes:
    """A profile with some of its messages changed."""
    data = messages.changed(rng, rng.choice(profiles()), XSpace, profiles())
    if rng.random() < 0.1:
        data = messages.joined(rng, data, rng.choice(profiles()))
    return data


def module(rng: random.Random) -> bytes:
    """A compiled module with some of its messages changed; in gzip at times."""
    data = messages.changed(rng, rng.choice(modules()), HloProto, modules())
    if rng.random() < 0.3:
        data = graphs.with_changed_heap(rng, data)
    return containers.gzipped(rng, data) if rng.random() < 0.2 else data


def product(rng: random.Random) -> bytes:
    """A module with a matrix product, changed."""
    seeds = tuple(each.SerializeToString() for each in graphs.products())
    return messages.changed(rng, rng.choice(seeds), HloProto, seeds)


def riegeli(rng: random.Random) -> bytes:
    """Records of a changed profile; in gzip at times."""
    data = containers.riegeli(rng, profile(rng))
    return containers.gzipped(rng, data) if rng.random() < 0.1 else data


def trace(rng: random.Random) -> bytes:
    """A Chrome trace with some of its events changed, its text damaged at times before it is packed."""
    data = changed_trace(rng, rng.choice(_traces()))
    if rng.random() < 0.2:
        data = mutated(rng, data)
    return containers.gzipped(rng, data) if rng.random() < 0.5 else packed(data)


def arrays(rng: random.Random) -> bytes:
    """A device memory profile with fields or bytes changed before they are packed; nothing, or too much, at times."""
    if rng.random() < 0.02:
        return rng.choice((b"", containers.gzipped(rng, bytes(9 << 20))))
    data = pprof(training(step=rng.randrange(4)), packed=rng.random() < 0.5, names_first=rng.random() < 0.5)
    data = wire.changed(rng, data) if rng.random() < 0.7 else mutated(rng, data)
    return data if rng.random() < 0.1 else containers.gzipped(rng, data)


def kept(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """What was kept, its tree changed."""
    return changed_kept(rng, rng.choice(seeds))


def archive(rng: random.Random) -> bytes:
    """Files of all kinds in a tar or zip."""
    members = [_member(rng) for _ in range(rng.choice((1, 1, 2, 4)))]
    if rng.random() < 0.01:
        members.append(("host9.xplane.pb", bytes(12 << 20)))  # more than a small file may be inflated to
    return (containers.tar if rng.random() < 0.5 else containers.zipped)(rng, members)


def _member(rng: random.Random) -> tuple[str, bytes]:
    name = rng.choice(_FILES)
    data: bytes
    if name.endswith(".gz") and "xplane" in name:
        data = containers.gzipped(rng, profile(rng))
    elif name.startswith("m."):
        data = module(rng)
    elif "trace" in name:
        data = trace(rng)
    elif name.endswith(".prof"):
        data = arrays(rng)
    else:
        data = profile(rng)
    return rng.choice(("", "", "run/", "plugins/profile/2026_01_01_00_00_00/", "/", "../")) + name, data
