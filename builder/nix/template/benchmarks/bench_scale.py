"""Time the installed kernel and PyTorch's own operator, on each device of this machine."""

import torch
import my_kernel
from torch.utils.benchmark import Timer

SIZES = (1 << 10, 1 << 16, 1 << 22)
DEVICES = ("cpu", "cuda", "mps", "xpu")


def main() -> None:
    """Print one line for each device and size."""
    for device in DEVICES:
        if device != "cpu" and not getattr(torch, device).is_available():
            continue
        for size in SIZES:
            x = torch.randn(size, device=device)
            try:
                my_kernel.scale(x, 2.0)
            except NotImplementedError:
                break  # the wheel is built for another device
            ours = Timer("scale(x, 2.0)", globals={"scale": my_kernel.scale, "x": x}).blocked_autorange().median
            theirs = Timer("x * 2.0", globals={"x": x}).blocked_autorange().median
            print(f"{device} {size:>8}: {ours * 1e6:10.1f} us, torch {theirs * 1e6:10.1f} us")


if __name__ == "__main__":
    main()
