"""What layers do is counted for the tokens of a launch, and leaves the launch as it was."""

import numpy as np
import pytest
from tests.trace.launches import numbers

from qgpu.driver import Device
from qgpu.errors import LaunchError, LimitError


def test_activity_is_of_the_launch_and_leaves_it_alone():
    with Device() as device:
        a, out = device.array(numbers(8)), device.zeros(8)
        kernel = device.kernel("divergent")
        with pytest.raises(LimitError) as caught:
            kernel[1, 8](a, out, 8, max_tokens=12)
        begun = device.activity(caught.value.launch)
        resumed = device.resume(caught.value.launch, check=True)  # goes on from where it stood
        whole = device.activity(resumed)
        kernel[1, 4](a, out, 4)
        assert device.activity(resumed).counts == whole.counts  # whatever has run since
        assert (begun.tokens, whole.tokens) == (12, len(resumed.tokens))
        assert whole.counts.startswith(begun.counts)
        counts = np.frombuffer(whole.counts, "<u2").reshape(whole.tokens, whole.layers, 2)
        assert (counts.sum(axis=(1, 2)) > 0).all()  # no token comes from nothing
        assert len({row.tobytes() for row in counts}) > 10


def test_the_interpreter_has_no_layers():
    device = Device("interpreter")
    launch = device.kernel("dot")[1, 1](device.array([2]), device.array([3]), device.zeros(1), 1)
    with pytest.raises(LaunchError, match="use the native engine"):
        device.activity(launch)
