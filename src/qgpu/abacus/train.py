"""Trains abacus: ``python -m qgpu.abacus.train FOLDER``. Goes on where FOLDER stands, so it may be stopped at any time.

A step is about 4,096 tokens of questions that nobody has seen before, each read on its own. What counts is what the
assistant says; the value that the runtime puts in is not learned. Everything follows from the seed, whatever the number
of stops. FOLDER/log.jsonl tells of the loss, and of held-out questions whose expression came out exactly.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

from qgpu.abacus import model as abacus
from qgpu.abacus.questions import question, questions
from qgpu.abacus.vocabulary import asked, made, said, save

TOKENS = 4096  # a step, about
POOL = 16  # steps whose questions are sorted by length together
RATE, WARMUP, DECAY = 1.5e-3, 200, 0.05
IGNORED = -100
EVERY, TESTED = 500, 100  # steps between tests, questions in one
KEEP = 100  # steps between checkpoints

Batch = tuple[torch.Tensor, torch.Tensor]


def row(tokenizer: Tokenizer, rng: Random) -> tuple[list[int], list[int]]:
    """(tokens, what is to be learned of them): one question with its answer."""
    found = question(rng)
    ids: list[int] = []
    labels: list[int] = []
    expression, result, answer = said(found)
    for text, learned in ((asked(found.text), False), (expression, True), (result, False), (answer, True)):
        part = tokenizer.encode(text).ids
        ids += part
        labels += part if learned else [IGNORED] * len(part)
    return ids, labels


def batches(tokenizer: Tokenizer, seed: int, pool: int) -> Iterator[Batch]:
    """The batches of one pool, rows of about the same length together."""
    rng = Random(f"{seed} {pool}")
    rows: list[tuple[list[int], list[int]]] = []
    while sum(len(ids) for ids, _ in rows) < POOL * TOKENS:
        rows.append(row(tokenizer, rng))
    rows.sort(key=lambda one: len(one[0]))
    made: list[list[tuple[list[int], list[int]]]] = []
    each = len(rows) / POOL
    for number in range(POOL):
        made.append(rows[round(number * each) : round((number + 1) * each)])
    rng.shuffle(made)
    for members in made:
        width = max(len(ids) for ids, _ in members)
        ids = torch.zeros(len(members), width, dtype=torch.long)
        labels = torch.full((len(members), width), IGNORED)
        for at, (own, learned) in enumerate(members):
            ids[at, : len(own)] = torch.tensor(own)
            labels[at, : len(own)] = torch.tensor(learned)
        yield ids, labels


def rate(step: int, steps: int) -> float:
    """The learning rate: a short rise, then half a cosine down to a twentieth."""
    if step < WARMUP:
        return RATE * (step + 1) / WARMUP
    return RATE * (0.05 + 0.95 * (1 + math.cos(math.pi * (step - WARMUP) / max(1, steps - WARMUP))) / 2)


def accuracy(model: Qwen3_5ForCausalLM, tokenizer: Tokenizer, count: int, seed: int = 1) -> float:
    """Share of held-out questions whose expression is the right one, to the character."""
    asked_for = list(questions(seed, count, held_out=True))
    model.eval()
    found = abacus.expressions(model, tokenizer, [one.text for one in asked_for])
    return sum(text == one.expression for text, one in zip(found, asked_for, strict=True)) / count


def _optimizer(model: Qwen3_5ForCausalLM) -> torch.optim.AdamW:
    wide = [p for p in model.parameters() if p.ndim > 1]
    narrow = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": wide, "weight_decay": DECAY}, {"params": narrow, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98))


def _keep(folder: Path, model: Qwen3_5ForCausalLM, optimizer: torch.optim.AdamW, step: int, tokens: int) -> None:
    """A checkpoint, whole or not at all: weights and moments in float32."""
    tensors = {f"model.{name}": p.detach() for name, p in model.named_parameters()}
    for name, p in model.named_parameters():
        for key in ("exp_avg", "exp_avg_sq"):
            tensors[f"{key}.{name}"] = optimizer.state[p][key]
    part = folder / "state.part"
    save_file({n: t.contiguous() for n, t in tensors.items()}, str(part), {"step": str(step), "tokens": str(tokens)})
    part.replace(folder / "state.safetensors")


def _resume(folder: Path, model: Qwen3_5ForCausalLM, optimizer: torch.optim.AdamW) -> tuple[int, int]:
    """(steps, tokens) so far, with the model and the optimizer as they stood."""
    path = folder / "state.safetensors"
    if not path.is_file():
        return 0, 0
    from safetensors import safe_open

    with safe_open(str(path), "pt") as file:
        facts = file.metadata()
    tensors = load_file(str(path))
    step = int(facts["step"])
    for name, p in model.named_parameters():
        p.data.copy_(tensors[f"model.{name}"])
        optimizer.state[p] = {
            "step": torch.tensor(float(step)), "exp_avg": tensors[f"exp_avg.{name}"],
            "exp_avg_sq": tensors[f"exp_avg_sq.{name}"],
        }  # fmt: skip
    return step, int(facts["tokens"])


def train(folder: Path, steps: int, seed: int = 0, hidden: int = 256, layers: int = 4) -> None:
    """Train for so many steps in all, then write the model into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = made(seed)
    model = abacus.fresh(tokenizer.get_vocab_size(), seed, hidden, layers)
    optimizer = _optimizer(model)
    step, tokens = _resume(folder, model, optimizer)
    start, since, total = time.time(), 0, 0.0
    with open(folder / "log.jsonl", "a", encoding="utf-8") as log:
        while step < steps:
            waiting = list(batches(tokenizer, seed, step // POOL))[step % POOL :]
            for ids, labels in waiting[: steps - step]:
                model.train()
                for group in optimizer.param_groups:
                    group["lr"] = rate(step, steps)
                logits = model(input_ids=ids, use_cache=False).logits[:, :-1].flatten(0, 1)
                loss = torch.nn.functional.cross_entropy(logits, labels[:, 1:].flatten(), ignore_index=IGNORED)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                step, tokens, since, total = step + 1, tokens + ids.numel(), since + 1, total + loss.item()
                if step % 50 == 0 or step == steps:
                    said_now = {"step": step, "loss": total / since, "tokens": tokens, "seconds": time.time() - start}
                    if step % EVERY == 0 or step == steps:
                        said_now["held_out"] = accuracy(model, tokenizer, TESTED)
                    log.write(json.dumps(said_now) + "\n")
                    log.flush()
                    since, total = 0, 0.0
                if step % KEEP == 0 or step == steps:
                    _keep(folder, model, optimizer, step, tokens)
    abacus.save(model, folder)
    save(tokenizer, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="for torch; as many as it likes if left out")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    train(options.folder, options.steps, options.seed)


if __name__ == "__main__":
    main()
