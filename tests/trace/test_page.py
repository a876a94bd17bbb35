"""The page in Chromium: what it shows at a token is what the interpreter holds there."""

from __future__ import annotations

import json
import random
import struct
from dataclasses import replace

import pytest
from tests.trace.browser import browser
from tests.trace.launches import fault, mix, numbers, oracle, recorded, settled

from qgpu.isa import tokens
from qgpu.isa.values import signed
from qgpu.trace import Activity
from qgpu.trace.page import SCRIPTS, page, part

LAYERS = 5

pytestmark = pytest.mark.xdist_group("chromium")


@pytest.fixture(scope="module")
def chromium():
    with browser() as started:
        yield started


def active():
    """The mixed launch with an activity that is its own oracle."""
    trace = mix()
    counts = [token % 97 + 3 * place for token in range(len(trace.tokens)) for place in range(2 * LAYERS)]
    return replace(trace, activity=Activity(LAYERS, struct.pack(f"<{len(counts)}H", *counts)))


@pytest.fixture
def opened(chromium, tmp_path, request):
    """Opens a trace's page; fails on any error or message of its scripts."""
    said = []

    def opener(trace, **options):
        (tmp_path / "page.html").write_text(page(trace), encoding="utf-8")
        shown = chromium.new_page(**options)
        request.addfinalizer(shown.close)
        shown.on("console", lambda message: NOISE in message.text or said.append(message.text))
        shown.on("pageerror", lambda error: said.append(str(error)))
        shown.goto((tmp_path / "page.html").as_uri())
        shown.wait_for_function("window.qgpu && qgpu.app.layers.ready.then(() => true)")
        return shown

    yield opener
    assert said == []


NOISE = "willReadFrequently"  # of tests that look at pixels
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
SHOWN = """() => ({
    state: (s => ({registers: [...s.registers], memory: [...s.memory], masks: [...s.masks], cta: s.cta, quad: s.quad,
                   block: s.block}))(qgpu.app.model.at(qgpu.app.token)),
    cells: [...document.querySelectorAll('#registers tr')].slice(1).map(
        row => [...row.children].map(cell => cell.textContent)),
    dots: [...document.querySelectorAll('#lanes .quad')].map(quad => [...quad.children].map(dot => dot.className)),
    arrays: [...document.querySelectorAll('#arrays .array')].map(
        array => [...array.querySelectorAll('b')].map(cell => cell.textContent)),
    line: document.querySelector('#source .chosen .number')?.textContent,
    token: document.querySelector('#tokens .chosen .number')?.textContent,
    now: document.getElementById('now').textContent,
})"""


def flat(nested):
    return [word for quad in nested for lane in quad for word in lane]


def compare(shown, trace, machine, fed):
    """All that stands on the page after ``fed`` tokens against the interpreter's state."""
    state = shown["state"]
    quad = machine._quad
    assert state["registers"] == flat(machine.state.registers)
    assert state["memory"] == [word for row in range(tokens.ROWS) for word in machine.state.memory.get(row, (0, 0))]
    assert state["masks"] == machine.state.mask
    assert (state["quad"], state["block"]) == (quad, machine._block)
    for name, *cells in shown["cells"]:
        wanted = [signed(machine.state.registers[quad][lane][int(name[1:])]) for lane in range(4)]
        assert [int(cell) for cell in cells] == wanted
    existing = [dots for dots in shown["dots"]]
    for quad, dots in enumerate(existing):
        assert [dot == "on" for dot in dots] == [bool(machine.state.mask[quad] >> lane & 1) for lane in range(4)]
    for array, values in zip(trace.arrays, shown["arrays"], strict=True):
        words = [machine.state.memory.get(at >> 3, (0, 0))[at >> 2 & 1]
                 for at in range(array.address, array.address + array.nbytes, 4)]  # fmt: skip
        assert [int(value) for value in values] == [signed(word) for word in words]
    assert shown["token"] == str(fed - 1)
    kind, fields = tokens.decode(trace.tokens[fed - 1])
    if kind == "DATA":
        kind, fields = next(
            found for token in reversed(trace.tokens[: fed - 1]) if (found := tokens.decode(token))[0] != "DATA"
        )
    port = {"MEM": "store", "FAULT": tokens.CAUSES[fields[0]].split(" ")[0] if kind == "FAULT" else ""}.get(kind, "")
    assert shown["line"] == str(trace.spot(machine._block, port).line)


