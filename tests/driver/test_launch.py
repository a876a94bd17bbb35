"""Launches on the interpreter in the engine's place: results, faults, limits, checks."""

import numpy as np
import pytest
from tests.driver.programs import ADD, COUNT, FOREVER, TRAP, block

from qgpu.driver import Device
from qgpu.driver.code import Code
from qgpu.driver.kernel import Kernel
from qgpu.driver.runners import InterpreterRunner
from qgpu.errors import CheckError, FaultError, LaunchError, LimitError
from qgpu.isa import tokens
from qgpu.isa.program import Program


class Altered(InterpreterRunner):
    """An engine with a fault of its own: its token at ``position`` is another, or a memory word is."""

    name = "altered"

    def __init__(self, position: int | None = None, token: int = 0, word: int | None = None) -> None:
        super().__init__()
        self.position, self.token, self.word = position, token, word

    def generate(self, limit, stops):
        written = super().generate(10**6, stops)
        if self.position is not None:
            written[self.position] = self.token
        return written

    def memory(self):
        memory = super().memory()
        if self.word is not None:
            memory[self.word] += 1
        return memory


def device_on(runner) -> Device:
    device = Device("interpreter")
    device._runner = runner
    return device


def add(device: Device, threads: int = 5, **options):
    a, b, out = device.array([1, 2, 3, 70_000, -5]), device.array([10, 20, 30, 40, 5]), device.zeros(5)
    return Kernel(device, ADD)[1, threads](a, b, out, **options), out


def test_a_result_and_its_numbers():
    launch, out = add(Device("interpreter"))
    assert out.numpy().tolist() == [11, 22, 33, 70_040, 0]
    assert launch.ended == "HALT"
    assert not launch.checked
    numbers = launch.statistics
    assert numbers.tokens == len(launch.tokens) == sum(numbers.kinds.values())
    assert numbers.exec_tokens == 4  # two blocks for two quads
    assert numbers.lane_instructions == 5 * (2 + 3)
    assert numbers.kinds["MEM"] == 3  # five words in three rows


def test_memory_from_the_state_is_what_the_tokens_tell():
    launch, _ = add(Device("interpreter"))
    assert (launch.memory == launch.memory_of_tokens()).all()
    assert launch.memory[16:21].tolist() == [1, 2, 3, 70_000, 2**32 - 5]


def test_arrays_stay_between_launches():
    device = Device("interpreter")
    out = device.zeros(1)
    count = Kernel(device, COUNT)
    for _ in range(2):
        count[(2, 1), (3,)](value=7, out=out)
    assert out.numpy().tolist() == [2 * 2 * 3 * 7]


def test_threads_that_run_past_an_array_fault_with_their_place():
    device = Device("interpreter")
    with pytest.raises(FaultError) as error:
        add(device, threads=7)
    fault = error.value
    assert (fault.cause, fault.thread, fault.cta, fault.line) == ("load out of bounds", (5, 0, 0), (0, 0, 0), 3)
    assert fault.address == 64 + 4 * 5
    assert str(fault) == (
        "add.cu:3: FAULT in kernel add: Invalid __global__ read of size 4 bytes\n"
        "    at block b0\n"
        "    by thread (5,0,0) in CTA (0,0,0)\n"
        "    Address 0x0054 is out of bounds\n"
        "    and is 1 bytes after the nearest allocation a (5 x int32) at 0x0040 of size 20 bytes: a[5]"
    )


def test_what_was_written_before_a_fault_can_be_read():
    device = Device("interpreter")
    a, b, out = device.zeros(8), device.array(range(8)), device.zeros(5)
    with pytest.raises(FaultError, match="Invalid __global__ write of size 4 bytes") as error:
        Kernel(device, ADD)[1, 8](a, b, out)  # the second quad runs after the first has stored
    assert error.value.launch.ended == "FAULT"
    assert out.numpy().tolist() == [0, 1, 2, 3, 0]


@pytest.mark.parametrize(
    ("value", "near"),
    [
        (0, "0x0000 is out of bounds\n    and is near address 0: a null pointer"),
        (-4, "0xfffffffc is out of bounds\n    and is .* after .* out .*, beyond the memory's 16,384 bytes"),
        (82, r"0x0052 is misaligned\n    and is inside the allocation out \(5 x int32\) .*: out\[4\]\+2"),
        (12_284, r"0x2ffc is out of bounds\n    and is 12,201 bytes after the nearest .* 20 bytes: out\[3055\]"),
        (12_288, "Invalid __shared__ read .*\n.*\n.*\n.*\n    and is in shared memory, of which the kernel has none"),
    ],
)
def test_addresses_are_explained(value, near):
    device = Device("interpreter")
    out = device.zeros(5)
    with pytest.raises(FaultError, match=near):
        Kernel(device, TRAP)[1, 1](out, value, 0)


