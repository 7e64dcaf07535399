"""Loops over plain arrays, compiled by Numba.

A kernel does no checks, no input or output, draws nothing at random, and writes into arrays of its
caller. All of them release the GIL. None uses `fastmath`, so their bits are those of the same loop
in plain Python, except the two that only *propose* which pairs are near (`masks`): there a product
and a sum may be contracted to one operation, which the error bound that guards them allows for.

A kernel calls kernels of its own file only: what Numba keeps on disk is thrown away when the file
of the kernel changes, not when another file does.
"""
