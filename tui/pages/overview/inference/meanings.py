"""What the figures of the view of latencies are called and mean."""

from __future__ import annotations

from collections.abc import Mapping

LATENCY_MEANINGS: Mapping[str, str] = {
    "Session": "a request, or, if the profile has none, a run of the module with the most time. The page says which.",
    "50%, 99%": "that percentage of the sessions takes no longer. A row is the session at that place, with its own "
    "parts.",
    "host": "time that is neither device time nor transfer; from a launch on, the time until the core could start.",
    "queued": "time from a launch on in which the core was busy with earlier runs.",
    "device": "runs of modules; transfer: to the device and from it.",
    "Per second": "sessions over the time from a host's first start to its last end. Tokens a second are unknown: "
    "no event counts tokens.",
    "Histogram": "requests by latency, or runs of the module under the cursor, in bins of equal width, or of equal "
    "ratio (log scale) where the longest takes more than ten times the shortest. Below: the percentiles.",
    "share": "of a module: of the time of all modules over all cores, each core's runs added up. Of a model: of "
    "latencies.",
    "phase": "prefill, decode or sampling, where the module's name says so.",
    "s32[8,1]": "arguments that show the batch: arrays of integers, and arguments that differ from the module's "
    "other shapes.",
    "n/a": "unknown: the notes (W) say why. Unknown is never shown as 0.",
}