def test_a_trap_has_a_line_and_no_address():
    device = Device("interpreter")
    message = (
        r"^trap.cu:9: FAULT in kernel trap: Trap: the kernel stopped itself \(assert, __trap\)\n"
        r"    at block b5\n    by thread \(1,1,0\) in CTA \(0,2,0\)$"
    )
    with pytest.raises(FaultError, match=message) as error:
        Kernel(device, TRAP)[(1, 3), (2, 2)](device.zeros(1), 64, 1)
    assert (error.value.address, error.value.cta) == (None, (0, 2, 0))


def test_an_endless_loop_ends_at_the_limit():
    device = Device("interpreter")
    with pytest.raises(LimitError, match="forever wrote 30 tokens and has not ended: an endless loop") as error:
        Kernel(device, FOREVER)[1, 1](max_tokens=30)
    assert len(error.value.launch.tokens) == 30
    assert error.value.launch.ended == "LIMIT"


def test_a_limit_that_is_just_enough():
    device = Device("interpreter")
    needed = add(device)[0].statistics.tokens
    assert add(device, max_tokens=needed)[0].ended == "HALT"
    with pytest.raises(LimitError):
        add(device, max_tokens=needed - 1)
    with pytest.raises(LaunchError, match="allow at least 1"):
        add(device, max_tokens=0)


def test_a_launch_can_go_on_after_its_limit():
    device = Device("interpreter")
    whole = add(device)[0]
    with pytest.raises(LimitError) as error:
        add(device, max_tokens=13)
    paused = error.value.launch
    out = device.arrays[-1]
    assert paused.tokens == whole.tokens[:13]
    add(device)  # another launch in between
    for _ in range(2):
        with pytest.raises(LimitError) as error:
            device.resume(paused, max_tokens=3)
        done = device.resume(error.value.launch, max_tokens=100)
        assert (done.tokens, done.ended) == (whole.tokens, "HALT")
        assert done.statistics == whole.statistics
        assert (done.memory == whole.memory).all()
    assert out.numpy().tolist() == [11, 22, 33, 70_040, 0]
    with pytest.raises(LaunchError, match="the launch of add ended with HALT: there is nothing to go on with"):
        device.resume(done)


@pytest.mark.parametrize(("grid", "cta", "message"), [
    (1, 129, "CTA of 129 threads; the machine has 128"),
    (0, 1, "need sizes of at least 1"),
    (1, (1, 1, 1, 1), "give one to three integers"),
    ((1, 70_000), 1, "over CUDA's limits"),
])  # fmt: skip
def test_sizes_that_cannot_be(grid, cta, message):
    device = Device("interpreter")
    with pytest.raises(LaunchError, match=message):
        Kernel(device, FOREVER)[grid, cta]()


def test_a_check_passes_what_is_right():
    launch, out = add(device_on(Altered()), check=True)
    assert launch.checked


def test_a_check_names_both_tokens_and_the_position():
    right = add(Device("interpreter"))[0].tokens
    assert tokens.text(right[9]) == "DATA 0x0001"
    with pytest.raises(CheckError) as error:
        add(device_on(Altered(9, 5)), check=True)
    assert error.value.position == 9
    assert str(error.value) == (
        f"check failed at token 9 of {len(right)}: the model wrote DATA 0x0005 (id 5), "
        "the interpreter writes DATA 0x0001 (id 1)"
    )


def test_a_check_looks_at_memory_too():
    with pytest.raises(CheckError, match="1 memory words differ, first the one at address 0x0050") as error:
        add(device_on(Altered(word=20)), check=True)
    assert error.value.position is None


def test_a_trace_that_goes_on_after_the_end_fails_the_check():
    halt = tokens.encode("HALT")
    with pytest.raises(CheckError, match="the model wrote HALT .* the interpreter writes EXEC b0 q0"):
        add(device_on(Altered(0, halt)), check=True)


