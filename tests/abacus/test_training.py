"""The tokenizer, the model and its training, in a small size: it learns, stops and goes on, and is loaded again."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from qgpu.abacus import model as abacus
from qgpu.abacus import train as training
from qgpu.abacus import vocabulary
from qgpu.abacus.questions import question, questions


@pytest.fixture(scope="module")
def tokenizer():
    return vocabulary.made(0)


def test_every_text_comes_back(tokenizer) -> None:
    texts = [one.text for one in questions(0, 200)] + ["Grüße, 你好 \t 3.5e-7 <<1+2>> 🙂", "a  b\n\n c"]
    for text in texts:
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_numbers_are_spelled_digit_by_digit_wherever_they_stand(tokenizer) -> None:
    pieces = tokenizer.encode("[12, -345]").tokens
    assert [piece for piece in pieces if piece.isdigit()] == list("12345")
    within = tokenizer.encode("What is the sum of [12, -345]?").tokens
    assert "|".join(pieces) in "|".join(within)


def test_only_what_the_assistant_says_is_learned(tokenizer) -> None:
    for seed in range(50):
        ids, labels = training.row(tokenizer, Random(seed))
        one = question(Random(seed))
        expression, result, answer = vocabulary.said(one)
        whole = vocabulary.asked(one.text) + expression + result + answer
        assert tokenizer.decode(ids, skip_special_tokens=False) == whole
        learned = [label for label in labels if label != training.IGNORED]
        assert tokenizer.decode(learned, skip_special_tokens=False) == expression + answer
        assert all(label in (token, training.IGNORED) for token, label in zip(ids, labels, strict=True))


def small(folder: Path, steps: int, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, float]]:
    monkeypatch.setattr(training, "TOKENS", 512)
    monkeypatch.setattr(training, "KEEP", 1)
    monkeypatch.setattr(training, "TESTED", 4)
    training.train(folder, steps, hidden=64, layers=4)
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_training_goes_on_where_it_was_stopped_and_is_loaded_by_stock_code(tmp_path, monkeypatch, tokenizer) -> None:
    torch.set_num_threads(1)
    whole = small(tmp_path / "whole", 3, monkeypatch)
    small(tmp_path / "parts", 1, monkeypatch)
    monkeypatch.setattr(training, "rate", lambda step, steps, rate=training.rate: rate(step, 3))
    small(tmp_path / "parts", 3, monkeypatch)
    one, two = (abacus.load(tmp_path / name) for name in ("whole", "parts"))
    for (name, a), b in zip(one.named_parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=2e-2, msg=name)
    assert whole[-1]["step"] == 3 and whole[-1]["loss"] < 8
    stock = AutoModelForCausalLM.from_pretrained(tmp_path / "whole", dtype=torch.float32)
    words = AutoTokenizer.from_pretrained(tmp_path / "whole")
    chat = [{"role": "user", "content": "What is 1 plus 2?"}]
    text = words.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    assert text == vocabulary.asked("What is 1 plus 2?")
    ids = torch.tensor([words(text)["input_ids"]])
    assert ids[0].tolist() == tokenizer.encode(text).ids
    torch.testing.assert_close(stock(ids).logits, one(ids).logits)


def test_a_model_of_this_shape_learns_to_copy() -> None:
    """A few questions, over and over: the loss of what the assistant says goes to nothing."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = vocabulary.made(0)
    model = abacus.fresh(tokenizer.get_vocab_size(), 0, 64, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    rows = [training.row(tokenizer, Random(seed)) for seed in range(2)]
    for _ in range(60):
        loss = torch.zeros(())
        for ids, labels in rows:
            logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, :-1]
            loss = loss + torch.nn.functional.cross_entropy(logits, torch.tensor(labels[1:]), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.5
