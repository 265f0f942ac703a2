"""What every backend that renders chats itself must answer with the small default model.

In the tests of such a backend, with a fixture `backend` that runs the model in float32 from weights rounded to
bfloat16::

    class TestAnswers(ChatEngineAnswers):
        pass
"""

from __future__ import annotations

import math
from typing import Any

from llenvs.core.generation import FinishReason
from llenvs.core.message import ChatMessage
from llenvs.inference.local.chat_backend import ChatEngineBackend
from llenvs.inference.request import GenerationRequest
from llenvs.inference.sampling import SamplingParams
from llenvs.testing.small_model import FRANCE, IN_FLOAT32

GREEDY = SamplingParams(temperature=0.0, max_tokens=48, logprobs=2)


class ChatEngineAnswers:
    """Tests for pytest, to be derived from."""

    def test_texts_ids_and_logprobs(self, backend: ChatEngineBackend[Any]) -> None:
        """Right values, and ids, texts and logprobs that fit each other."""
        answers = backend.chat_batch([right.question for right in IN_FLOAT32], GREEDY)
        for right, answer in zip(IN_FLOAT32, answers, strict=True):
            assert answer.completion_token_ids is not None
            assert answer.logprobs is not None
            assert answer.usage.prompt_tokens == right.prompt_tokens
            assert answer.usage.completion_tokens == len(answer.completion_token_ids)
            assert answer.text.startswith(right.text)
            assert answer.completion_token_ids[: len(right.first_ids)] == right.first_ids
            assert math.isclose(answer.logprobs[0].logprob, right.first_logprob, abs_tol=1e-4)
            assert backend.detokenize(answer.completion_token_ids).removesuffix("<|im_end|>") == answer.text
            assert [each.token_id for each in answer.logprobs] == list(answer.completion_token_ids)
            assert "".join(each.token for each in answer.logprobs).removesuffix("<|im_end|>") == answer.text
        first = answers[0]
        assert first.logprobs is not None
        assert first.finish_reason is FinishReason.STOP
        assert [token for token, _ in first.logprobs[0].top] == ["The", "L"]
        assert answers[3].finish_reason is FinishReason.LENGTH

    def test_a_prefix_is_continued(self, backend: ChatEngineBackend[Any]) -> None:
        """And is part of the prompt, not of the answer."""
        answer = backend.chat(FRANCE, GREEDY, prefix="The capital of")
        assert answer.text == " France is Paris."
        assert answer.completion_token_ids == (4649, 314, 7042, 30, 2)
        assert answer.prompt_token_ids is not None
        assert answer.prompt_token_ids[-3:] == (504, 3575, 282)

    def test_a_stop_string_cuts_the_text_and_keeps_the_ids(self, backend: ChatEngineBackend[Any]) -> None:
        """One that ends inside a token, before another would."""
        sampling = SamplingParams(temperature=0.0, stop=("Paris", "is Par"), logprobs=0, max_tokens=30)
        answer = backend.chat(FRANCE, sampling)
        assert answer.text == "The capital of France "
        assert answer.metadata["stop"] == "is Par"
        assert answer.finish_reason is FinishReason.STOP
        assert answer.completion_token_ids == (504, 3575, 282, 4649, 314, 7042)
        assert answer.logprobs is not None
        assert len(answer.logprobs) == 6

    def test_two_turns_by_ids_equal_the_rendered_conversation(self, backend: ChatEngineBackend[Any]) -> None:
        """The prompt of a second turn continues the ids of the first."""
        first = backend.chat(FRANCE, GREEDY)
        chat = (ChatMessage.user(FRANCE), first.to_message(), ChatMessage.user("And of Spain?"))
        rendered = backend.render(GenerationRequest(chat)).token_ids
        assert first.prompt_token_ids is not None
        assert first.completion_token_ids is not None
        so_far = first.prompt_token_ids + first.completion_token_ids
        assert rendered[: len(so_far)] == so_far
        # the end of the turn, the user's turn, the start of the assistant's
        assert backend.detokenize(rendered[len(so_far) :]) == (
            "\n<|im_start|>user\nAnd of Spain?<|im_end|>\n<|im_start|>assistant\n"
        )
        assert backend.generate_sync(GenerationRequest(chat, GREEDY)).prompt_token_ids == rendered
