"""A runner over a server with OpenAI's completions protocol, such as vLLM's: the model runs there, tokens go over HTTP.

Prompts are lists of token ids. The answer's ids are asked for in both ways that servers have: ``return_token_ids``
(``token_ids`` in the answer) and ``return_tokens_as_token_ids`` (``token_id:N`` among the log-probabilities). The
server keeps no sequence for us: each request carries all of it, which a prefix cache makes cheap. Memory is read from
the model too: by READ tokens, for the rows that the launch has written.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from qgpu.driver.runners import Array, Server, words_of
from qgpu.errors import QgpuError
from qgpu.isa import tokens, values

READS = 64  # rows that one request reads
ANSWER = 5  # tokens of an answer to READ at most: four DATA and HALT
HALT = tokens.encode("HALT")
_PREFIX = "token_id:"


class OpenAIRunner:
    """Raises QgpuError where the server cannot be reached, refuses, or gives no token ids."""

    name = "openai"
    chunk = 512

    def __init__(self, server: Server, timeout: float = 600.0) -> None:
        self._url, self._key, self._first = server.url.rstrip("/"), server.key, server.first_id
        self._timeout = timeout
        self._model = server.model or self._listed()
        self.reset()

    def reset(self) -> None:
        self._ids: list[int] = []  # ids of the machine
        self._fed: list[bool] = []  # by the host

    def feed(self, ids: Sequence[int]) -> None:
        self._ids += ids
        self._fed += [True] * len(ids)

    def generate(self, limit: int, stops: Collection[int]) -> list[int]:
        written = self._complete([self._ids], limit, stops)[0] if limit > 0 else []
        self._ids += written
        self._fed += [False] * len(written)
        return written

    def memory(self) -> Array:
        """By READ where the launch has halted; else as the tokens tell."""
        rows, written = self._rows()
        if self._ids[-1:] != [HALT]:
            return words_of(rows | written)
        asked = sorted(written)
        for start in range(0, len(asked), READS):
            part = asked[start : start + READS]
            prompts = [[*self._ids, tokens.encode("READ", row)] for row in part]
            for row, answer in zip(part, self._complete(prompts, ANSWER, (HALT,)), strict=True):
                if answer[-1:] != [HALT] or len(answer) < 2 or any(token > 0xFFFF for token in answer[:-1]):
                    raise QgpuError(f"{self._url}: {self._model} does not answer READ of row {row}: is the machine in "
                                    f"it, and is {self._first} its first id?")  # fmt: skip
                rows[row] = values.row_of(answer[:-1])
        return words_of(rows)

    def snapshot(self) -> object:
        return [*self._ids], [*self._fed]

    def restore(self, snapshot: object) -> None:
        assert isinstance(snapshot, tuple)
        self._ids, self._fed = [*snapshot[0]], [*snapshot[1]]

    def _rows(self) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]]:
        """Rows as the host wrote them, and as the machine has written some since."""
        rows: dict[int, tuple[int, int]] = {}
        written: dict[int, tuple[int, int]] = {}
        first, last = tokens.encode("MEM", 0, 0), tokens.encode("MEM", tokens.ROWS - 1, tokens.LANES - 1)
        for at, (token, fed) in enumerate(zip(self._ids, self._fed, strict=True)):
            if first <= token <= last:
                payloads = [*_data(self._ids, at + 1)]
                if payloads:
                    (rows if fed else written)[tokens.decode(token)[1][0]] = values.row_of(payloads)
        return rows, written

    def _complete(self, prompts: list[list[int]], limit: int, stops: Collection[int]) -> list[list[int]]:
        """What the model writes after each prompt, up to a stop, which is the last id then."""
        asked = {
            "model": self._model, "prompt": [[self._first + i for i in prompt] for prompt in prompts],
            "max_tokens": limit, "temperature": 0, "stop_token_ids": [self._first + i for i in sorted(stops)],
            "ignore_eos": True, "skip_special_tokens": False, "logprobs": 1,
            "return_token_ids": True, "return_tokens_as_token_ids": True,
        }  # fmt: skip
        answer = self._call("/completions", asked)
        choices = sorted(answer.get("choices", []), key=lambda choice: int(choice.get("index", 0)))
        if len(choices) != len(prompts):
            raise QgpuError(f"{self._url}: {len(choices)} answers to {len(prompts)} prompts")
        return [self._machine(self._token_ids(choice), stops) for choice in choices]

    def _machine(self, ids: Sequence[int], stops: Collection[int]) -> list[int]:
        """As ids of the machine, up to the first stop."""
        found: list[int] = []
        for token in ids:
            number = token - self._first
            if not 0 <= number < tokens.USED_IDS:
                raise QgpuError(f"{self._url}: {self._model} wrote token {token}, which is none of the machine's: is "
                                f"the machine in it, and is {self._first} its first id?")  # fmt: skip
            found.append(number)
            if number in stops:
                break
        return found

    def _token_ids(self, choice: Mapping[str, Any]) -> list[int]:
        if isinstance(found := choice.get("token_ids"), list):
            return [int(token) for token in found]
        shown = (choice.get("logprobs") or {}).get("tokens")
        if isinstance(shown, list) and all(str(text).startswith(_PREFIX) for text in shown):
            return [int(str(text).removeprefix(_PREFIX)) for text in shown]
        raise QgpuError(f"{self._url}: the server tells no token ids, neither as return_token_ids asks for nor as "
                        "return_tokens_as_token_ids; vLLM does")  # fmt: skip

    def _listed(self) -> str:
        models = self._call("/models").get("data") or []
        if not models:
            raise QgpuError(f"{self._url}: the server lists no model")
        return str(models[0]["id"])

    def _call(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        request = urllib.request.Request(self._url + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                found = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            said = error.read(2000).decode(errors="replace").strip()
            raise QgpuError(f"{self._url}{path}: the server answers {error.code}: {said}") from None
        except (OSError, ValueError) as error:
            raise QgpuError(f"{self._url}{path}: no answer from a server there ({error}): start one, or look at the "
                            "url, which ends with /v1") from None  # fmt: skip
        if not isinstance(found, dict):
            raise QgpuError(f"{self._url}{path}: the answer is no JSON object")
        return found


def _data(ids: Sequence[int], start: int) -> Iterator[int]:
    """The DATA from a place on, four at most."""
    for token in ids[start : start + 4]:
        if token > 0xFFFF:
            return
        yield token
