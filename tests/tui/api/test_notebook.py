"""What a user of a notebook types first, on profiles and on what opens like one."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import pytest

import tpuprof
from tests.parsers.memory.oom.test_dumps import dump_of
from tests.support.build import host_bytes, write_run
from tests.support.files import pprof
from tests.support.made.oom import MESSAGE
from tpuprof.tui.pages import PageName

PACKAGES = {"pd": "pandas", "pl": "polars", "pa": "pyarrow", "duckdb": "duckdb"}
DUMP = "decoder_scan"
TRIES: dict[str, Any] = {
    "tpuprof.__version__": version("tpuprof-tui"),
    "profile.pages": get_args(PageName),
    "tpuprof.findings('demo')[0].kind": "collective",
    "tpuprof.open('demo', core=0).run.core": "demo:0",
    "len(tpuprof.open(data).table('ops'))": 490,
    "len(tpuprof.kernel_times(data, 'fusion.349', core=2))": 60,
    "[op.name for op in ops][:2]": ["fusion.397", "fusion.362"],
    "pd.DataFrame(ops)['self_time_ps'].sum() == ops['self_time_ps'].sum()": True,
    "pl.DataFrame(ops).select('name', 'self_time_ps').row(0)": ("fusion.397", 1694625824768),
    "pl.DataFrame(profile.table('sparse-core')).schema['self_time_ps'] == pl.Int64": True,
    "pa.table(ops).schema.field('program_id').type == pa.uint64()": True,
    "duckdb.sql('SELECT name FROM ops ORDER BY self_time_ps DESC LIMIT 1').fetchall()": [("fusion.397",)],
    "ops.to_pandas().groupby('category')['self_time_ps'].sum().idxmax()": "convolution fusion",
    "profile.table('ops', columns='name,flops', limit=1).keys()": ("name", "flops"),
    "(len(profile.events), len(profile.events()), profile.events(limit=3).left_out)": (69007, 69007, 69004),
    "len(profile.events('0.3s', '352.5 ms', track='demo:0 / XLA Ops'))": 12,
    "duckdb.sql('SELECT count(*) FROM events').fetchall() == [(len(pd.DataFrame(events)),)]": True,
    "[len(each) for each in (profile.ops, profile['ops'], profile.op_profile, profile.steps)]": [490, 490, 547, 80],
    "profile.tables()[-3:]": ("memory_at_peak", "collective_groups", "copies"),
    "(tpuprof.load('demo').sql('SELECT count(*) FROM events').fetchall(), len(ops.df()))": ([(69007,)], 490),
    "len(pl.from_arrow(profile.events(limit=3).to_arrow()))": 3,
    "(lambda df: len(df[df.name == 'fusion.397']))(pd.DataFrame(ops))": 1,
    "repr(ops).splitlines()[12]": "  + 480 more",
    "'1,694,625,824,768\\n' in repr(profile.table('ops', columns='name,self_time_ps', limit=12))": True,
    "'times are simulated' in repr(ops) and 'times are simulated' in repr(profile)": True,
    "(tpuprof.fit('demo').batch, tpuprof.fit('demo').largest)": (8, 12),
    "tpuprof.fit(dump, device='v6e').batch is None": False,
    "tpuprof.memory(dump).modules.values('name')": ["jit_step"],
    "tpuprof.program(dump, device='v6e').tables()": ("ops", "modules", "arrays"),
    "[tpuprof.open(path).pages for path in (dump, prof, log)]": [("memory", "graph", "program"), ("live-arrays",), ()],
    "tpuprof.open(prof).table('live-arrays')['size_bytes'].max()": 6442450944,
    "{tpuprof.oom(given).page.triages[0].kind for given in (log, text, data_of_log, ValueError(text))}": {"compile"},
    "tpuprof.oom(dump).tables()": ("reports", "advice", "buffers"),
    "tpuprof.oom(dump).table('buffers', sort='size_bytes', limit=1)['size_bytes'].tolist()": [8589934592],
    "tpuprof.runs(logs)['name'].tolist()": ["b", "a"],
    "tpuprof.diff(logs).ops['name'].tolist()": ["fusion.1"],
    "pd.DataFrame(tpuprof.diff(logs)).name.tolist() == tpuprof.diff(logs).df().name.tolist()": True,
    "tpuprof.open(tpuprof.runs(logs)[-1]).name": "a",
    "hasattr(tpuprof.diff(logs), '_repr_html_')": False,
    "tpuprof.diff(tpuprof.open(logs, run='a'), tpuprof.open(logs, run='b')).report()['before']['name']": "a",
}


@pytest.fixture(name="names", scope="module")
def made_names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What stands in the session before a try."""
    root, profile = tmp_path_factory.mktemp("notebook"), tpuprof.open("demo")
    log = root / "train.log"
    log.write_text(MESSAGE)
    for number, run in enumerate("ab"):
        write_run(root / "logs", run, host0=host_bytes(100 + 50 * number))
        path = root / "logs" / "plugins" / "profile" / run
        for each in (path / "host0.xplane.pb", path):
            os.utime(each, (1000 + number, 1000 + number))
    return {
        **{"tpuprof": tpuprof, "profile": profile, "ops": profile.table("ops"), "log": log, "text": MESSAGE},
        "events": profile.events,
        **{"data": Path(profile.path).read_bytes(), "data_of_log": MESSAGE.encode(), "logs": root / "logs"},
        **{"dump": dump_of(DUMP, root / "dump"), "prof": pprof.written(root)},
    }


