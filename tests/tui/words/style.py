"""Words that no sentence of the program may use, and what to write instead; CONTRIBUTING has the style itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from tests.tui.words.collect import Sentence

BANNED: Mapping[str, str] = {
    r"h(?:o|e)ld(?:s|ing)? (?:\S+ ){0,3}up\b": "delay, limit",
    r"\btells? of\b|\btelling of\b": "show, measure",
    r"\b(?:is|are|was|were) told (?:by|from|apart)\b|\btold (?:from|apart)\b": "recognise by, distinguish from",
    r"\bbears?\b|\bbearing\b": "have",
    r"\bcan(?:'t|not| not) (?:be told|tell)\b(?!, wrong|:)": "is unknown, does not show",
    r"\b(?:does|do) not tell\b|\bdoesn't tell\b": "does not say, does not show",
    r"\bas large ones can\b": "which large ops reach",
    r"\bwhat the better used\b|\bthe better used of\b": "the nearer roof",
    r"\bthat which\b|\bthose of which\b": "name the thing",
    r"\bunder way\b": "in flight, running",
    r"\bworth a step\b|\bis worth a step\b": "saves per step",
    r"\bwhat it rests on\b|\brests on\b": "evidence",
    r"\bat hand to try\b": "untested",
    r"\bnever seen on hardware\b": "untested on hardware",
    r"\bisn't in one piece\b|\bin one piece, \S+ is\b": "contiguous, outside the largest piece",
    r"\bmost more\b|\bmore of (?:compute|copies|collectives)\b": "most of the difference",
    r"\bfor want of\b": "because it is not",
    r"\bdearest\b": "most expensive, longest",
    r"\bof theirs\b|\bof its own accord\b": "their",
    r"\bit is never 0 instead\b": "unknown is never shown as 0",
    r"\blooked into\b": "searched, read",
    r"\bline of ops\b": "XLA Ops line",
    r"\bstems? from\b": "comes from",
    r"(?<!there )\bis no (?:profile|file|terminal|number|address|option|key|time such)\b": "is not a",
    r"\bnothing (?:tells|is said|to read on)\b": "is unknown",
    r"\bgoes before it\b": "overrides it",
    r"\bmade up from\b|\blaid over\b": "computed from",
    r"\b(?:infeed|host) wait\b": "input wait",
    r"\bbeyond the (?:roof|ideal)\b|\bof (?:its|their) limit\b": "below the roof, of its roof",
    r"\breasons? (?:explain|claim)s?\b|\bcould be saved is unknown\b": "findings explain, the saving is unknown",
    r"\bfrom (?:and|or) to (?:the )?host\b": "transfers to and from the host",
    r"\bmade up, not\b|\bno markers of steps\b": "simulated, no step markers",
    r"\bmore lie between\b|\b(?:ops|is) of no step\b": "lies between, outside steps",
    r"\bthe time that the statement is of\b|\bof (?:two|\S+) modules that in which\b": "as a share of, where",
}
"""Patterns, without case, and what to write instead."""

_COMPILED = {re.compile(pattern, re.IGNORECASE): instead for pattern, instead in BANNED.items()}


def breaches(sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, str, str]]:
    """Sentences with banned words: the sentence, the words that it has, and what to write instead."""
    for sentence in sentences:
        for pattern, instead in _COMPILED.items():
            found = pattern.search(sentence.text)
            if found:
                yield sentence, found.group(), instead
