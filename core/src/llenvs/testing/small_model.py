"""What the small default model answers greedily, for tests of backends that run it.

Seen at the engines themselves, with the model's own chat template.
"""

from __future__ import annotations

from dataclasses import dataclass

FRANCE = "What is the capital of France?"
LEGS = "How many legs do 3 cows and 2 chickens have in total?"
SEA = "Write one sentence about the sea."
SEVEN_TIMES_EIGHT = "What is 7 times 8?"
PRIME = "Is 17 a prime number? Answer yes or no."
FRENCH = "Translate 'good morning' to French."


@dataclass(frozen=True)
class RightAnswer:
    """A question, which is the one message of a chat, and what comes back.

    Attributes:
        question: of the user.
        prompt_tokens: in the rendered chat.
        text: the answer, or how it begins.
        first_logprob: of the first token, natural logarithm.
        first_ids: of the tokens that it begins with.
        tokens: in the whole answer, its end included; None: not known.
    """

    question: str
    prompt_tokens: int
    text: str
    first_logprob: float
    first_ids: tuple[int, ...] = ()
    tokens: int | None = None


IN_LLAMACPP = (
    RightAnswer(FRANCE, 37, "L'Étoile, la Marseillaise, la femme,", -1.8529, (60, 23, 39614)),
    RightAnswer(
        LEGS,
        45,
        "There are 3 legs for the first 3 cows and 2 legs for the second one.",
        -1.6381,
        (2122, 359, 216),
        21,
    ),
    RightAnswer(
        SEA,
        37,
        "The sea is a vast and mysterious realm that exists beneath the waves, a vast and mysterious realm that "
        "exists beneath the waves.",
        -0.2812,
        (504,),
        26,
    ),
    RightAnswer(
        SEVEN_TIMES_EIGHT,
        38,
        "To find 7 times 8, we can use the formula for multiplication of integers: 7 * 8 = 56. So, 7 times 8 is "
        "equal to 56.",
        -0.9162,
        tokens=43,
    ),
    RightAnswer(PRIME, 43, "No.", -1.2670, (5230, 30, 2), 3),
    RightAnswer(FRENCH, 39, "Je m'aime la vie, je m'aime la vie.", -1.7358, tokens=19),
)
"""Of the GGUF file, by llama.cpp."""

IN_FLOAT32 = (
    RightAnswer(
        FRANCE, 37, "The capital of France is Paris.", -1.8643, (504, 3575, 282, 4649, 314, 7042, 30, 2), 8
    ),
    RightAnswer(
        LEGS, 45, "There are 3 legs for the first 3 cows and 2 legs for the second one.", -1.7059, (2122, 359, 216)
    ),
    RightAnswer(SEA, 37, "The sea is a vast and mysterious realm, teeming", -0.2723, (504,)),
    RightAnswer(
        SEVEN_TIMES_EIGHT,
        38,
        "To find 7 times 8, we can use the formula for multiplication",
        -0.9404,
        (2068,),
    ),
    RightAnswer(PRIME, 43, "No, 17 is not a prime number. A prime number", -1.3039, (5230, 28)),
    RightAnswer(FRENCH, 39, "Je m'aime la vie, je m'aime la vie.", -1.7272, (46719,)),
)
"""Of its weights rounded to bfloat16 and computed with in float32, by ``generate`` of transformers."""