@pytest.mark.parametrize("line", TRIES)
def test_the_first_tries_of_a_notebook(line: str, names: dict[str, Any]) -> None:
    packages = {name: package for name, package in PACKAGES.items() if f"{name}." in line}
    given = {name: pytest.importorskip(package) for name, package in packages.items()}
    assert eval(line, {**names, **given}) == TRIES[line]


def test_bytes_leave_nothing_behind(names: dict[str, Any]) -> None:
    with tpuprof.open(names["data"]) as profile:
        assert os.path.exists(profile.path)
    assert not os.path.exists(os.path.dirname(os.path.dirname(profile.path)))


def test_a_line_says_how_far_reading_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpuprof.tui.terminal.progress.FIRST_AFTER_SECONDS", 0.0)
    tpuprof.open("demo", cache=False, progress=True).overview()
    shown = capsys.readouterr().err
    assert "reading demo: " in shown and shown.endswith("\r\x1b[K")
    tpuprof.open("demo", cache=False).overview()
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "sentence", "hint"),
    [
        ("tpuprof.open(dump).overview()", "is a dump of compiled modules: it has no profile of a", "memory(), fit()"),
        ("tpuprof.open(prof).table('ops')", "is a device memory profile: it has no page ops.", 'table("live-arrays")'),
        ("tpuprof.open(log).timeline()", "is a log: it has no profile of a program.", "oom() looks for"),
        ("tpuprof.open('demo', host='nowhere')", "no host nowhere.", "its hosts: demo"),
        ("profile.table('opps')", "There is no page opps.", "one of: ops"),
        ("profile.table('ops', 'rows')", "The page ops has no table rows.", "one of: ops"),
        ("profile.table('ops', op='x')", "The page ops has no option op.", "one of: step, from_ps, to_ps, by"),
        ("profile.table('ops', columns=['nam'])", "There is no column nam.", "--columns name"),
        ("profile.table('ops', limit=-3)", "limit: -3 is not a number of rows", "limit=20"),
        ("profile.kernel_times('fusion.34999')", "No op fusion.34999 ran.", "one of: fusion.349"),
        ("profile.events('XLA Opps')", "No track of demo has XLA Opps in its name.", "--track with a part of"),
        ("profile.events(float('nan'))", "from_ms: nan is not milliseconds.", 'events(300, "20.3s")'),
        ("tpuprof.open(None)", "path: None is not a path", 'tpuprof.open("logs")'),
        ("tpuprof.oom('no error at all')", "holds no out-of-memory error", "the log of the process"),
        ("profile.op(5)", "name: 5 is not a text.", 'name="..."'),
        ("profile.table('op', op=5)", "op: 5 is not a text.", 'op="..."'),
        ("profile.table('ops', from_ps='x')", "from_ps: 'x' is not a number.", "from_ps=1"),
        ("profile.table('ops', columns=5)", "columns: 5 is not a list of keys.", 'columns=["name"'),
        ("profile.table('memory', space='hbmm')", "There is no memory space hbmm.", "one of: hbm"),
        ("profile.table('steps')", "There is no page steps.", 'profile["steps"]'),
        ("profile.planes", "A Profile has no attribute planes.", 'table("timeline") for the planes'),
        ("profile.to_pandas()", "A Profile has no attribute to_pandas.", 'table("ops").to_pandas() or events.'),
        ("profile.events(core=2, line='x')", "events() has no argument core, line.", "events(from_ms="),
        ("profile.sql('SELECT dur FROM events')", "no such column: dur.", "one of: duration_ps"),
        ("ops.sort_values('name')", "A Table has no attribute sort_values.", "to_pandas().sort_values."),
        ("ops.total_ms", "A Table has no attribute total_ms.", 'table["total_time_ps"].'),
        ("list(profile.steps)[0].duration", "A row has no duration.", "one of: duration_ms."),
        ("tpuprof.EventAccumulator(logs)", "tpuprof has no EventAccumulator.", "tpuprof.runs(path)."),
        ("tpuprof.oom(text).rows", "A Result has no attribute rows.", "table() or one of its tables: reports, "),
        ("profile.events(name='x')", "events() has no argument name.", 'query("SELECT'),
        ("profile.fit(device='x')", "device: 'x' is not a TPU whose memory is known.", 'device="v5e"'),
    ],
)
def test_what_can_not_be_had_says_what_can(line: str, sentence: str, hint: str, names: dict[str, Any]) -> None:
    with pytest.raises((tpuprof.ProfileError, AttributeError, ImportError)) as raised:
        eval(line, names)
    said, _, tried = str(raised.value).replace(" Try ", "\ntry: ").partition("\ntry: ")
    assert sentence in said and tried.startswith(hint)
