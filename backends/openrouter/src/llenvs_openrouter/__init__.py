"""OpenRouter as a backend of LLEnvs: models of many providers behind one API.

```python
from llenvs_openrouter import OpenRouterBackend

backend = OpenRouterBackend("qwen/qwen3-32b", provider={"only": ["deepinfra"]})  # key in OPENROUTER_API_KEY
print(backend.chat("What is the capital of France?").usage.cost)
```

Importing this package does not import the SDK; that happens at the first request.
"""

from llenvs_openrouter.backend import OpenRouterBackend

__all__ = ["OpenRouterBackend"]
