"""Tests of `tpuprof.parsers.base.text`: no string can reach the terminal with something that it obeys."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.base.text import (
    completions_of,
    counted,
    examples,
    has_words,
    natural_key,
    nearest_words,
    printable,
)

HOSTILE = (
    "\x00\x07\x1b\r\n\t\x7f\x85\x9b\u061c\u200b\u200d\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ufeff\ud800\udcff"
)
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
ANY_CHARACTER = st.characters(exclude_categories=())  # lone surrogates too


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("fusion.41 = f32[8,128]{1,0:T(8,128)}", "fusion.41 = f32[8,128]{1,0:T(8,128)}"),
        ("größe 模型 🚀 é", "größe 模型 🚀 é"),
        ("a\u00a0b\u3000c", "a\u00a0b\u3000c"),  # odd spaces are harmless
        ("\ue0b0 powerline", "\ue0b0 powerline"),  # so are private-use glyphs
        ("\x1b[2J", "␛[2J"),
        ("a\nb\r\tc\x00", "a␊b␍␉c␀"),
        ("\x7f", "␡"),
        ("\x9b2J\x85", "\\x9b2J\\x85"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("a\u200bb\u2028c\ufeff", "a\\u200bb\\u2028c\\ufeff"),
        ("caf\udce9.pb", "caf\\xe9.pb"),  # what surrogateescape makes of a Latin-1 file name
        ("\ud83d", "\\ud83d"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_known_strings(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_a_clean_string_is_returned_itself() -> None:
    text = "jit(train_step)/transformer/layer_7/attention" * 100
    assert printable(text) is text


def test_every_character_that_could_do_harm_is_replaced() -> None:
    """Over all of Unicode: controls, lone surrogates, separators of lines, and every invisible format character.

    Visible format characters (Arabic number signs, Egyptian joiners) may stay, except those that change direction.
    """
    always = {"Cc", "Cs", "Zl", "Zp"}
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        shown = printable(character)
        if unicodedata.category(character) in always or character in BIDI:
            assert shown != character, hex(code)
            assert shown.isprintable(), hex(code)
        elif shown != character:
            assert unicodedata.category(character) in {"Cf", "Cn"}, hex(code)  # Cn: unassigned between format controls


@given(st.text(alphabet=st.one_of(ANY_CHARACTER, st.sampled_from(HOSTILE))))
def test_one_line_that_utf8_can_carry(text: str) -> None:
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    assert len(shown) >= len(text)
    shown.encode("utf-8")
    assert not any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in shown)
    assert not BIDI & set(shown)


@given(st.text(alphabet=st.one_of(ANY_CHARACTER, st.sampled_from(HOSTILE))), st.text())
def test_works_character_by_character(left: str, right: str) -> None:
    """So cutting or joining strings cannot bring a control character back."""
    assert printable(left + right) == printable(left) + printable(right)


def test_examples_and_counts() -> None:
    assert examples([]) == ""
    assert examples(["a", "b\x1b"]) == "a, b␛"
    assert examples(list("abcde")) == "a, b, c and 2 more"
    assert examples(["a"], 3, 5000) == "a and 4,999 more"
    assert [counted(1, "host"), counted(2000, "host"), counted(0, "entry", "entries")] == [
        "1 host",
        "2,000 hosts",
        "0 entries",
    ]


def test_natural_order() -> None:
    names = ["host10", "host2", "host", "10", "9", "host2.b", "host02", ""]
    assert sorted(names, key=natural_key) == ["", "9", "10", "host", "host02", "host2", "host2.b", "host10"]


def test_every_word_is_wanted_in_any_order_and_case() -> None:
    is_wanted = has_words("  Copy ATTN ")
    assert is_wanted("attn/copy.3") and not is_wanted("copy.3") and has_words(" ")("")


@given(st.lists(st.text(alphabet="ab019²٣")))
def test_natural_order_is_total(names: list[str]) -> None:
    """Digits of other scripts are letters here; equal keys only for equal names, so the order is stable."""
    assert sorted(sorted(names), key=natural_key) == sorted(reversed(names), key=natural_key)


def test_natural_order_of_a_name_longer_than_int_can_read() -> None:
    assert natural_key("9" * 10_000) > natural_key("8" * 10_000)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("fusoin", "Fusion"),  # as it is written
        ("fusion copi", "copy"),
        ("copy all", "copy"),  # no text has both
        ("zzzzz", ""),
        ("2026_01_03", "2026_01_02"),
        ("", ""),
    ],
)
def test_the_words_nearest_to_some_that_no_text_has(text: str, near: str) -> None:
    texts = ["Fusion copy", "all-reduce", "copy 2026_01_02"]
    assert nearest_words(text, texts) == near
    assert not near or any(map(has_words(near), map(str.casefold, texts))), "some text has them"


def test_what_a_begun_word_may_become() -> None:
    texts = ["fusion.1 fused", "fusion.1", "copy", "Fuse 12"]
    assert completions_of("fus", texts) == ["fusion.1", "fused", "Fuse"], "that of most texts first, in any case"
    assert not completions_of("", texts) and not completions_of("1", texts), "numbers are no words"
