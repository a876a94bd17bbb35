"""Exports read back by readers of their own, and compared with the interpreter."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.trace.launches import fault, mix, oracle, settled

from qgpu.isa import tokens
from qgpu.trace import exports


def chrome(trace):
    return json.loads("".join(exports.chrome(trace)))["traceEvents"]


def test_chrome_has_a_track_a_warp_and_a_slice_an_exec():
    trace = mix()
    events = chrome(trace)
    slices = [event for event in events if event["ph"] == "X"]
    execs = [(at, tokens.decode(t)[1]) for at, t in enumerate(trace.tokens) if tokens.decode(t)[0] == "EXEC"]
    assert [(s["ts"], s["name"], s["args"]["quad"], s["tid"]) for s in slices] == [
        (at, f"b{block}", quad, quad // 8) for at, (block, quad) in execs
    ]
    for before, after in zip(slices, slices[1:], strict=False):
        assert before["ts"] + before["dur"] <= after["ts"]  # slices of a track must not overlap
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {"mix", "warp 0"}
    lanes = {}
    for fed, machine in oracle(trace):
        if tokens.decode(trace.tokens[fed - 1])[0] == "EXEC":
            lanes[fed - 1] = [lane for lane in range(4) if machine.state.mask[machine._quad] >> lane & 1]
    assert [s["args"]["lanes"] for s in slices] == [lanes[s["ts"]] for s in slices]
    assert {s["args"]["line"] for s in slices} >= {"mix.cu:5", "mix.cu:17"}


def test_chrome_has_instants_for_what_happens_once():
    instants = [event for event in chrome(mix()) if event["ph"] == "i"]
    names = [event["name"].split()[0] for event in instants]
    assert (names.count("BAR"), names.count("CTA"), names.count("HALT"), names.count("atomic")) == (2, 1, 1, 39)
    assert [e["name"] for e in chrome(fault()) if e["ph"] == "i"] == ["FAULT load out of bounds"]


def read_vcd(text):
    """(signal path -> bits, value changes as (time, path, number or None)) of a value change dump."""
    signals, scope, changes, now = {}, [], [], 0
    head, body = text.split("$enddefinitions $end\n")
    for line in head.splitlines():
        words = line.split()
        if words[0] == "$scope":
            scope.append(words[2])
        elif words[0] == "$upscope":
            scope.pop()
        elif words[0] == "$var":
            assert words[3] not in signals
            signals[words[3]] = ("/".join([*scope, words[4]]), int(words[2]))
    assert scope == []
    for line in body.splitlines():
        if line.startswith("#"):
            assert int(line[1:]) >= now
            now = int(line[1:])
        elif line.startswith("b"):
            value, short = line[1:].split()
            path, bits = signals[short]
            assert value == "x" or int(value, 2) < 1 << bits
            changes.append((now, path, None if value == "x" else int(value, 2)))
    return {path: bits for path, bits in signals.values()}, changes, now


def test_vcd_holds_at_every_time_what_the_machine_holds():
    trace = mix()
    signals, changes, end = read_vcd("".join(exports.vcd(trace)))
    assert end == len(trace.tokens) and len(signals) > 100
    held = {}
    compared = 0
    queue = iter([*changes, (end + 1, "", None)])
    change = next(queue)
    for fed, machine in oracle(trace):
        while change[0] < fed:
            held[change[1]] = change[2]
            change = next(queue)
        assert held["mix/token"] == trace.tokens[fed - 1]
        if not settled(trace, fed) or tokens.decode(trace.tokens[fed - 1])[0] == "CTA":
            continue
        assert (held["mix/quad"], held["mix/block"]) == (machine._quad, machine._block)
        for path, value in held.items():
            parts = path.split("/")
            if parts[-1].startswith("r") and value is not None:
                quad, lane, register = (int("".join(filter(str.isdigit, part))) for part in parts[1:])
                assert value == machine.state.registers[quad][lane][register]
                compared += 1
            elif parts[1] == "memory":
                low, high = machine.state.memory.get(int(parts[2][3:], 16) // 8, (0, 0))
                assert value == low | high << 32
                compared += 1
        assert held[f"mix/quad{machine._quad}/mask"] == machine.state.mask[machine._quad]
    assert compared > 10_000


def test_vcd_names_are_names():
    head = "".join(exports.vcd(replace(mix(), kernel="void f<int>(int) $end"))).splitlines()[2]
    assert head == "$scope module void_f_int__int___end $end"
