"""A small hardware language in Python. Knows nothing of layers or of GPUs.

``ir``        the netlist: signals, expressions, four kinds of cell
``builder``   writes netlists by names: gates, tables, muxes, delays, memories, forward wires
``word``      bundles of bits and what is free to do with them
``words``     the library: adders, multiplier, comparators, decoders, priorities, shifts, register files
``graph``     order, levels and cost of a netlist
``evaluate``  runs a netlist on integers, many instances at once; ``naive`` is its oracle
``examples``  two circuits that are no GPU
"""
