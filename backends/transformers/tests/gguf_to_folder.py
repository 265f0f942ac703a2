"""Writes a GGUF model as a folder in bfloat16: ``python gguf_to_folder.py TARGET``, of the default model.

The folder is what engines load that read no GGUF files, and it loads in a second. Run as a program of its own, so
that the memory of two models is given back.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from llenvs.inference.local.model_file import locate_model


def convert(target: Path) -> None:
    """Make the folder `target`, in one step."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)
    path = locate_model(None, "transformers")
    source = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    loaded = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    config = LlamaConfig(**{k: v for k, v in loaded.config.to_dict().items() if k != "quantization_config"})
    fresh = LlamaForCausalLM(config).to(torch.bfloat16)  # a model that was read from GGUF refuses to be saved
    fresh.load_state_dict({name: value.to(torch.bfloat16) for name, value in loaded.state_dict().items()})
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        fresh.save_pretrained(scratch)
        AutoTokenizer.from_pretrained(**source).save_pretrained(scratch)
        os.replace(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
