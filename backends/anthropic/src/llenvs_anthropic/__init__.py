"""Anthropic's Messages API as a backend of LLEnvs.

```python
from llenvs_anthropic import AnthropicBackend

backend = AnthropicBackend("claude-sonnet-5")  # key in ANTHROPIC_API_KEY
print(backend.chat("What is the capital of France?").text)
```

Importing this package does not import the SDK; that happens at the first request.
"""

from llenvs_anthropic.backend import AnthropicBackend

__all__ = ["AnthropicBackend"]
