"""HighwayHash, with and without the compiled loops."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.formats.xspace.core import api
from tpuprof.parsers.formats.xspace.riegeli import blocks as hashing
from tpuprof.parsers.formats.xspace.riegeli.blocks import highway_hash

KEY = np.frombuffer(bytes(range(32)), "<u8")


def test_known_hashes(core: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of the test vectors that google/highwayhash publishes, and the constant headers of every file."""
    monkeypatch.setattr(hashing, "hash_packets", core.hash_packets)
    assert highway_hash([b""], KEY) == 0x907A56DE22C26E53
    assert highway_hash([b"\0"], KEY) == 0x7EAB43AAC7CDDD78
    assert highway_hash([bytes(8) + (64).to_bytes(8, "little")]) == 0x3F4A880DD170AF83
    assert highway_hash([bytes.fromhex("0000000000000000e19f13c0e9b1c37273000000000000000000000000000000")]) == (
        0xA9E187923CC2BA91
    )


@pytest.mark.parametrize("state", [np.zeros(15, np.uint64), np.zeros(16, np.uint32)])
def test_what_is_no_packet_is_refused(core: ModuleType, state: np.ndarray) -> None:
    with pytest.raises(ValueError, match="packets"):
        core.hash_packets(bytes(32), state)
    with pytest.raises(ValueError, match="packets"):
        core.hash_packets(bytes(31), np.zeros(16, np.uint64))


@given(st.lists(st.binary(max_size=90), max_size=6))
def test_the_fallback_says_the_same_however_the_bytes_come(pieces: list[bytes]) -> None:
    whole = highway_hash(pieces)
    assert whole == highway_hash([b"".join(pieces)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "CORE", None)
        assert highway_hash(pieces) == whole
    if any(pieces):
        joined = b"".join(pieces)
        assert highway_hash([joined[:-1] + bytes([joined[-1] ^ 1])]) != whole
