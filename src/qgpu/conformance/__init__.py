"""One table of integer CUDA kernels, what they must give, and what runs them at every level.

The kernels stand in ``kernels/``, their launches in the ``rows_*`` modules, the results in ``expected.json``, written
by an oracle that builds the same sources as C++ for the host (``oracle.py``) and shares nothing with the machine.
"""
