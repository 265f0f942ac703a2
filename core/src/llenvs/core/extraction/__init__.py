"""Answer extraction: from a model's text to the answer in it.

An `Extractor` is a value with options. `make_extractor` builds one from what a configuration file says::

    make_extractor("boxed").extract(r"so $\\boxed{\\frac{1}{2}}$")   # "\\frac{1}{2}"
    make_extractor(["tag_based", "boxed", "last_line"])              # the first that finds something
"""

from llenvs.core.extraction.boxed import BoxedExtractor
from llenvs.core.extraction.build import (
    ExtractorInfo,
    ExtractorOption,
    ExtractorSpec,
    describe_extractors,
    extractor_names,
    make_extractor,
)
from llenvs.core.extraction.cleaners import CLEANERS, Cleaner, UnknownCleaner, cleaner_names
from llenvs.core.extraction.code_block import CodeBlockExtractor
from llenvs.core.extraction.composite import CompositeExtractor
from llenvs.core.extraction.extractor import Extractor
from llenvs.core.extraction.gsm8k import GSM8KExtractor
from llenvs.core.extraction.multiple_choice import MultipleChoiceExtractor
from llenvs.core.extraction.native import NativeExtractor
from llenvs.core.extraction.numeric import NumericExtractor
from llenvs.core.extraction.pattern import PatternExtractor
from llenvs.core.extraction.regex import RegexExtractor
from llenvs.core.extraction.tag_based import TagBasedExtractor
from llenvs.core.extraction.whole_text import LastLineExtractor, RawExtractor, TailExtractor

__all__ = [
    "CLEANERS",
    "BoxedExtractor",
    "Cleaner",
    "CodeBlockExtractor",
    "CompositeExtractor",
    "Extractor",
    "ExtractorInfo",
    "ExtractorSpec",
    "GSM8KExtractor",
    "LastLineExtractor",
    "MultipleChoiceExtractor",
    "NativeExtractor",
    "NumericExtractor",
    "ExtractorOption",
    "PatternExtractor",
    "RawExtractor",
    "RegexExtractor",
    "TagBasedExtractor",
    "TailExtractor",
    "UnknownCleaner",
    "cleaner_names",
    "describe_extractors",
    "extractor_names",
    "make_extractor",
]
