"""A function of device code, and the resources that it takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The resources of a function: of each thread that runs it, and of each block."""

    name: str
    """Its name, mangled as the library has it."""
    registers: int
    """Registers of a thread; of an AMD GPU vector registers, with those for accumulation where they are the same."""
    stack: int | None
    """Bytes of memory of its own that a thread takes, for arrays and what is spilled; None where it calls itself."""
    shared: int
    """Bytes of shared memory that a block takes, without what a launch adds to it."""
    constant: int
    """Bytes of constant memory, with its arguments; of an AMD GPU those of its arguments."""
    size: int
    """Bytes of its code."""
    threads: int | None = None
    """The most threads of a block that it can be launched with, where the source or the compiler limits them."""
    spill_stores: int | None = None
    """Bytes that a thread writes to spill registers, counted once for each instruction; None where nothing says it."""
    spill_loads: int | None = None
    """Bytes that a thread reads of what it has spilled, counted in the same way."""
    spilled: int | None = None
    """Vector registers of an AMD GPU that are spilled."""
    scalars: int | None = None
    """Scalar registers of an AMD GPU."""
    spilled_scalars: int | None = None
    """Scalar registers of an AMD GPU that are spilled, mostly to vector registers."""
    wave: int = 32
    """The threads that run in step: a warp, or a wavefront."""
    limit: int | None = None
    """The most registers that the compiler was allowed, where that is less than the GPU has."""
    options: str | None = None
    """The options of ptxas, where it wrote them."""
