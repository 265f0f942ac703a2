"""vLLM as a backend of LLEnvs, in this process.

```python
from llenvs_vllm import VLLMBackend

if __name__ == "__main__":  # the engine's own process imports this file again
    with VLLMBackend("Qwen/Qwen2.5-0.5B-Instruct") as backend:  # or a folder
        print(backend.chat("What is the capital of France?").text)
```

Importing this package loads neither torch nor vLLM; that happens at the first request.
"""

from llenvs.inference.errors import EngineUnavailable
from llenvs_vllm.backend import VLLMBackend

__all__ = ["EngineUnavailable", "VLLMBackend"]
