"""The table of kernels on the interpreter and on the native engine."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conformance.cases import CASES, Case

from qgpu.driver.device import Device


@pytest.fixture(scope="module", params=["bfloat16", "float32"])
def native(request: pytest.FixtureRequest) -> Device:
    return Device("native", request.param)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_interpreter(case: Case) -> None:
    found, launch = case.run(Device("interpreter"))
    assert found == case.expected
    assert launch.ended == "HALT"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_native(case: Case, native: Device) -> None:
    found, launch = case.run(native)
    _, reference = case.run(Device("interpreter"))
    assert found == case.expected
    assert launch.tokens == reference.tokens
    # the recurrent state against what the tokens alone tell
    np.testing.assert_array_equal(launch.memory, launch.memory_of_tokens())


def test_dot_takes_few_tokens(native: Device) -> None:
    _, launch = CASES[0].run(native)
    assert len(launch.tokens) <= 9
