"""Kinds of input events, XProf's and ours."""

from __future__ import annotations

from typing import Literal

XprofCategory = Literal["Enqueue", "Demanded file read", "Advanced file read", "Preprocessing", "Unknown"]

InputCategory = Literal["Wait for input", "Transfer to device", "Produce input"]
"""Wait for input: a thread that drives the device stands in an iterator. Produce input: another thread does."""

WAIT: InputCategory = "Wait for input"

TRANSFER: InputCategory = "Transfer to device"

PRODUCE: InputCategory = "Produce input"
