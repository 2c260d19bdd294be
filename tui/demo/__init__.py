"""The bundled demo profile."""

from __future__ import annotations

import os


def demo_path() -> str:
    """Path of the demo profile, which is package data and lies beside this file."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "demo.xplane.pb.gz")
