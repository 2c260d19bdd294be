"""Replica groups: which devices take part in a collective together, as XLA writes it in three forms.

``{{0,1},{2,3}}`` lists the groups. ``[2,4]<=[4,2]T(1,0)`` counts up from 0 in an array of the dimensions behind the
arrow, transposes it, and cuts it into 2 groups of 4. ``mesh['data'=4,'model'=2] {'data'}`` names the axes of a mesh
along which a group lies; an axis may be a part of one, ``'data':(2)4``. (XLA: `collective_device_list.cc`,
`replica_group.h`.) A collective-permute has pairs of source and target instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2
    from tpuprof.parsers.ops.table import OpTable

_MOST_DEVICES = 1 << 20
_LONGEST = 1 << 16
"""So long a text of groups is looked at."""

_LISTED = pattern(r"replica_groups=\{(\{[0-9, ]*\}(?:, ?\{[0-9, ]*\})*)?\}")
_IOTA = pattern(r"replica_groups=\[(\d{1,9}),(\d{1,9})\]<=\[([\d,]{1,200})\](?:T\(([\d,]{1,100})\))?")
_MESH = pattern(r"replica_groups=@?mesh[^\[<{]{0,60}[\[<]([^\]>]{1,500})[\]>](?:[^{]{0,400}?)\{([^}]{0,300})\}")
_PAIRS = pattern(r"source_target_pairs=\{(\{[0-9, ]*\}(?:, ?\{[0-9, ]*\})*)\}")
_AXIS = pattern(r"'?([^'=,:\[\](){}<>]{1,60})'?(?:=(\d{1,9})|:\((\d{1,9})\)(\d{1,9}))?(?:,|\Z)")
_NEXT = pattern(r", [a-z_]{2,40}=")
_NUMBERED = pattern(r"axis_\d+")
_INNER = pattern(r"\{([0-9, ]*)\}")


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """The replica groups of a collective.

    Attributes:
        count: how many groups there are; size: how many devices the largest has. 0 for all devices in one group, which
            XLA writes as no group at all.
        distance: by how much the ids of a group's neighbours differ; None where that varies.
        axes: names of the mesh axes along which a group lies; empty where the compiler does not name them.
        are_pairs: whether these are sources and targets of a permute: `count` pairs.
    """

    count: int
    size: int
    distance: int | None
    axes: tuple[str, ...] = ()
    are_pairs: bool = False

    @property
    def label(self) -> str:
        """``4×8``: groups and the devices of each; ``all`` for one group of all."""
        if self.are_pairs:
            return f"{self.count} pairs"
        return f"{self.count}×{self.size}" if self.count else "all"

    @property
    def members(self) -> int:
        """How many devices wait for each other; 0 where that is unknown, as of pairs and of all devices."""
        return 0 if self.are_pairs else self.size

    @property
    def axis(self) -> str:
        """The mesh axes, ``data,model``; without names the distance of the ids, ``id+2``; empty where that varies."""
        if self.axes:
            return ",".join(self.axes)
        return f"id+{self.distance}" if self.distance is not None and self.count else ""


ALL = ReplicaGroups(0, 0, None)


def without_partners(devices: int, here: int) -> str:
    """A sentence where collectives run over more devices than are shown; empty where all are.

    The last of a group to come waits for nobody, so that the shortest time of all is the transfer. Without the others'
    times nobody knows whether those that are shown waited.
    """
    if not 0 < here < devices:
        return ""
    shown = f"{here:,} {'is' if here == 1 else 'are'} shown"
    return (
        f"the collectives run over {devices:,} devices, of which {shown}: waiting for the others is an unknown part of "
        "the exposed time"
    )


def groups_in(text: str) -> ReplicaGroups | None:
    """The groups in the text of an HLO instruction; None where it has none."""
    begin = max(text.find("replica_groups="), text.find("source_target_pairs="))
    if begin < 0:
        return None
    text = text[begin : begin + _LONGEST]
    after = _NEXT.search(text)
    return _groups_at(text if after is None else text[: after.start()])


def pairs_in(text: str) -> tuple[tuple[int, int], ...]:
    """The ids of the devices that a permute sends from and to, in the text of its instruction; empty without any."""
    pairs = _PAIRS.search(text[:_LONGEST])
    numbers = [_numbers(part) for part in _INNER.findall(pairs[1])] if pairs is not None else []
    return tuple((pair[0], pair[1]) for pair in numbers if len(pair) == 2)


def lacking_partners(table: OpTable, cores: int) -> str:
    """The sentence of `without_partners` where collectives of a TPU's ops run over more cores than these."""
    kinds = enumerate(table.classes())
    texts = (table.expression(row) for row, kind in kinds if kind == "collective") if cores else ()
    groups = [found for text in texts if (found := groups_in(text)) is not None]
    return without_partners(max((of.members for of in groups), default=0), cores)


