"""Recipes: what a dataset is made from, as plain data that another process can build it from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from llenvs.core.encoding import dumps
from llenvs.core.errors import InvalidOption, UnknownEnvironment
from llenvs.core.options import parse_options
from llenvs_reasoning_gym.catalogue import CATEGORY, COMPOSITE
from llenvs_reasoning_gym.curriculum import level_settings
from llenvs_reasoning_gym.options import (
    GeneratorOptions,
    ReasoningGymOptions,
    generator_options,
    upstream_keywords,
)
from llenvs_reasoning_gym.upstream import config_class, dataset_class, library

MAX_SIZE = {"word_ladder": 20_000, "acre": 10_000}
"""word_ladder refuses more; acre makes all its items at once, in time that grows faster than their number."""

_NUMPY_SEED_LIMIT = 1 << 32  # pool_matrix hands seed + index to numpy.random.seed


@dataclass(frozen=True, slots=True)
class Recipe:
    """Name and keywords of an upstream dataset.

    Attributes:
        name: of the generator, or "composite".
        config: keywords in JSON types, `size` and `seed` always among them, and `level` for a curriculum level.
            For a composite, `datasets` holds one ``{"name", "weight", "config"}`` per part.
    """

    name: str
    config: Mapping[str, Any]

    @classmethod
    def from_options(cls, name: str, options: ReasoningGymOptions) -> Recipe:
        """The recipe that the options of an environment describe."""
        ours = set(ReasoningGymOptions.model_fields) | {
            key for key in ("level",) if getattr(options, key, None) is None
        }
        config = options.model_dump(mode="json", exclude_unset=True, exclude=ours)
        if name == COMPOSITE:
            parts: Any = getattr(options, "datasets")  # noqa: B009 - a field that only this model has
            config["datasets"] = [part.model_dump(mode="json") for part in parts]
        config |= {"size": options.size, "seed": options.seed * options.seed_stride}
        return cls(name, config)

    @property
    def key(self) -> str:
        """Equal for equal recipes."""
        return dumps({"name": self.name, "config": dict(sorted(self.config.items()))})

    def parts(self) -> Iterator[Recipe]:
        """The recipes of a composite's parts as the upstream seeds and sizes them; for others the recipe itself.

        Part k has seed + k + 1 and the composite's size, unless its config says otherwise.
        """
        if self.name != COMPOSITE:
            yield self
            return
        for k, part in enumerate(self.config["datasets"]):
            defaults = {"size": self.config["size"], "seed": self.config["seed"] + k + 1}
            yield Recipe(part["name"], defaults | part.get("config", {}))

    def upstream_config(self) -> Any:
        """The upstream's configuration object, validated.

        Raises:
            UnknownEnvironment, UnknownOption, InvalidOption.
        """
        return self._composite_config() if self.name == COMPOSITE else self._generator_config()

    def build(self) -> Any:
        """The upstream's dataset. Takes up to a second for those that load a file.

        Raises:
            UnknownEnvironment, UnknownOption, InvalidOption.
        """
        return dataset_class(self.name)(config=self.upstream_config())

    def _generator_config(self) -> Any:
        name, where = self.name, f"reasoning_gym/{self.name}"
        if name not in CATEGORY:
            raise UnknownEnvironment(name, list(CATEGORY), "datasets of a composite are generators")
        options: GeneratorOptions = parse_options(generator_options(name), self.config, where)
        limit = MAX_SIZE.get(name)
        if limit is not None and options.size > limit:
            raise InvalidOption(f"{where}: size", options.size, "is too large", valid=f"1 to {limit}")
        if name == "pool_matrix" and options.seed + options.size > _NUMPY_SEED_LIMIT:
            raise InvalidOption(
                f"{where}: seed", options.seed, "is too large", valid="seed * seed_stride + size up to 2**32"
            )
        given = upstream_keywords(options)
        level = getattr(options, "level", None)
        settings = {} if level is None else level_settings(name, level)
        try:
            config = config_class(name)(**(settings | given))
            if hasattr(config, "validate"):
                config.validate()
        except (AssertionError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise _refused(where, error, given, level) from None
        return config

    def _composite_config(self) -> Any:
        options: Any = parse_options(generator_options(COMPOSITE), self.config, "reasoning_gym/composite")
        names = [part.name for part in options.datasets]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidOption("reasoning_gym/composite: datasets", names, f"{twice[0]!r} occurs twice")
        if COMPOSITE in names:
            field = f"reasoning_gym/composite: datasets.{names.index(COMPOSITE)}.name"
            raise InvalidOption(field, COMPOSITE, "a composite holds generators, no composite")
        upstream = library().composite
        specs = []
        for recipe, part in zip(self.parts(), options.datasets, strict=True):
            config = recipe.upstream_config()
            keywords = {field: getattr(config, field) for field in config.__dataclass_fields__}
            specs.append(upstream.DatasetSpec(name=part.name, weight=part.weight, config=keywords))
        return upstream.CompositeConfig(size=options.size, seed=options.seed, datasets=specs)


def _refused(where: str, error: Exception, given: Mapping[str, Any], level: int | None) -> InvalidOption:
    """What the upstream says against a configuration, put at the option that it names."""
    reason = str(error) or type(error).__name__
    named = sorted((key for key in given if key in reason), key=len, reverse=True)
    beside = "" if level is None else f" beside level {level}"
    if named:
        return InvalidOption(f"{where}: {named[0]}", given[named[0]], f"refused by the upstream{beside}: {reason}")
    return InvalidOption(where, dict(given), f"refused by the upstream{beside}: {reason}")
