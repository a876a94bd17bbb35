"""The layer map against the network that it is drawn from."""

from dataclasses import asdict
from xml.etree import ElementTree

import pytest

from qgpu.circuit.examples import accumulator, fibonacci
from qgpu.driver.picture import GROUPS, group_of, layer_map
from qgpu.foundry.cast import Options, cast_with_report

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("circuit", [fibonacci(4), accumulator(4)])
def test_every_layer_and_every_memory_is_in_the_picture(circuit):
    network, report = cast_with_report(circuit, Options(heads=3))
    root = ElementTree.fromstring(layer_map(network, asdict(report)))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert [str(layer) for layer in range(network.shape.layers)] == [text for text in texts if text.isdigit()]
    titles = [title.text for title in root.iter(f"{SVG}title")]
    for name in network.states:
        assert sum(name in title.split(", ") for title in titles) == 1
    for row in report.layers:
        assert f"layer {row.layer}: {row.neurons:,} neurons" in titles
    points = root.find(f"{SVG}polyline").attrib["points"].split()
    heights = [-float(point.split(",")[1]) for point in points]
    alive = [row.alive for row in report.layers]
    assert heights.index(max(heights)) == alive.index(max(alive)) and len(points) == network.shape.layers


def test_memories_belong_to_groups():
    names = ["context.rom.part0.port0.bank0", "operand.registers.lane0.port0.bank0", "memory.lane3.bank15", "grid.up"]
    assert [GROUPS[group_of(name)][1].split(":")[0] for name in names] == ["program", "registers", "memory", "the rest"]
