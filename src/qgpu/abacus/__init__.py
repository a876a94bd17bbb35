"""abacus: a small Qwen3.5 that this repository trains itself, to put questions into expressions for the GPU.

``questions`` makes what it learns from, ``vocabulary`` its tokenizer, ``model`` its shape, ``train`` the training.
"""
