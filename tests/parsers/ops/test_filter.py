"""The language that filters tables: what each term keeps, exact bounds, and no error but a FilterError."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.base import regex
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.ops.filtering import filter

INT64_MAX = 2**63 - 1
NAMES = ("fusion.7", "Copy.1", "all-reduce.2", "fusion.70")
LATER_TEXTS: dict[str, Sequence[str]] = {
    "source": ("model.py:3", "", "train.py:10", ""),
    "expression": ("%fusion.7 = bf16[8,128] dot(%a)", "%copy = f32[2]{0:S(5)} copy(%b)", "outfeed()", ""),
    "shape": ("bf16[8,128]", "f32[2]", "", "bf16[8,4]"),
    "remat": ("no", "yes", "no", "no"),
    "side": ("device TensorCore", "device SparseCore", "host", "host"),
}
SELF_PS = (1_000_000_000, 1_000_000_001, 0, 5_000)
SHARES = (0.05, 0.5, math.nan, 0.001)


def nothing_later(name: str) -> Sequence[str]:
    raise AssertionError(f"asked for {name}")


def columns(**given_columns: Sequence[str]) -> filter.OpColumns:
    texts: dict[str, Sequence[str]] = {
        "name": NAMES,
        "category": ("loop fusion", "copy", "all-reduce", "convolution fusion"),
        "framework_op": ("jit(f)/Attention/dot_general:", "", "jit(f)/psum:", "jit(f)/µ-net/conv:"),
        "program": ("jit_step(7)", "jit_step(7)", "jit_step(7)", "jit_eval(9)"),
        "bound_by": ("hbm", "unknown", "vmem read", "compute"),
        **given_columns,
    }
    return filter.OpColumns(
        texts["name"],
        texts["category"],
        texts["framework_op"],
        texts["program"],
        texts["bound_by"],
        later=nothing_later,
        self_ps=np.array(SELF_PS, np.int64),
        self_share=np.array(SHARES, np.float64),
    )


def kept(text: str) -> list[int]:
    return [int(row) for row in np.flatnonzero(filter.parse_filter(text).mask(columns()))]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("fusion", [0, 3]),
        ("FUSION.7", [0, 3]),
        ("hbm", []),  # what bounds an op is not among the texts of a word
        ("μ-net", [3]),  # Greek mu finds the micro sign
        ('"loop fusion"', [0]),
        ('"loop fusion""jit_step"', [0]),
        ('" "', [0, 3]),
        (r"~fusion\.7$", [0]),
        ("~dot_general|psum", [0, 2]),
        ("~jit_step", []),  # a regex looks at name and framework op only
        ('~"^$|psum"', [1, 2]),
        ("<=5ns", [2, 3]),
        (">5%", [1]),
        (">=5%", [0, 1]),
        ("<5%", [3]),
        ("<=5%", [0, 3]),
        ("!>5%", [0, 2, 3]),  # what is unknown is not over 5%
        (">=0%", [0, 1, 3]),
        ("cat:fusion", [0, 3]),
        ("CAT:loop", [0]),
        ("name:loop", []),
        ("op:fusion", []),
        ("bound:hbm", [0]),
        ('bound:"vmem read"', [2]),
        ("dot_general:", [0]),  # an unknown prefix is text
        ('">5%"', []),
        ('"!fusion"', []),
        ("=5ns", []),
    ],
)
def test_what_a_filter_keeps(text: str, rows: list[int]) -> None:
    assert kept(text) == rows


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('"two words', "a quote is open: close it"),
        ('""', "there is nothing between the quotes"),
        ("!", "something must follow !"),
        ("~", "something must follow ~"),
        ("Cat:", "something must follow cat:"),
        (">", "> is not a bound: write a time (>1ms), a share (>5%) or quotes around it"),
        ("<.ms", "<.ms is not a bound: write a time (<1ms), a share (<5%) or quotes around it"),
        (">١ms", ">١ms is not a bound: write a time (>1ms), a share (>5%) or quotes around it"),
        (">\x1bms", ">␛ms is not a bound: write a time (>1ms), a share (>5%) or quotes around it"),
        (f">{'9' * 5000}ms", "the number after > is too long"),
        (f"~{'a' * (filter.LONGEST_PATTERN + 1)}", "the regex is longer than 200 characters"),
        ("~(", "not a regex: missing ), unterminated subpattern at position 0"),
        ("remat:maybe", "remat: takes yes or no"),
        ("side:left", "side: takes TensorCore, SparseCore, device or host"),
    ],
)
def test_what_is_no_filter(text: str, sentence: str) -> None:
    with pytest.raises(filter.FilterError) as caught:
        filter.parse_filter(text)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("pattern", ["*", "[", "(?L)a", "(?a)(?u)a", "a{99999999999}", "(?P<a", r"\x1", "a**", "(?z)"])
def test_no_regex_at_all(pattern: str) -> None:
    with pytest.raises(filter.FilterError, match=r"^not a regex: "):
        filter.parse_filter(f"~{pattern}")


@pytest.mark.parametrize("pattern", ["[[a]", "[a&&b]", "[a||b]", "(" * 100 + ")" * 100, "a" * filter.LONGEST_PATTERN])
def test_regexes_that_python_doubts_or_nests_deep(pattern: str) -> None:
    """A FutureWarning would be written over the screen (here: an error); nesting stays within the stack."""
    assert filter.parse_filter(f"~{pattern}").mask(columns()).shape == (4,)


def test_a_regex_sees_the_start_of_a_hostile_text_only() -> None:
    name = ("x" * (filter.LONGEST_SEARCHED - 1) + "yz", "yz", "", "")
    assert filter.parse_filter("~y").mask(columns(name=name)).tolist() == [True, True, False, False]
    assert filter.parse_filter("~z").mask(columns(name=name)).tolist() == [False, True, False, False]
    assert filter.parse_filter("yz").mask(columns(name=name)).tolist() == [True, True, False, False]


def test_examples_in_the_help_are_filters() -> None:
    assert len({example for example, _ in filter.HELP}) == len(filter.HELP)
    for example, meaning in filter.HELP:
        assert filter.parse_filter(example).terms, example
        assert meaning.endswith(".")


def test_sources_are_asked_for_by_src_terms_only_and_once() -> None:
    asked: list[str] = []

    def later(name: str) -> Sequence[str]:
        asked.append(name)
        return LATER_TEXTS[name]

    table = replace(columns(), later=later)
    filter.parse_filter("fusion !~x bound:hbm >1ms").mask(table)
    assert asked == []
    assert filter.parse_filter("src:.PY").mask(table).tolist() == [True, False, True, False]
    assert filter.parse_filter("src:train !src:model").mask(table).tolist() == [False, False, True, False]
    assert asked == ["source"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("hlo:DOT(", [0]),
        (r"hlo:~s\(\d\)", [1]),
        ("shape:bf16[8,", [0, 3]),
        ("src:~:1?3$", [0]),
        ("remat:yes", [1]),
        ("side:tensor", [0]),
        ("side:device", [0, 1]),
        ("side:host hlo:outfeed", [2]),
    ],
)
def test_columns_that_are_read_later(text: str, rows: list[int]) -> None:
    wanted = filter.parse_filter(text)
    assert wanted.takes_time
    assert np.flatnonzero(wanted.mask(replace(columns(), later=LATER_TEXTS.__getitem__))).tolist() == rows


def test_a_filter_of_words_takes_no_time() -> None:
    assert not filter.parse_filter("fusion !cat:copy >1ms").takes_time
    assert filter.parse_filter("fusion !copy").is_words
    assert not filter.parse_filter("cat:copy").is_words


@pytest.mark.parametrize(("distinct", "searched"), [(10, 10), (499, 499), (501, 1000), (1000, 1000)])
def test_each_distinct_text_is_searched_once(distinct: int, searched: int) -> None:
    """Where most texts differ, the rows are searched as they are; what is found is the same."""
    rows = 1000
    name = [f"fusion.{row % distinct}" for row in range(rows)]
    other = [""] * rows
    table = filter.OpColumns(
        name, other, name, other, other, nothing_later, np.zeros(rows, np.int64), np.zeros(rows, np.float64)
    )
    (texts,) = table.texts(("name", "framework_op"))  # one object, searched once
    assert len(texts.distinct) == searched
    assert table.texts(("name",))[0] is texts  # and kept
    expected = ["fusion.7" in text for text in name]
    assert sum(expected) > 1
    for word in ("FUSION.7", r"~fusion\.7"):
        assert filter.parse_filter(word).mask(table).tolist() == expected


def test_a_title_of_two_words_is_written_as_the_screen_shows_it() -> None:
    titles = {"of_roof": "roofline_efficiency", "self_time": "self_time_ps", "time": "share_percent"}
    for same in (("a of roof<60%", "a OF_ROOF<60%", "a roof<60%"), ("self time>1ms", "self_time>1ms"), ("b time>1",)):
        first, *others = [filter.parse_filter(text, list(titles.values()), titles) for text in same]
        assert others == [first] * len(others), same


UNITS = {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "μs": 10**6, "ms": 10**9, "s": 10**12, "S": 10**12}


@given(
    number=st.from_regex(r"[0-9]{1,20}(\.[0-9]{0,15})?|\.[0-9]{1,15}", fullmatch=True),
    unit=st.sampled_from(sorted(UNITS)),
    relation=st.sampled_from([">", ">=", "<", "<="]),
    off=st.integers(-2, 2),
)
def test_times_are_exact(number: str, unit: str, relation: str, off: int) -> None:
    term = filter.parse_filter(f"{relation}{number}{unit}").terms[0].condition
    assert isinstance(term, filter.TimeTerm)
    exact = Fraction("0" + number if number.startswith(".") else number.rstrip(".")) * UNITS[unit]
    assert term.bound == exact
    times = [min(INT64_MAX, max(0, int(exact) + off)), 0, INT64_MAX]
    expected = {
        ">": [time > exact for time in times],
        ">=": [time >= exact for time in times],
        "<": [time < exact for time in times],
        "<=": [time <= exact for time in times],
    }[relation]
    texts = ("",) * 3
    table = filter.OpColumns(
        texts, texts, texts, texts, texts, nothing_later, np.array(times, np.int64), np.zeros(3, np.float64)
    )
    assert term.mask(table).tolist() == expected


Row = tuple[str, str, str, str, str, int, float]
SMALL_TEXT = st.text(alphabet="abAB:. <>µßſ", max_size=6)
ROWS = st.lists(
    st.tuples(
        SMALL_TEXT,
        SMALL_TEXT,
        SMALL_TEXT,
        SMALL_TEXT,
        SMALL_TEXT,
        st.integers(0, 3_000),
        st.sampled_from([math.nan, 0.0, 0.01, 0.05, 1.0]),
    ),
    max_size=6,
)
TERM = st.one_of(
    st.from_regex(r'(name:|cat:|op:|prog:|bound:|src:|)"[abAB: .]{1,3}"', fullmatch=True),
    st.from_regex(r"[ab][abAB:.]{0,2}", fullmatch=True),
    st.from_regex(r"~[ab.][ab.]{0,2}[*]?", fullmatch=True),
    st.from_regex(r"[<>]=?[0-2](ns|%|ps)", fullmatch=True),
).flatmap(lambda term: st.sampled_from([term, "!" + term, "!!" + term]))


def of_rows(rows: list[Row]) -> filter.OpColumns:
    name = [row[0] for row in rows]
    return filter.OpColumns(
        name,
        [row[1] for row in rows],
        [row[2] for row in rows],
        [row[3] for row in rows],
        [row[4] for row in rows],
        lambda _: name[::-1],
        np.array([row[5] for row in rows], np.int64),
        np.array([row[6] for row in rows], np.float64),
    )


@pytest.fixture(scope="class")
def in_process() -> Iterator[None]:
    """Searches without a process of its own: Hypothesis asks hundreds of times."""

    def found_in(pattern: str, texts: Sequence[str], poll: Callable[[], None]) -> bytes:
        return bytes(regex.compiled(pattern).search(text) is not None for text in texts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regex, "found_in", found_in)
        yield


@pytest.mark.usefixtures("in_process")
@given(rows=ROWS, term=TERM)
def test_not_is_the_opposite(rows: list[Row], term: str) -> None:
    table = of_rows(rows)
    mask = filter.parse_filter(term).mask(table)
    assert mask.dtype == np.bool_
    assert (filter.parse_filter("!" + term).mask(table) == ~mask).all()


@pytest.mark.usefixtures("in_process")
@given(rows=ROWS, terms=st.lists(TERM, max_size=4))
def test_terms_must_all_hold(rows: list[Row], terms: list[str]) -> None:
    table = of_rows(rows)
    expected = np.ones(len(rows), np.bool_)
    for term in terms:
        expected &= filter.parse_filter(term).mask(of_rows(rows))
    whole = filter.parse_filter(" ".join(terms))
    assert len(whole.terms) == len(terms)
    assert whole.mask(table).tolist() == expected.tolist()
    assert whole.mask(table).tolist() == expected.tolist()  # and again, from what the columns keep


@given(rows=ROWS, word=st.text(alphabet="abAB.µß", min_size=1, max_size=3))
def test_a_word_is_in_any_of_four_columns(rows: list[Row], word: str) -> None:
    expected = [any(word.casefold() in text.casefold() for text in (row[0], row[1], row[2], row[3])) for row in rows]
    assert filter.parse_filter(word).mask(of_rows(rows)).tolist() == expected


@given(
    st.one_of(
        st.text(st.characters(exclude_categories=())),
        st.text(alphabet='!~"<>=%:.0129 \tabcmnspuµ()[]{}?*+\\|^$-catnameopsrcbound', max_size=40),
        st.text(alphabet="()[]{}?*+\\|^$-,:=!<>#PiLuasx019", max_size=60).map(lambda pattern: "~" + pattern),
    )
)
def test_any_text_is_a_filter_or_a_filter_error(text: str) -> None:
    try:
        parsed = filter.parse_filter(text)
    except filter.FilterError as error:
        said = str(error)
        assert len(said.splitlines()) == 1
        said.encode("utf-8")
    else:
        assert bool(parsed.terms) == bool(text.strip())


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "fusion.*dot.*add.*mul.*Z"])
def test_a_regex_that_would_take_forever_is_given_up(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "SEARCH_SECONDS", 0.3)
    name = ("a" * 50 + "!", "fusiondotaddmul" * 200, "", "")
    with pytest.raises(
        filter.FilterError, match=r"^the regex finds nothing: it takes longer than 0.3 s on these names$"
    ):
        filter.parse_filter(f"~{pattern}").mask(columns(name=name))


def test_a_search_ends_when_it_is_no_longer_wanted() -> None:
    looks = count()

    def poll() -> None:
        if next(looks) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        filter.parse_filter("~(a+)+$").mask(columns(name=("a" * 50 + "!", "", "", "")), poll)


def test_a_search_without_a_process_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(filter.FilterError, match="the search process cannot be started"):
        filter.parse_filter("~a").mask(columns())
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(filter.FilterError, match="ended early"):
        filter.parse_filter("~a").mask(columns())