def test_every_token_shows_what_the_interpreter_holds(opened):
    """Tokens in a random order, so that states are reached forwards and backwards."""
    trace = mix()
    shown = opened(trace)
    places = [fed for fed, _ in oracle(trace) if settled(trace, fed)]
    random.Random(5).shuffle(places)
    wanted = set(places[:40])
    machines = {fed: machine.snapshot() for fed, machine in oracle(trace) if fed in wanted}
    for fed in places[:40]:
        shown.evaluate(f"qgpu.app.choose({fed - 1})")
        shown.evaluate(DRAWN)
        compare(shown.evaluate(SHOWN), trace, machines[fed], fed)


def test_states_between_checkpoints_do_not_depend_on_the_way(opened):
    shown = opened(mix())
    same = shown.evaluate("""() => {
        const fresh = () => new TraceModel(qgpu.app.model.data);
        const walked = fresh(), jumped = fresh();
        jumped.at(jumped.length - 1);
        const text = (s) => [s.registers, s.memory, s.masks, s.cta].map(String).join(";");
        for (let t = 0; t < walked.length; t += 37) {
            const way = text(walked.at(t));
            jumped.at(jumped.length - 1 - t);
            if (way !== text(jumped.at(t))) return t;
        }
        return "same";
    }""")
    assert same == "same"


def test_keys_step_forwards_and_back(opened):
    trace = mix()
    shown = opened(trace)
    kinds = [tokens.decode(token)[0] for token in trace.tokens]

    def at(key):
        shown.keyboard.press(key)
        return shown.evaluate("qgpu.app.token")

    execs = [i for i, kind in enumerate(kinds) if kind == "EXEC"]
    stops = [i for i, kind in enumerate(kinds) if kind in ("BAR", "CTA")]
    assert [at("ArrowRight"), at("ArrowRight"), at("ArrowLeft")] == [1, 2, 1]
    assert [at("ArrowDown"), at("ArrowDown"), at("ArrowUp")] == [execs[1], execs[2], execs[1]]
    assert [at("b"), at("b"), at("Shift+B")] == [stops[0], stops[1], stops[0]]
    assert [at("m"), at("End"), at("ArrowRight"), at("Home"), at("ArrowLeft")] == [
        kinds.index("MEM", stops[0]), len(kinds) - 1, len(kinds) - 1, 0, 0,
    ]  # fmt: skip
    quad = [i for i in execs if tokens.decode(trace.tokens[i])[1][1] == 0]
    assert [at("]"), at("]"), at("[")] == [quad[1], quad[2], quad[1]]


def test_search_finds_tokens_and_what_they_say(opened):
    trace = mix()
    shown = opened(trace)

    def find(text):
        shown.keyboard.press("/")
        shown.keyboard.type(text)
        shown.keyboard.press("Enter")
        return shown.evaluate("qgpu.app.token")

    assert find("1,000") == 1000
    shown.keyboard.press("Home")
    assert find("exec b0 q3") == trace.tokens.index(tokens.encode("EXEC", 0, 3))
    shown.keyboard.press("Home")
    found = find("out[0] =")
    assert tokens.decode(trace.tokens[found])[0] == "DATA"
    shown.keyboard.press("n")
    assert shown.evaluate("qgpu.app.token") > found
    before = shown.evaluate("qgpu.app.token")
    assert find("nothing of the kind") == before
    assert "none" in shown.locator("#search").get_attribute("class")


