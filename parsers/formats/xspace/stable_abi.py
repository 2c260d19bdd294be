"""Names the built wheel after what the compiled core needs: `cp311-abi3`, one wheel for all newer Pythons.

For the build alone; `pyproject.toml` names it, nothing imports it.
"""

from __future__ import annotations

import sys

from setuptools.command.bdist_wheel import bdist_wheel


class StableAbiWheel(bdist_wheel):
    """Before Python 3.11 the buffer protocol is not in the stable ABI: there the wheel is for one version alone."""

    def finalize_options(self) -> None:
        """Sets the oldest Python that the wheel is for, where the core keeps to the stable ABI."""
        if sys.version_info >= (3, 11):
            self.py_limited_api = "cp311"
        super().finalize_options()
