"""``llenvs prompts``: the registered prompts, and which profile a model's name is recognized as."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llenvs_cli.failures import says_failures

if TYPE_CHECKING:
    from rich.console import Console

    from llenvs.inference.prompts import PromptDescription


_FIELD_OF_KIND = {
    "system prompt": "system_prompt",
    "fragment": "format",
    "question template": "template",
    "few-shot set": "few_shot",
}
"""The field of a prompt's configuration that takes the name of such a thing."""


@says_failures
def prompts(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A system prompt, fragment, template or model profile to show.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Show the profile detected for MODEL, and NAME as it sees it.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help="Only this kind, such as fragment.", show_default=False),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print the text of NAME alone, exactly.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List or show prompts.

    These are the names that a configuration can use, and the profiles that models are recognized as.
    """
    from llenvs.core.errors import InvalidOption
    from llenvs.inference.prompts import describe_prompt, detect_profile, list_prompts
    from llenvs_cli.terminal import console, print_json

    if raw and (name is None or model is not None or as_json):
        raise InvalidOption("--raw", raw, "needs NAME, and neither --model nor --json")
    if model is not None and name is not None:
        _show_for_model(console(), _of_kind(describe_prompt(name), kind)[0], model, as_json=as_json)
        return
    if model is not None:
        found: Sequence[PromptDescription] = describe_prompt(detect_profile(model).name)
        found = _of_kind(found, "model profile")
    else:
        found = _of_kind(list_prompts() if name is None else describe_prompt(name), kind)
    if raw:
        _print_raw(found)
    elif as_json:
        print_json([_as_dict(each) for each in found])
    elif name is None and model is None:
        _show_list(console(), found)
    else:
        for number, each in enumerate(found):
            out = console()
            if number:
                out.print()
            _show_fully(out, each)


def _of_kind(found: Sequence[PromptDescription], kind: str | None) -> Sequence[PromptDescription]:
    """Those of `found` that are of `kind`; all without one. ``-``, ``_`` and blanks are the same.

    Raises:
        InvalidOption: none is.
    """
    from llenvs.core.errors import InvalidOption

    if kind is None:
        return found
    wanted = kind.casefold().replace("-", " ").replace("_", " ")
    kept = [each for each in found if each.kind.replace("-", " ") == wanted]
    if not kept:
        kinds = dict.fromkeys(each.kind.replace(" ", "-") for each in found)
        raise InvalidOption("--kind", kind, "nothing is of this kind", valid=", ".join(kinds))
    return kept


def _print_raw(found: Sequence[PromptDescription]) -> None:
    from llenvs.core.errors import InvalidOption

    if len(found) > 1:
        kinds = " and ".join(each.kind.replace(" ", "-") for each in found)
        raise InvalidOption("--raw", found[0].name, "several things have this name", valid=f"with --kind, {kinds}")
    if not found[0].text:
        raise InvalidOption("--raw", found[0].name, f"this {found[0].kind} has no text")
    sys.stdout.write(found[0].text + "\n")


def _show_for_model(out: Console, found: PromptDescription, model: str, *, as_json: bool) -> None:
    """The messages that `found` leads to for `model`, with their sources."""
    from llenvs.core.errors import InvalidOption
    from llenvs.inference.prompts import make_prompt
    from llenvs_cli.terminal import print_json, visible

    field = _FIELD_OF_KIND.get(found.kind)
    if field is None:
        raise InvalidOption("NAME", found.name, f"a {found.kind} has no text for a model")
    explanation = make_prompt({field: found.name}).for_model(model).explain()
    if as_json:
        print_json(explanation.as_dict())
    else:
        out.print(visible(explanation), soft_wrap=True)


def _show_list(out: Console, found: Sequence[PromptDescription]) -> None:
    from llenvs_cli.terminal import heading, show_rows

    for kind in dict.fromkeys(each.kind for each in found):
        out.print(heading(f"{kind[0].upper()}{kind[1:]}s"))
        show_rows(out, [(each.name, each.doc) for each in found if each.kind == kind])
        out.print()
    out.print("Show one: llenvs prompts NAME      Profile of a model: llenvs prompts --model MODEL", style="dim")


def _show_fully(out: Console, found: PromptDescription) -> None:
    from rich.text import Text

    from llenvs_cli.terminal import heading, show_rows, visible

    out.print(heading(f"{found.kind} {found.name}"))
    out.print(Text(visible(found.doc), style="dim"))
    if found.text:
        out.print()
        out.print(Text(visible(found.text)), soft_wrap=True)
    if found.facts:
        out.print()
        show_rows(out, list(found.facts.items()), style="dim")


def _as_dict(found: PromptDescription) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "name": found.name,
        "doc": found.doc,
        "text": found.text,
        "facts": dict(found.facts),
    }
