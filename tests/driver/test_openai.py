"""Launches on a server with OpenAI's protocol: the same arrays, tokens and faults as on the interpreter itself."""

from __future__ import annotations

import numpy as np
import pytest
from tests.driver.completions_server import Served, serve

import qgpu
from qgpu.errors import FaultError, LaunchError, LimitError, QgpuError
from qgpu.isa import tokens

FORGETS = """__global__ void shared(int* out) {
  __shared__ int s[4];
  s[threadIdx.x] = threadIdx.x + 10 * blockIdx.x;
  __syncthreads();
  out[4 * blockIdx.x + threadIdx.x] = s[3 - threadIdx.x] * 70000;
}"""


@pytest.mark.parametrize(("first", "style"), [(248320, "ids"), (0, "logprobs")])
def test_launches_are_those_of_the_machine(first: int, style: str) -> None:
    with serve(Served(first, style)) as served:
        device = qgpu.Device("openai", url=served.url, first_id=first, key="secret")
        host = qgpu.Device("interpreter")
        memories = []
        for at in (device, host):
            a, b, out = at.array([1, 2, 3]), at.array([-4, 5, 600000]), at.zeros(1)
            done = at.kernel("dot")[1, 3](a, b, out, 3)
            assert out.numpy().tolist() == [1800006]
            more = at.zeros(8)
            last = at.kernel(FORGETS)[2, 4](more)
            assert more.numpy().tolist() == [70000 * (3 - i + 10 * c) for c in range(2) for i in range(4)]
            memories.append((done.tokens, last.tokens, done.memory.tobytes(), last.memory.tobytes()))
        assert memories[0] == memories[1]
        assert served.keys == {"Bearer secret"}
        reads = [prompt[-1] - first for asked in served.requests for prompt in asked["prompt"]]
        assert any(tokens.decode(i)[0] == "READ" for i in reads), "results come from the model, by READ"


def test_faults_and_limits() -> None:
    with serve(Served(248320)) as served:
        device = qgpu.Device("openai", url=served.url)
        with pytest.raises(FaultError, match="out of bounds"):
            device.kernel("vector_add")[1, 4](device.array([1]), device.array([1]), device.zeros(1), 4)
        out = device.zeros(1)
        with pytest.raises(LimitError) as caught:
            device.kernel("dot")[1, 3](device.array([1, 2, 3]), device.array([4, 5, 6]), out, 3, max_tokens=4)
        assert device.resume(caught.value.launch).ended == "HALT"
        assert np.array_equal(out.numpy(), [32])


def test_what_goes_wrong_is_told() -> None:
    with serve(Served(248320, "text")) as served:
        device = qgpu.Device("openai", url=served.url)

        def run() -> str:
            with pytest.raises(QgpuError) as caught:
                device.kernel("dot")[1, 1](device.array([1]), device.array([1]), device.zeros(1), 1)
            return str(caught.value)

        assert "tells no token ids" in run()
        served.style, served.flip = "ids", -248320
        assert "none of the machine's" in run()
        with pytest.raises(LaunchError, match="are the server's"):
            qgpu.Device("openai", url=served.url, dtype="float32")
        device = qgpu.Device("openai", url=served.url, model="other")
        assert "does not exist" in run()
    with pytest.raises(QgpuError, match="no answer from a server"):
        qgpu.Device("openai", url=served.url)
    with pytest.raises(LaunchError, match="needs the url"):
        qgpu.Device("openai")
    with pytest.raises(LaunchError, match="needs the url"):
        qgpu.Device("interpreter", url="http://127.0.0.1:1/v1")
