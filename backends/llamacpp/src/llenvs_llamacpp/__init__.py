"""llama.cpp as a backend of LLEnvs: any GGUF model, embedded in the process, no server to start and no key.

```python
from llenvs_llamacpp import LlamaCppBackend

with LlamaCppBackend() as backend:  # SmolLM2-135M-Instruct; LlamaCppBackend("model.gguf") for another
    print(backend.chat("What is the capital of France?").text)
```

Importing this package loads neither the engine nor an HTTP client; that happens at the first request.
"""

from llenvs.inference.errors import EngineUnavailable
from llenvs_llamacpp.backend import LlamaCppBackend
from llenvs_llamacpp.model_file import locate_model

__all__ = ["EngineUnavailable", "LlamaCppBackend", "locate_model"]
