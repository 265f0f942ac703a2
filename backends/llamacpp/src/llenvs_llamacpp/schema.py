"""Whether the engine obeys a JSON schema.

llama.cpp drops a schema that its grammar engine cannot compile (an unknown type, a dangling reference) and
generates freely, with status 200. So each schema is tried once: a token that no JSON text begins with is made
overwhelmingly likely; if it comes, nothing constrains.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llenvs.inference.errors import BadRequest
from llenvs_llamacpp.client import NAME, EngineClient

_NO_JSON = "q"


async def try_schema(client: EngineClient, schema: Mapping[str, Any]) -> None:
    """Return if the engine constrains generations to `schema`.

    Raises:
        BadRequest: it does not.
    """
    forced = (await client.post("/tokenize", {"content": _NO_JSON, "add_special": False}))["tokens"][-1]
    body = {
        "prompt": [forced],
        "n_predict": 1,
        "temperature": 0.0,
        "json_schema": dict(schema),
        "logit_bias": [[forced, 1000.0]],
    }
    answer = await client.post("/completion", body)
    if answer["content"].strip() == _NO_JSON:
        raise BadRequest(
            NAME,
            "llama.cpp cannot use this json_schema and would ignore it; look for a type, reference or pattern "
            f"that is not valid: {str(dict(schema))[:200]}",
        )
