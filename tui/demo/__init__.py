"""The bundled demo profile."""

from __future__ import annotations

from pathlib import Path


def demo_path() -> str:
    """Path of the demo profile, which is package data and lies beside this file."""
    return str(Path(__file__).with_name("demo.xplane.pb.gz"))
