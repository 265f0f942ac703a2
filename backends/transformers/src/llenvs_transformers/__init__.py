"""Hugging Face transformers as a backend of LLEnvs: any causal language model, in this process.

```python
from llenvs_transformers import HuggingFaceBackend

with HuggingFaceBackend("HuggingFaceTB/SmolLM2-135M-Instruct") as backend:  # a folder or a GGUF file as well
    print(backend.chat("What is the capital of France?").text)
```

Importing this package loads neither torch nor transformers; that happens at the first request.
"""

from llenvs.inference.errors import EngineUnavailable
from llenvs_transformers.backend import HuggingFaceBackend

__all__ = ["EngineUnavailable", "HuggingFaceBackend"]
