"""Loops over plain arrays, compiled by Numba.

A kernel does no checks, no input or output, draws nothing at random, and writes into arrays of its
caller. All of them release the GIL. None uses `fastmath`, so their bits are those of the same loop
in plain Python, except the two that only *propose* which pairs are near (`masks`): there a product
and a sum may be contracted to one operation, which the error bound that guards them allows for.
"""
