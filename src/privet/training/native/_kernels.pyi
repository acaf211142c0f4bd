"""The compiled module: addresses and sizes in, nothing out. `privet.training.native` checks what it gives."""

processor: str
cipher: int
chain: int

def choose(processor: str, /) -> bool: ...
def noise(key: bytes, words: int, out: int, size: int, std: float, threads: int, /) -> None: ...
def stream(key: bytes, first: int, blocks: int, out: int, /) -> None: ...
def rows(
    rows: int,
    others: int,
    squares: int,
    examples: int,
    size: int,
    stride: int,
    units: float,
    least: float,
    least_other: float,
    least_product: float,
    threads: int,
    /,
) -> None: ...
def convolution_room(*sizes: int) -> int: ...
def convolution(
    inputs: int,
    gradient: int,
    out: int,
    squares: int,
    scratch: int,
    sizes: tuple[int, ...],
    units: float,
    least: float,
    threads: int,
    /,
) -> None: ...
def positions_room(positions: int, size: int, /) -> int: ...
def positions(
    left: tuple[int, ...],
    rights: tuple[tuple[int, ...], ...],
    rooms: tuple[float, ...],
    squares: int,
    scratch: int,
    examples: int,
    positions: int,
    least: float,
    unit: float,
    threads: int,
    /,
) -> None: ...
def lookup_room(positions: int, size: int, /) -> int: ...
def lookup(
    index: int,
    right: tuple[int, ...],
    squares: int,
    scratch: int,
    examples: int,
    positions: int,
    units: float,
    least: float,
    unit: float,
    threads: int,
    /,
) -> None: ...
def normalised(
    gradient: tuple[int, ...],
    inputs: tuple[int, ...],
    mean: int,
    rstd: int,
    scale: int,
    shift: int,
    examples: int,
    positions: int,
    threads: int,
    /,
) -> None: ...