def test_a_fault_is_jumped_to(opened):
    trace = fault()
    shown = opened(trace)
    shown.keyboard.press("f")
    shown.evaluate(DRAWN)
    seen = shown.evaluate(SHOWN)
    *_, (fed, machine) = oracle(trace)
    compare(seen, trace, machine, fed)
    assert "FAULT load out of bounds, lane 1" in seen["now"] and "thread 5" in seen["now"]
    assert shown.locator("#ended").text_content() == "FAULT"
    assert shown.locator("#message").text_content() == trace.message
    assert shown.locator("#tokens .row.fault").count() == 1


def test_lines_of_included_files_are_marked_there(opened, tmp_path):
    (tmp_path / "part.cuh").write_text("__device__ int part(const int* a, int i) {\n  return a[i];\n}\n")
    source = "__global__ void k(const int* a, int* b) {\n  b[threadIdx.x * 9] =\n    part(a, threadIdx.x);\n}\n"
    (tmp_path / "k.cu").write_text(f'#include "part.cuh"\n{source}')
    trace = recorded("", 1, 4, numbers(4), numbers(4), file=str(tmp_path / "k.cu"))
    shown = opened(trace)

    def marked():
        shown.evaluate(DRAWN)
        row = shown.locator("#source .row.chosen")
        return row.locator(".number").text_content(), row.locator("code").text_content()

    names = shown.evaluate("qgpu.app.source.lines.filter((line) => line.name).map((line) => line.name)")
    assert names == [trace.file, str(tmp_path / "part.cuh")]
    shown.evaluate("qgpu.app.choose(0)")
    assert marked() == ("2", "  return a[i];")
    shown.keyboard.press("f")
    assert marked() == ("3", "  b[threadIdx.x * 9] =")
    assert "at k.cu:3" in shown.evaluate(SHOWN)["now"]


