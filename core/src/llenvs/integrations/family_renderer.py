"""Renderers of PyPI `renderers`, which know how the chats of a model family go on."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from llenvs.core.errors import InvalidOption

AUTO = "auto"


def chosen_renderer(renderer: Any, tokenizer: Any, template_options: Mapping[str, Any] | None) -> Any:
    """What bridges turns: `renderer`, or for "auto" the one of the model's family.

    Args:
        renderer: an object with ``bridge_to_next_turn``, "auto", or None.
        tokenizer: of the model; "auto" goes by its ``name_or_path``.
        template_options: variables of the chat template.

    Returns:
        A renderer that keeps thoughts; None for None, and for "auto" where `renderers` is not installed or knows
        no family by that name.

    Raises:
        InvalidOption: it is none of these.
    """
    if renderer is None or hasattr(renderer, "bridge_to_next_turn"):
        return renderer
    if renderer != AUTO:
        valid = 'an object of `renderers`, "auto", or None'
        raise InvalidOption("renderer", renderer, "is no renderer", valid=valid)
    try:
        renderers, known = import_module("renderers"), import_module("renderers.base").MODEL_RENDERER_MAP
    except ImportError:
        return None
    if getattr(tokenizer, "name_or_path", None) not in known:
        return None
    # else the thoughts of earlier turns are dropped, and the turns are not one sequence
    config = renderers.AutoRendererConfig(thinking_retention="all")
    return renderers.create_renderer(tokenizer, config, chat_template_kwargs=dict(template_options or {}) or None)
