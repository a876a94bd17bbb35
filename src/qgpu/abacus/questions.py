"""Questions with the expression that answers them, made by seed: what abacus is trained on and tested with.

Held-out questions have wordings that training never sees, and numbers of their own: which half of the integers a
question's numbers come from is decided by a hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from random import Random
from typing import Any

from qgpu.abacus.phrases import CHAT, NAMES, THINGS, WORDINGS

Value = int | list[Any]
HELD_OUT = 10  # one list or pair of numbers in so many is kept for tests
LONGEST, LARGEST = 6, 9999


@dataclass(frozen=True)
class Question:
    """``expression``: "" for talk that needs no numbers. ``result``: its value, as the GPU would put it in.
    ``answer``: what follows the result."""

    kind: str
    text: str
    expression: str
    result: str
    answer: str


@dataclass(frozen=True)
class Kind:
    """``draw``: the operands; ``expression``: with ``{x}`` and ``{y}``; ``value``: by Python."""

    draw: Callable[[Random], tuple[Value, ...]]
    expression: str
    value: Callable[..., Any]


def _number(rng: Random) -> int:
    """Of one to four digits, each length as often; now and then negative."""
    size = rng.randrange(1, 5)
    value = rng.randrange(10 ** (size - 1), 10**size)
    return -value if rng.random() < 0.1 else value


def _positive(rng: Random) -> int:
    return abs(_number(rng)) or 1


def _vector(rng: Random, length: int | None = None) -> list[int]:
    most = rng.choice((9, 99, 999, LARGEST))
    low = -most if rng.random() < 0.15 else 0
    return [rng.randint(low, most) for _ in range(length or rng.randint(2, LONGEST))]


def _pair_of_vectors(rng: Random) -> tuple[Value, ...]:
    length = rng.randint(2, LONGEST - 1)
    return _vector(rng, length), _vector(rng, length)


def _matrix(rng: Random, rows: int, columns: int) -> list[list[int]]:
    return [[rng.randint(-9 if rng.random() < 0.1 else 0, 9) for _ in range(columns)] for _ in range(rows)]


def _matrices(rng: Random) -> tuple[Value, ...]:
    inner = rng.randint(1, 3)
    return _matrix(rng, rng.randint(1, 3), inner), _matrix(rng, inner, rng.randint(1, 3))


def _matrix_and_vector(rng: Random) -> tuple[Value, ...]:
    inner = rng.randint(2, 3)
    return _matrix(rng, rng.randint(2, 3), inner), [rng.randint(0, 9) for _ in range(inner)]


def _operands(rng: Random) -> tuple[Value, ...]:
    """Two numbers; now and then two vectors, or one of each."""
    dice = rng.random()
    if dice < 0.7:
        return _number(rng), _number(rng)
    return _pair_of_vectors(rng) if dice < 0.9 else (_vector(rng), _number(rng))


def _divided(rng: Random) -> tuple[Value, ...]:
    return _positive(rng), rng.randint(1, 99)


def _each(function: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    def apply(x: Any, y: Any) -> Any:
        if isinstance(x, list):
            return [apply(a, y[i] if isinstance(y, list) else y) for i, a in enumerate(x)]
        return function(x, y)

    return apply


def _product(x: list[list[int]], y: list[Any]) -> list[Any]:
    if isinstance(y[0], list):
        return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*y, strict=True)] for row in x]
    return [sum(a * b for a, b in zip(row, y, strict=True)) for row in x]


def _running(x: list[int]) -> list[int]:
    return [sum(x[: i + 1]) for i in range(len(x))]


def _one(draw: Callable[[Random], Value]) -> Callable[[Random], tuple[Value, ...]]:
    return lambda rng: (draw(rng),)


def _counted(rng: Random) -> tuple[Value, ...]:
    vector = _vector(rng)
    return vector, rng.choice(vector) if rng.random() < 0.5 else abs(_number(rng))


def _taken(rng: Random) -> tuple[Value, ...]:
    whole = _positive(rng)
    return whole, rng.randint(0, whole)


KINDS: Mapping[str, Kind] = {
    "dot": Kind(_pair_of_vectors, "{x} @ {y}", lambda x, y: sum(a * b for a, b in zip(x, y, strict=True))),
    "matmul": Kind(_matrices, "{x} @ {y}", _product),
    "matvec": Kind(_matrix_and_vector, "{x} @ {y}", _product),
    "add": Kind(_operands, "{x} + {y}", _each(lambda a, b: a + b)),
    "sub": Kind(_operands, "{x} - {y}", _each(lambda a, b: a - b)),
    "mul": Kind(_operands, "{x} * {y}", _each(lambda a, b: a * b)),
    "floordiv": Kind(_divided, "{x} // {y}", lambda x, y: x // y),
    "mod": Kind(_divided, "{x} % {y}", lambda x, y: x % y),
    "pow": Kind(lambda rng: (rng.randint(2, 20), rng.randint(0, 6)), "{x} ** {y}", lambda x, y: x**y),
    "gcd": Kind(lambda rng: (_positive(rng), _positive(rng)), "gcd({x}, {y})", gcd),
    "sum": Kind(_one(_vector), "sum({x})", sum),
    "max": Kind(_one(_vector), "max({x})", max),
    "min": Kind(_one(_vector), "min({x})", min),
    "argmax": Kind(_one(_vector), "argmax({x})", lambda x: x.index(max(x))),
    "sort": Kind(_one(_vector), "sort({x})", sorted),
    "cumsum": Kind(_one(_vector), "cumsum({x})", _running),
    "transpose": Kind(_one(lambda rng: _matrix(rng, rng.randint(2, 3), rng.randint(2, 3))), "transpose({x})",
                      lambda x: [list(row) for row in zip(*x, strict=True)]),
    "abs": Kind(_one(lambda rng: -_positive(rng)), "abs({x})", abs),
    "above": Kind(_counted, "sum({x} > {y})", lambda x, y: sum(a > y for a in x)),
    "below": Kind(_counted, "sum({x} < {y})", lambda x, y: sum(a < y for a in x)),
    "equal": Kind(_counted, "sum({x} == {y})", lambda x, y: sum(a == y for a in x)),
    "scale": Kind(lambda rng: (_vector(rng), rng.randint(2, 99)), "{x} * {y}", _each(lambda a, b: a * b)),
    "price": Kind(lambda rng: (_positive(rng), rng.randint(2, 99)), "{x} * {y}", lambda x, y: x * y),
    "left": Kind(_taken, "{x} - {y}", lambda x, y: x - y),
    "together": Kind(lambda rng: (_positive(rng), _positive(rng)), "{x} + {y}", lambda x, y: x + y),
    "share": Kind(_divided, "{x} // {y}", lambda x, y: x // y),
    "weeks": Kind(lambda rng: (rng.randint(1, 99), rng.randint(1, 6)), "{x} * 7 + {y}", lambda x, y: 7 * x + y),
    "shop": Kind(_pair_of_vectors, "{x} @ {y}", lambda x, y: sum(a * b for a, b in zip(x, y, strict=True))),
}  # fmt: skip
NAMES_OF_KINDS = tuple(KINDS)
TALK = 0.04  # share of questions that need no numbers


def kept_for_tests(operands: Sequence[Value]) -> bool:
    """Whether training never sees these operands."""
    return hashlib.sha256(repr(operands).encode()).digest()[0] % HELD_OUT == 0


def question(rng: Random, held_out: bool = False) -> Question:
    """One question. held_out: of a wording and numbers that training does not see."""
    if not held_out and rng.random() < TALK:
        text, answer = rng.choice(CHAT)
        return Question("talk", text, "", "", answer)
    name = rng.choice(NAMES_OF_KINDS)
    kind, wording = KINDS[name], WORDINGS[name]
    while kept_for_tests(operands := kind.draw(rng)) != held_out:
        pass
    words = dict(zip("xy", map(str, operands), strict=False))
    words |= {"thing": rng.choice(THINGS), "name": rng.choice(NAMES)}
    result = str(kind.value(*operands))
    text = rng.choice(wording.held_out if held_out else wording.seen).format(**words)
    answer = rng.choice(wording.answer).format(r=result, **words)
    return Question(name, text, kind.expression.format(**words), result, answer)


def questions(seed: int, count: int, held_out: bool = False) -> Iterator[Question]:
    """So many questions of a seed."""
    rng = Random(seed)
    for _ in range(count):
        yield question(rng, held_out)
