"""Trace files: written and read back, and refused with the line that is wrong."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.launches import fault, mix

from qgpu.errors import QgpuError
from qgpu.trace import Activity, TraceError, load, save, steps
from qgpu.trace.files import lines, parse


def same(one, other):
    fields = ("kernel", "tokens", "file", "sources", "arrays", "message", "activity", "ended")
    assert all(getattr(one, name) == getattr(other, name) for name in fields)
    assert list(steps(one)) == list(steps(other))
    assert (one.launch.rows, one.launch.allocated) == (other.launch.rows, other.launch.allocated)
    assert [b.line for b in one.launch.program.blocks] == [b.line for b in other.launch.program.blocks]


@pytest.mark.parametrize("make", [mix, fault])
def test_what_is_saved_is_loaded(make, tmp_path):
    trace = make()
    counts = bytes(i * 7 % 251 for i in range(4 * 3 * len(trace.tokens)))
    trace = replace(trace, activity=Activity(3, counts))
    save(trace, tmp_path / "a.jsonl")
    same(load(tmp_path / "a.jsonl"), trace)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_lines_say_in_words_what_tokens_say():
    events = [json.loads(line) for line in lines(mix())][1:]
    barrier = next(event for event in events if event["kind"] == "BAR")
    assert set(barrier) == {"at", "kind", "tokens"}
    added = next(event for event in events if event.get("atomic"))
    assert added["address"] == next(a.address for a in mix().arrays if a.name == "out") // 8 * 8
    assert {event["line"] for event in events if "line" in event} >= {5, 11, 12, 14, 16, 17}
    total = sum(len(event["tokens"]) for event in events)
    assert total == len(mix().tokens)


def text_of(change) -> str:
    head, *rest = lines(mix())
    value = json.loads(head)
    change(value)
    return "\n".join([json.dumps(value), *rest])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda h: h.update(format="x"), "does not say"),
        (lambda h: h.update(version=2), "version 2"),
        (lambda h: h.pop("kernel"), "kernel is missing"),
        (lambda h: h.update(cta=[129, 1, 1]), "129 threads"),
        (lambda h: h.update(grid=[1, 1]), "grid has 3 numbers"),
        (lambda h: h.update(grid=[True, 1, 1]), "grid True"),
        (lambda h: h["program"].update(blocks=[]), "0 blocks"),
        (lambda h: h["program"]["blocks"][0]["fields"].update(branch=7), "reserved"),
        (lambda h: h["program"]["blocks"][0]["fields"].update(nonsense=1), "no field 'nonsense'"),
        (lambda h: h["program"]["blocks"][0].update(line="<b>"), "line '<b>'"),
        (lambda h: h["arrays"][0].update(shape=[10**6]), "extent"),
        (lambda h: h["arrays"][0].update(address=16_383), "past the end"),
        (lambda h: h["rows"].append([2048, 0, 0]), "row 2048"),
        (lambda h: h["allocated"].append([0, "0x" + "f" * 17]), "bits"),
        (lambda h: h.update(sources=[]), "sources"),
    ],
)
def test_a_header_is_checked(change, said):
    with pytest.raises(TraceError, match="^x.jsonl:1: this is no trace: ") as caught:
        parse(text_of(change), "x.jsonl")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "a line is a JSON object"),
        ("{", "Expecting"),
        ('{"at":0}', "tokens is missing"),
        ('{"tokens":[86501]}', "token 86501"),
        ('{"tokens":[1.0]}', "token 1.0"),
        ("[" * 100_000, "recursion"),
        ('{"activity":{"layers":0,"counts":""}}', "layers 0"),
        ('{"activity":{"layers":1,"counts":"AAAA"}}', "Error -3"),
        ('{"activity":{"layers":1,"counts":"?"}}', "base64"),
    ],
)
def test_every_line_is_checked(line, said):
    head, first, *rest = lines(fault())
    with pytest.raises(TraceError, match=f"^x:3: this is no trace: .*{said}"):
        parse("\n".join([head, first, line, *rest]), "x")


def test_files_that_are_none(tmp_path):
    with pytest.raises(TraceError, match="cannot be read"):
        load(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceError, match="not text"):
        load(tmp_path / "bytes")
    (tmp_path / "empty").write_text("")
    with pytest.raises(TraceError, match="empty"):
        load(tmp_path / "empty")
    with pytest.raises(QgpuError, match="cannot be written"):
        save(fault(), tmp_path / "empty" / "a.jsonl")


def test_activity_is_of_all_tokens():
    trace = replace(fault(), activity=Activity(2, bytes(4 * 2 * (len(fault().tokens) + 1))))
    with pytest.raises(TraceError, match="activity is of"):
        parse("\n".join(lines(trace)))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_files_are_read_or_refused(data):
    text = "\n".join(lines(fault()))
    at = data.draw(st.integers(0, len(text) - 1))
    cut = data.draw(st.integers(0, 3))
    put = data.draw(st.text('0123456789"[]{},:-x', max_size=3))
    try:
        list(steps(parse(text[:at] + put + text[at + cut :])))
    except TraceError:
        pass
