"""A small server that speaks OpenAI's completions protocol with token ids, as vLLM does; the interpreter stands for the
model. It checks what it is asked, and may break the protocol on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from qgpu.driver.runners import InterpreterRunner

NAME = "merged"


class Served:
    """``first``: the model's first machine id. ``style``: how ids are told: "ids", "logprobs" or "text" (not at all).
    ``requests``: what was asked for. ``flip``: adds one to every id."""

    def __init__(self, first: int, style: str = "ids") -> None:
        self.first, self.style, self.flip = first, style, 0
        self.requests: list[dict] = []
        self.keys: set[str | None] = set()
        self.url = ""

    def complete(self, prompt: list[int], limit: int, stops: list[int]) -> list[int]:
        machine = InterpreterRunner()
        machine.feed([i - self.first for i in prompt])
        written = machine.generate(limit, [i - self.first for i in stops])
        return [self.first + i + self.flip for i in written]


@contextmanager
def serve(served: Served) -> Iterator[Served]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def answer(self, value: object, status: int = 200) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            served.keys.add(self.headers.get("Authorization"))
            self.answer({"object": "list", "data": [{"id": NAME, "object": "model"}]})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.requests.append(asked)
            if self.path != "/v1/completions" or asked["model"] != NAME:
                return self.answer({"error": {"message": f"The model `{asked['model']}` does not exist."}}, 404)
            assert asked["temperature"] == 0 and asked["return_token_ids"] and asked["return_tokens_as_token_ids"]
            choices = []
            for index, prompt in enumerate(asked["prompt"]):
                ids = served.complete(prompt, asked["max_tokens"], asked["stop_token_ids"])
                told = {
                    "ids": {"token_ids": ids}, "text": {"logprobs": None},
                    "logprobs": {"logprobs": {"tokens": [f"token_id:{i}" for i in ids]}},
                }[served.style]  # fmt: skip
                choices.append({"index": index, "text": "", "finish_reason": "stop", **told})
            return self.answer({"choices": choices[::-1]})  # the order is the index's, not the list's

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_port}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
