"""What the machine is called: every figure of the other scripts says where it was taken."""

import platform
from pathlib import Path


def processor() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:  # not Linux
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    print(processor())