def test_an_altered_fault_still_has_a_message():
    """The address comes from a replay; where the replay disagrees there is none."""
    fault = tokens.encode("FAULT", 0, 2)
    device = device_on(Altered(0, fault))
    message = r"Invalid __global__ read of size 4 bytes\n    at block b0\n    by thread \(2,0,0\)"
    with pytest.raises(FaultError, match=message) as error:
        device._runner.generate = lambda limit, stops: [fault]
        add(device)
    assert error.value.address is None


def test_the_interpreter_is_not_checked_with_itself():
    with pytest.raises(LaunchError, match="there is nothing to compare"):
        add(Device("interpreter"), check=True)


def test_progress_is_told():
    told: list[tuple[int, float]] = []
    device = Device("interpreter", progress=lambda count, share: told.append((count, share)))
    with pytest.raises(LimitError):
        Kernel(device, FOREVER)[1, 1](max_tokens=1000)
    assert told == sorted(told) and told[-1] == (1000, 0) and len(told) > 2
    told.clear()
    Kernel(device, COUNT)[10, 1](1, device.zeros(1))
    assert told == sorted(told) and 0 < told[-1][1] < 1


def test_an_interrupted_launch_is_left_as_far_as_it_went():
    class Interrupted(InterpreterRunner):
        steps = 0

        def generate(self, limit, stops):
            written = super().generate(limit, stops)
            self.steps += 1
            if self.steps == 2:
                raise KeyboardInterrupt
            return written

    device = device_on(Interrupted())
    whole = add(Device("interpreter"))[0]
    with pytest.raises(KeyboardInterrupt) as error:
        add(device)
    launch = error.value.launch
    assert (launch.ended, launch.tokens) == ("INTERRUPT", whole.tokens[:16])
    assert (launch.memory == launch.memory_of_tokens()).all()
    out = device.arrays[-1]
    assert out.numpy().view(np.uint32).tolist() == launch.memory[out.address // 4 :][:5].tolist()
    with pytest.raises(LaunchError, match="ended with INTERRUPT: there is nothing to go on with"):
        device.resume(launch)
    assert add(device)[0].ended == "HALT"


def test_an_engine_that_says_nothing_ends():
    class Silent(InterpreterRunner):
        def generate(self, limit, stops):
            return []

    with pytest.raises(LimitError, match="wrote 0 tokens"):
        add(device_on(Silent()))


def test_engines_and_types_that_are_not_there():
    known = "native, transformers, verified, interpreter"
    with pytest.raises(LaunchError, match=f"there is no engine 'cuda'; there are: {known}"):
        Device("cuda")
    with pytest.raises(LaunchError, match="dtype 'float32': the interpreter engine works on integers"):
        Device("interpreter", "float32")
    with pytest.raises(LaunchError, match="dtype 'float16': the native engine has the types bfloat16, float32"):
        Device("native", "float16")
    with pytest.raises(LaunchError, match="device 'cuda': the interpreter engine runs on the CPU; transformers takes"):
        Device("interpreter", device="cuda")
    assert Device("interpreter", device="cpu").engine == "interpreter"


def test_a_block_that_the_circuits_lack_is_refused_before_the_launch():
    code = Code("low", Program("low", (block(7, alu_a="place"), block(9, alu_b="popc", branch="exit"))), (), "low.s")

    class Weights(InterpreterRunner):
        name = "native"

    with pytest.raises(LaunchError) as caught:
        device_on(Weights()).launch(code, (1, 1, 1), (1, 1, 1), ())
    first, second, remedy = str(caught.value).splitlines()
    assert first == "low: block 0 (line 7): the circuits have no alu_a place"
    assert second == "low: block 1 (line 9): the circuits have no alu_b popc"
    assert "--engine interpreter" in remedy


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda device: device.zeros(-1), r"zeros\(-1\): give a size"),
        (lambda device: device.zeros(1.5), r"zeros\(1.5\): give a size"),
        (lambda device: device.zeros(4).fill([1, 2]), r"elements of shape \(2,\) do not fit \(4,\)"),
        (lambda device: Kernel(device, ADD)[1.5, 4], "grid 1.5: give one to three integers"),
        (lambda device: Kernel(device, ADD)[1, "4"], "CTA '4': give one to three integers"),
    ],
)
def test_sizes_that_are_none_are_refused_as_ours(call, message):
    with pytest.raises(LaunchError, match=message):
        call(device_on(InterpreterRunner()))