@lru_cache(maxsize=1024)
def _groups_at(text: str) -> ReplicaGroups | None:
    """The groups that this attribute lists; a program has few different ones."""
    iota = _IOTA.search(text)
    if iota is not None:
        return _iota(int(iota[1]), int(iota[2]), _numbers(iota[3]), _numbers(iota[4] or ""))
    mesh = _MESH.search(text)
    if mesh is not None:
        return _of_mesh(mesh[1], mesh[2])
    listed = _LISTED.search(text)
    if listed is not None:
        return _listed([_numbers(part) for part in _INNER.findall(listed[1] or "")])
    pairs = _PAIRS.search(text)
    return None if pairs is None else _pairs([_numbers(part) for part in _INNER.findall(pairs[1])])


def groups_of(proto: hlo_pb2.HloInstructionProto) -> ReplicaGroups | None:
    """The groups of a compiled instruction; None where it has none."""
    if proto.source_target_pairs:
        return _pairs([(pair.source, pair.target) for pair in proto.source_target_pairs])
    if proto.HasField("mesh_axes_replica_group_list"):
        listed = proto.mesh_axes_replica_group_list
        axes = [(axis.name.decode(errors="replace"), axis.size) for axis in listed.mesh.axes]
        chosen = []
        for axis in listed.axes:
            if not 0 <= axis.mesh_axis_index < len(axes):
                return None
            name, size = axes[axis.mesh_axis_index]
            chosen.append((name, axis.sub_axis_info.size if axis.HasField("sub_axis_info") else size))
        return _along(dict(axes), chosen)
    if proto.HasField("iota_collective_device_list"):
        iota = proto.iota_collective_device_list
        dims, order = tuple(iota.iota_reshape_dims), tuple(iota.iota_transpose_perm)
        return _iota(iota.num_replica_groups, iota.num_devices_per_group, dims, order)
    groups = proto.collective_device_list.replica_groups or proto.replica_groups
    return _listed([tuple(group.replica_ids) for group in groups]) if groups else None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip().isdigit())


def _listed(groups: Sequence[tuple[int, ...]]) -> ReplicaGroups:
    groups = [group for group in groups if group]
    if not groups:
        return ALL
    size = max(map(len, groups))
    return ReplicaGroups(
        len(groups), size, _distance(np.array([group for group in groups if len(group) == size], np.int64))
    )


def _iota(count: int, size: int, dims: tuple[int, ...], order: tuple[int, ...]) -> ReplicaGroups | None:
    number = prod(dims)
    order = order or tuple(range(len(dims)))
    if not number or count * size != number or sorted(order) != list(range(len(dims))):
        return None
    if number > _MOST_DEVICES:
        return ReplicaGroups(count, size, None)
    devices: Int64s = np.arange(number).reshape(dims).transpose(order).reshape(count, size)
    return ReplicaGroups(count, size, _distance(devices))


def _of_mesh(axes: str, chosen: str) -> ReplicaGroups | None:
    sizes = {match[1]: int(match[2]) for match in _AXIS.finditer(axes) if match[2]}
    wanted = [(match[1].strip(), int(match[4]) if match[4] else None) for match in _AXIS.finditer(chosen)]
    if not wanted or any(name not in sizes for name, _ in wanted):
        return None
    return _along(sizes, [(name, part or sizes[name]) for name, part in wanted])


def _along(sizes: dict[str, int], chosen: Sequence[tuple[str, int]]) -> ReplicaGroups | None:
    """The groups along some axes of a mesh, each given with its size or that of the part which counts.

    XLA numbers axes that nobody named, ``axis_0``: that is no name.
    """
    whole, size = prod(sizes.values()), prod(size for _, size in chosen)
    if not size or whole <= 0 or whole % size:
        return None
    names = tuple(printable(name) for name, _ in chosen)
    is_named = not all(map(_NUMBERED.fullmatch, names))
    distance = None
    if len(chosen) == 1 and chosen[0][1] == sizes[chosen[0][0]]:
        axes = list(sizes)
        distance = prod(sizes[name] for name in axes[axes.index(chosen[0][0]) + 1 :])
    return ReplicaGroups(whole // size, size, distance, names if is_named else ())


def _pairs(pairs: Sequence[tuple[int, ...]]) -> ReplicaGroups:
    whole = [pair for pair in pairs if len(pair) == 2]
    apart = {abs(target - source) for source, target in whole if target != source}
    return ReplicaGroups(len(whole), 2, min(apart) if apart else None, are_pairs=True)


def _distance(groups: Int64s) -> int | None:
    """The distance of neighbours within the groups, int64[groups, size], where all are alike."""
    apart = np.diff(groups, axis=1)
    return int(apart[0, 0]) if apart.size and bool((apart == apart[0, 0]).all()) else None
