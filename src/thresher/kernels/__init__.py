"""Loops over plain arrays, compiled by Numba.

A kernel does no checks and no input or output, draws nothing at random, and writes into arrays of
its caller. All of them release the GIL. None uses `fastmath`, so their bits are those of the same
loop in plain Python. The only exceptions are the two kernels that *propose* which pairs are near
(`masks`): there a product and a sum may be contracted to one operation, which their error bound
allows for.

A kernel calls only kernels of its own file, because Numba discards a compiled kernel on disk when
the kernel's own file changes, but not when another file does.
"""
