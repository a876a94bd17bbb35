"""Checkpoints: a pretrained Qwen3.5 and the GPU's layers in front of it become one standard checkpoint.

``files``     safetensors by hand: headers, slices of mapped tensors, shards written in streams
``base``      a base checkpoint: its sizes, its tensors, and every one that does not fit
``surgery``   what the merged model is: sizes, and every tensor as a stream of rows
``front``     the GPU cast for a base's shape: output code, tag, and heads in the base's layout
``documents`` config, generation config, tokenizer, model card
``build``     the way in: a folder, complete or not there
``verify``    whether a merged model still is its base
"""
