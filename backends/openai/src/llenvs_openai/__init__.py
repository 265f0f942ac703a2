"""The OpenAI API as a backend of LLEnvs, at OpenAI or at any server that speaks it.

```python
from llenvs_openai import OpenAIBackend

backend = OpenAIBackend("gpt-4o")  # key in OPENAI_API_KEY
backend = OpenAIBackend("my-model", base_url="http://127.0.0.1:8000/v1")
print(backend.chat("What is the capital of France?").text)
```

Importing this package does not import the SDK; that happens at the first request.
"""

from llenvs_openai.backend import OpenAIBackend

__all__ = ["OpenAIBackend"]
