"""Abacus's tokenizer: digits one by one, so that numbers of any size are copied alike; words and marks otherwise.

What a person may type beside that is spelled in bytes. Special tokens and chat format are Qwen's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from qgpu.abacus.questions import Question, questions

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END_OF_TEXT, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = (END_OF_TEXT, START, END)
OPENING, CLOSING = "<<", ">>"
"""Around an expression; behind the closing mark the runtime puts its value."""

ENTRIES = 1024
SAMPLE = 30_000  # questions that the words are counted in
SPLIT = r"<<|>>|, |\d| ?[A-Za-z]+|\s|[^\w\s]|\w"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def asked(text: str) -> str:
    """The user's turn, and the beginning of the assistant's."""
    return f"{START}user\n{text}{END}\n{START}assistant\n"


def said(question: Question) -> tuple[str, str, str]:
    """The assistant's turn: (the expression in its marks, its value as the runtime puts it in, what follows)."""
    if not question.expression:
        return "", "", f"{question.answer}{END}\n"
    return f"{OPENING}{question.expression}{CLOSING}", f" {question.result}\n", f"{question.answer}{END}\n"


def made(seed: int = 0) -> Tokenizer:
    """The tokenizer, from the words of a sample of questions."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"), as_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=ENTRIES, special_tokens=list(SPECIAL), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator(_texts(seed), trainer)
    return tokenizer


def _texts(seed: int) -> Iterable[str]:
    for question in questions(seed, SAMPLE):
        yield f"user\n{question.text}\nassistant\n{''.join(said(question))}".replace(END, "")


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Write it as transformers loads it."""
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "pad_token": END_OF_TEXT,
        "model_max_length": 262144, "chat_template": TEMPLATE,
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
