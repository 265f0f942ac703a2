"""Prompts: fragments, system prompts, question templates, few-shot examples, format hints, model profiles.

```python
from llenvs.inference.prompts import make_prompt

spec = make_prompt({"system_prompt": "general_reasoning", "template": "question_answer"})
builder = spec.for_model("google/gemma-2-9b-it")
messages = builder.build("How many legs do 3 dogs have?")
print(builder.explain())  # which part came from where
```
"""

from llenvs.inference.prompts.answer_format import FormatInjection
from llenvs.inference.prompts.builder import PromptBuilder, PromptSpec
from llenvs.inference.prompts.catalog import (
    UnknownFewShot,
    UnknownFragment,
    UnknownProfile,
    UnknownSystemPrompt,
    UnknownTemplate,
)
from llenvs.inference.prompts.explanation import ExplainedMessage, PromptExplanation, PromptPart
from llenvs.inference.prompts.few_shot import (
    FewShot,
    FewShotExample,
    get_few_shot,
    list_few_shots,
    register_few_shot,
)
from llenvs.inference.prompts.fragments import (
    PromptFragment,
    get_fragment,
    list_fragments,
    register_fragment,
)
from llenvs.inference.prompts.listing import PromptDescription, describe_prompt, list_prompts
from llenvs.inference.prompts.profiles import (
    ModelProfile,
    detect_profile,
    get_profile,
    list_profiles,
    register_profile,
)
from llenvs.inference.prompts.slots import UnknownSlot
from llenvs.inference.prompts.spec import make_prompt, make_system_prompt
from llenvs.inference.prompts.system import (
    SystemPrompt,
    get_system_prompt,
    list_system_prompts,
    register_system_prompt,
)
from llenvs.inference.prompts.templates import (
    QuestionTemplate,
    get_template,
    list_templates,
    register_template,
)

__all__ = [
    "ExplainedMessage",
    "FewShot",
    "FewShotExample",
    "FormatInjection",
    "ModelProfile",
    "PromptBuilder",
    "PromptDescription",
    "PromptExplanation",
    "PromptFragment",
    "PromptPart",
    "PromptSpec",
    "QuestionTemplate",
    "SystemPrompt",
    "UnknownFewShot",
    "UnknownFragment",
    "UnknownProfile",
    "UnknownSlot",
    "UnknownSystemPrompt",
    "UnknownTemplate",
    "describe_prompt",
    "detect_profile",
    "get_few_shot",
    "get_fragment",
    "get_profile",
    "get_system_prompt",
    "get_template",
    "list_few_shots",
    "list_fragments",
    "list_profiles",
    "list_prompts",
    "list_system_prompts",
    "list_templates",
    "make_prompt",
    "make_system_prompt",
    "register_few_shot",
    "register_fragment",
    "register_profile",
    "register_system_prompt",
    "register_template",
]