def test_layers_are_those_of_the_token(opened):
    shown = opened(active())
    shown.evaluate("qgpu.app.choose(123)")
    shown.evaluate(DRAWN)
    counts = shown.evaluate("""() => {
        const { layers, token } = qgpu.app;
        return Array.from({length: layers.layers}, (_, l) => [layers.count(token, l, 0), layers.count(token, l, 1)]);
    }""")
    assert counts == [[123 % 97 + 6 * layer, 123 % 97 + 6 * layer + 3] for layer in range(LAYERS)]
    assert shown.locator("#layersnote").text_content().startswith(str(sum(map(sum, counts))))


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (400, "light"), (400, "dark")])
def test_it_fits_and_can_be_read(opened, width, scheme):
    """Nothing sticks out sideways, every canvas holds more than one colour, text stands out from its ground."""
    shown = opened(active(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    shown.evaluate("qgpu.app.choose(700)")
    shown.evaluate(DRAWN)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    colours = shown.evaluate("""() => [...document.querySelectorAll("canvas")].map(canvas => {
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return new Set(new Uint32Array(pixels.buffer)).size;
    })""")
    assert len(colours) == 5 and min(colours) > 2
    luminance = shown.evaluate("""() => ["--ink", "--panel"].map(name => {
        const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1);
        const parts = [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16) / 255);
        const linear = parts.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    })""")
    low, high = sorted(luminance)
    assert (high + 0.05) / (low + 0.05) > 7
    assert (luminance[0] > luminance[1]) == (scheme == "dark")


def test_nothing_of_a_trace_is_run(opened):
    """Names and sources with markup in them stay text, and the page's policy lets no other script run."""
    evil = "</script><script>window.ran = 1</script><img src=x onerror='window.ran = 2'>"
    trace = mix()
    arrays = tuple(replace(array, name=evil) for array in trace.arrays)
    trace = replace(trace, kernel=evil, file=evil, message=evil, sources={evil: evil + "\n" * 20}, arrays=arrays)
    shown = opened(trace)
    shown.evaluate("qgpu.app.choose(60)")
    shown.evaluate(DRAWN)
    assert shown.evaluate("window.ran") is None
    assert shown.locator("img").count() == 0
    assert shown.locator("#kernel").text_content() == evil


def test_the_page_needs_nothing_else():
    text = page(mix())
    assert text.count("<script") == 2 and text.count("</script>") == 2
    for scheme in ("http:", "https:", "//cdn", "@import", "url("):
        assert scheme not in "".join(part(name) for name in (*SCRIPTS, "style.css", "page.html"))
    assert text.count(json.dumps(list(mix().tokens), separators=(",", ":"))) == 1


def test_traces_without_tokens_or_sources_can_be_shown(opened):
    shown = opened(replace(mix(), tokens=(), sources={}, file="", arrays=()))
    assert shown.locator("#ended").text_content() == "LIMIT"
    shown = opened(replace(mix(), tokens=mix().tokens[:300], sources={}, file=""))
    shown.keyboard.press("End")
    assert shown.evaluate("qgpu.app.token") == 299


def test_lists_longer_than_browsers_allow_show_every_row(opened):
    """A list is held to a height that the browser keeps; all its rows are reached all the same."""
    shown = opened(mix())
    seen = shown.evaluate("""() => {
        const element = document.createElement("div");
        element.className = "list";
        element.style.cssText = "height: 200px; flex: none";
        document.body.append(element);
        const list = new VirtualList(element, 3_000_000, 20, (row, i) => (row.textContent = i), () => {});
        return [0, 7, 1_234_567, 2_999_999].map((index) => {
            list.choose(index);
            const row = element.querySelector(".chosen"), box = row.getBoundingClientRect();
            const around = element.getBoundingClientRect();
            return [+row.textContent, box.top >= around.top - 1 && box.bottom <= around.bottom + 1,
                    element.scrollHeight <= VirtualList.HIGHEST + 1];
        });
    }""")
    assert seen == [[index, True, True] for index in (0, 7, 1_234_567, 2_999_999)]


@pytest.mark.parametrize("seed", range(2))
def test_tokens_that_no_machine_writes_are_shown(opened, seed):
    """Whatever a file holds, the page opens, steps and says something of every token."""
    draw = random.Random(seed)
    kinds = [draw.randrange(kind.first, kind.first + kind.count) for kind in tokens.KINDS for _ in range(20)]
    ids = [draw.choice(kinds) if draw.random() < 0.6 else draw.randrange(1 << 16) for _ in range(150)]
    shown = opened(replace(mix(), tokens=tuple(ids)))
    said = shown.evaluate("""async () => {
        const { app } = qgpu, said = [];
        for (let token = 0; token < app.model.length; token++) {
            app.choose(token);
            app.draw();
            said.push(document.getElementById("now").textContent);
        }
        return said;
    }""")
    assert [text.startswith(tokens.text(token)) for text, token in zip(said, ids, strict=True)
            if tokens.decode(token)[0] not in ("MASK", "DATA")].count(False) == 0  # fmt: skip


def test_the_pointer_chooses_moves_and_zooms(opened):
    trace = mix()
    shown = opened(trace, viewport={"width": 1400, "height": 900})
    token = lambda: shown.evaluate("qgpu.app.token")  # noqa: E731
    view = lambda: shown.evaluate("[qgpu.app.timeline.view.from, qgpu.app.timeline.view.to]")  # noqa: E731

    box = shown.locator("#overview").bounding_box()
    shown.mouse.click(box["x"] + box["width"] / 2, box["y"] + 10)
    shown.evaluate(DRAWN)
    assert abs(token() - len(trace.tokens) // 2) <= 2

    place = shown.evaluate("qgpu.app.timeline.x(qgpu.app.timeline.view.from + 20.5)")
    box = shown.locator("#timeline").bounding_box()
    wanted = shown.evaluate("Math.floor(qgpu.app.timeline.view.from + 20.5)")
    shown.mouse.move(box["x"] + place, box["y"] + 40)
    assert f"token {wanted:,}:" in shown.locator("#tip").text_content()
    shown.mouse.click(box["x"] + place, box["y"] + 40)
    assert token() == wanted

    before = view()
    shown.mouse.wheel(0, -300)
    wide = "wide => qgpu.app.timeline.view.to - qgpu.app.timeline.view.from < wide"
    shown.wait_for_function(wide, arg=0.8 * (before[1] - before[0]))  # a wheel is told of later
    after = view()
    shown.mouse.down()
    shown.mouse.move(box["x"] + place - 200, box["y"] + 40, steps=4)
    shown.mouse.up()
    assert view()[0] > after[0] and token() == wanted

    shown.locator("#source .row", has_text="__syncthreads").click()
    shown.evaluate(DRAWN)
    block, _ = tokens.decode(trace.tokens[token()])[1]
    assert "__syncthreads" in trace.sources["mix.cu"].splitlines()[trace.spot(block).line - 1] and token() > wanted
    shown.locator("#tokens .row", has_text=str(token() + 3)).first.click()
    shown.evaluate(DRAWN)
    assert shown.locator("#tokens .chosen .number").text_content() == str(token())


def test_light_and_dark_can_be_chosen(opened):
    shown = opened(mix(), color_scheme="light")
    ground = lambda: shown.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    light = ground()
    shown.keyboard.press("t")
    dark = ground()
    shown.keyboard.press("t")
    assert light != dark and ground() == light


ALPHAS = """([id, points]) => {
    const canvas = document.getElementById(id), scale = window.devicePixelRatio;
    const { width, height, data } = (c => c.getContext("2d").getImageData(0, 0, c.width, c.height))(canvas);
    return points.map(([x, y]) => data[4 * (Math.floor(y * scale) * width + Math.floor(x * scale)) + 3]);
}"""
"""How opaque a canvas is at points; full colour, pale and empty differ in that alone."""


def test_what_is_drawn_is_what_the_interpreter_holds(opened):
    """Lanes of the timeline, registers and memory as heat, looked at pixel by pixel."""
    trace = mix()
    shown = opened(trace, viewport={"width": 1400, "height": 900})
    whole, parted = [], []
    for fed, machine in oracle(trace):
        if tokens.decode(trace.tokens[fed - 1])[0] == "EXEC" and settled(trace, fed):
            (whole if machine.state.mask[machine._quad] == 15 else parted).append(fed)
    chosen = [*whole[::9][:5], *parted[::5][:6]]
    machines = {fed: machine.snapshot() for fed, machine in oracle(trace) if fed in set(chosen)}
    pale = 0
    for fed, machine in machines.items():
        quad = machine._quad
        geometry = shown.evaluate(
            f"""async () => {{
            const {{ app }} = qgpu, t = app.timeline;
            app.choose({fed - 1});
            t.moveTo({fed - 1} - 20);
            await {DRAWN};
            return {{x: t.x({fed - 0.5}), top: Timeline.TOP + t.rows.get({quad}) * t.pitch, lane: t.lane,
                     registers: app.model.usedRegisters, cell: app.registers.cell, lines: app.memory.lines,
                     wide: app.memory.cell}};
        }}"""
        )
        points = [[geometry["x"], geometry["top"] + (lane + 0.45) * geometry["lane"]] for lane in range(4)]
        full = [alpha > 200 for alpha in shown.evaluate(ALPHAS, ["timeline", points])]
        assert full == [bool(machine.state.mask[quad] >> lane & 1) for lane in range(4)]
        pale += full.count(False)

        cells = [(q, lane, row) for q in range(5) for lane in range(4) for row in range(len(geometry["registers"]))]
        points = [[28 + (4 * q + lane + 0.4) * geometry["cell"], 9 * row + 4] for q, lane, row in cells]
        lit = [alpha > 30 for alpha in shown.evaluate(ALPHAS, ["registerheat", points])]
        held = [machine.state.registers[q][lane][geometry["registers"][row]] for q, lane, row in cells]
        assert lit == [word != 0 for word in held]

        words = [(i, column) for i in range(len(geometry["lines"])) for column in range(32)]
        points = [[44 + (column + 0.4) * geometry["wide"], 10 * i + 4] for i, column in words]
        lit = [alpha > 30 for alpha in shown.evaluate(ALPHAS, ["memory", points])]
        places = [32 * geometry["lines"][i] + column for i, column in words]
        assert lit == [machine.state.memory.get(at >> 1, (0, 0))[at & 1] != 0 for at in places]
    assert pale > 0 and len(machines) > 6
