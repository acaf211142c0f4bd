"""A few loops in C, where torch has no operation for what a private step does, or needs many.

They are compiled when the package is installed, if there is a C compiler, and replace code in Python that stays beside
them: it is used where they are missing, for other types than float32 on the processor, and if the environment says
`PRIVET_NATIVE=0`. Both are held to the same tests. `privet.training.native.loops` has the functions.
"""

__all__: list[str] = []
