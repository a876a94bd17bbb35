"""Chat: a model that writes, and the GPU in front of it that computes."""
