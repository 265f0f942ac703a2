"""TrajectoryMasker: which tokens the model sampled."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llenvs import Action, Observation, Signal, SignalBundle, State, Trajectory
from llenvs.core import ToolCall, ToolResult
from llenvs.core.environment import StepResult
from llenvs.core.errors import InvalidOption
from llenvs.core.generation import FinishReason, Generation, TokenLogprob
from llenvs.integrations import MaskedTrajectory, MasksFromText, PrefixBreak, TrajectoryMasker

pytest.importorskip("transformers", reason="needs a tokenizer of transformers")
from toy_tokenizer import toy_tokenizer

TOY = toy_tokenizer()
PROMPT = (265, 84, 82, 68, 81, 198, 71, 72, 266, 198, 265, 64, 82, 82, 72, 82, 83, 64, 77, 83, 198)
BRIDGE = (198, 265, 84, 82, 68, 81, 198, 77, 78, 266, 198, 265, 64, 82, 82, 72, 82, 83, 64, 77, 83, 198)


def episode(first: str, *turns: tuple[Any, Any, Observation | str, float]) -> Trajectory:
    """A trajectory of (action, generation, next observation, reward) steps."""
    trajectory = Trajectory(State(Observation(first), {}))
    for action, generation, observation, reward in turns:
        action = Action(action) if isinstance(action, str) else action
        observation = Observation(observation) if isinstance(observation, str) else observation
        result = StepResult(State(observation, {}), SignalBundle((Signal("r", reward=reward),)))
        trajectory = trajectory.append(action, result, generation)
    return trajectory


def sampled(text: str, prompt: Sequence[int], ids: Sequence[int], **more: Any) -> Generation:
    return Generation(text, prompt_token_ids=tuple(prompt), completion_token_ids=tuple(ids), **more)


def two_turns(**second: Any) -> Trajectory:
    read = (*PROMPT, 259, 266, *BRIDGE)
    return episode(
        "hi",
        ("ok", sampled("ok", PROMPT, (259, 266)), "no", 0.25),
        ("16", sampled("16", read, (260, 266), **second), "", 1.0),
    )


def checked(masked: MaskedTrajectory) -> MaskedTrajectory:
    """What holds for all."""
    ids = masked.prompt_ids + masked.response_ids
    assert len(masked.response_mask) == len(masked.response_ids)
    assert tuple(token for span in masked.spans for token in span.token_ids) == ids
    assert all(ids[span.start : span.end] == span.token_ids for span in masked.spans)
    model = {i for span in masked.spans if span.source == "model" for i in range(span.start, span.end)}
    assert [int(i in model) for i in range(len(masked.prompt_ids), len(ids))] == list(masked.response_mask)
    assert abs(sum(masked.token_rewards()) - sum(masked.rewards)) < 1e-9
    assert TOY.decode(ids) == "".join(span.text for span in masked.spans)
    return masked


def test_exact_ids() -> None:
    masked = checked(TrajectoryMasker(TOY).mask_trajectory(two_turns()))
    assert masked.prompt_ids == PROMPT
    assert masked.response_ids == (259, 266, *BRIDGE, 260, 266)
    assert masked.response_mask == (1, 1, *[0] * 22, 1, 1)
    assert (masked.exact, masked.truncated, masked.steps) == (True, False, (0, 2))
    assert (masked.rewards, masked.reward) == ((0.25, 1.0), 1.25)
    placed = masked.token_rewards()
    assert (placed[1], placed[25], sum(map(bool, placed))) == (0.25, 1.0, 2)
    assert masked.text_of("model") == ("ok<|im_end|>", "16<|im_end|>")
    assert masked.text_of("user") == ("hi",)
    assert masked.text_of("environment") == ("no",)
    assert masked.text_of("template") == (
        "<|im_start|>user\n",
        "<|im_end|>\n<|im_start|>assistant\n",
        "\n<|im_start|>user\n",
        "<|im_end|>\n<|im_start|>assistant\n",
    )
    assert masked.logprobs is None


def test_what_was_sampled_is_never_tokenised_again() -> None:
    drifting = (83, 71, 68, 266)  # "the", which the tokenizer writes as one token
    half = (127, 266)  # half a character, which would become three tokens
    for ids, text in ((drifting, "the"), (half, "\ufffd")):
        masked = checked(
            TrajectoryMasker(TOY).mask_trajectory(episode("hi", (text, sampled(text, PROMPT, ids), "", 1)))
        )
        assert masked.response_ids == ids
        assert masked.response_mask == (1,) * len(ids)
        assert masked.exact


def test_without_ids_the_template_gives_the_same() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        masked = checked(
            TrajectoryMasker(TOY).mask_trajectory(episode("hi", ("ok", None, "no", 0), ("16", None, "", 1)))
        )
    exact = TrajectoryMasker(TOY).mask_trajectory(two_turns())
    assert not masked.exact
    assert (masked.prompt_ids, masked.response_ids, masked.response_mask) == (
        exact.prompt_ids,
        exact.response_ids,
        exact.response_mask,
    )
    whole = TOY.apply_chat_template(
        [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": "no"},
            {"role": "assistant", "content": "16"},
        ],
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    marked = [i for i, bit in enumerate(whole["assistant_masks"]) if bit]
    assert marked == [21, 22, 45, 46]
    assert [21 + i for i, bit in enumerate(masked.response_mask) if bit] == marked


def test_a_bridge_is_made_where_the_next_prompt_is_not_known() -> None:
    trajectory = episode(
        "hi",
        ("ok", sampled("ok", PROMPT, (259, 266)), "no", 0),
        ("16", Generation("16", completion_token_ids=(260, 266)), "", 1),
    )
    masked = checked(TrajectoryMasker(TOY).mask_trajectory(trajectory))
    assert masked.response_ids == (259, 266, *BRIDGE, 260, 266)
    assert not masked.exact
    cut = replace(
        trajectory.transitions[0],
        generation=sampled("the", PROMPT, (83, 71, 68), finish_reason=FinishReason.LENGTH),
        action=Action("the"),
    )
    with pytest.warns(MasksFromText, match="other ids from token 21 on"):
        masked = checked(
            TrajectoryMasker(TOY).mask_trajectory(
                replace(trajectory, transitions=(cut, trajectory.transitions[1]))
            )
        )
    assert masked.response_ids[:4] == (83, 71, 68, 266)  # the template closes the turn that was cut
    assert masked.response_mask[:4] == (1, 1, 1, 0)


def test_logprobs_come_along() -> None:
    logprobs = (TokenLogprob("16", -0.5), TokenLogprob("<|im_end|>", -0.1))
    trajectory = two_turns(logprobs=logprobs)
    assert (
        TrajectoryMasker(TOY).mask_trajectory(trajectory).logprobs is None
    )  # those of the first turn are missing
    first = replace(
        trajectory.transitions[0],
        generation=replace(trajectory.transitions[0].generation, logprobs=logprobs),  # type: ignore[type-var]
    )
    masked = TrajectoryMasker(TOY).mask_trajectory(
        replace(trajectory, transitions=(first, trajectory.transitions[1]))
    )
    assert masked.logprobs == (-0.5, -0.1, *[0.0] * 22, -0.5, -0.1)


def test_a_limit_cuts_all_together() -> None:
    logprobs = (TokenLogprob("a", -0.5), TokenLogprob("b", -0.1))
    trajectory = episode(
        "hi",
        ("ok", sampled("ok", PROMPT, (259, 266), logprobs=logprobs), "no", 0.25),
        ("16", sampled("16", (*PROMPT, 259, 266, *BRIDGE), (260, 266), logprobs=logprobs), "", 1.0),
    )
    for limit in range(1, 30):
        masked = checked(TrajectoryMasker(TOY).mask_trajectory(trajectory, max_response_length=limit))
        assert len(masked.response_ids) == min(limit, 26)
        assert masked.truncated == (limit < 26)
        assert masked.logprobs is not None
        assert len(masked.logprobs) == len(masked.response_ids)
    with pytest.raises(InvalidOption, match="max_response_length"):
        TrajectoryMasker(TOY).mask_trajectory(trajectory, max_response_length=0)


def test_an_answer_that_was_cut_is_told() -> None:
    masked = TrajectoryMasker(TOY).mask_trajectory(
        episode("hi", ("ok", sampled("ok", PROMPT, (259,), finish_reason=FinishReason.LENGTH), "", 0))
    )
    assert masked.truncated
    assert masked.response_mask == (1,)


def test_a_prompt_that_begins_otherwise_is_no_sequence() -> None:
    other = (265, 84, 82, 68, 81, 198, 72, 72, 266)  # "ii" for "hi"
    trajectory = episode(
        "hi",
        ("ok", sampled("ok", PROMPT, (259, 266)), "no", 0.5),
        ("16", sampled("16", other, (260, 266)), "", 1.0),
    )
    with pytest.raises(PrefixBreak, match="turn 1 differs at token 6") as broken:
        TrajectoryMasker(TOY).mask_trajectory(trajectory)
    assert (broken.value.turn, broken.value.index) == (1, 6)
    first, second = TrajectoryMasker(TOY, on_prefix_break="split").mask_sequences(trajectory)
    assert (first.prompt_ids, first.response_ids, first.steps, first.rewards) == (
        PROMPT,
        (259, 266),
        (0, 1),
        (0.5,),
    )
    assert (second.prompt_ids, second.response_ids, second.steps) == (other, (260, 266), (1, 2))
    assert (second.token_rewards(), second.reward, second.exact) == ((0.0, 1.0), 1.5, True)
    with pytest.raises(PrefixBreak, match="2 sequences"):
        TrajectoryMasker(TOY, on_prefix_break="split").mask_trajectory(trajectory)
    with pytest.warns(MasksFromText, match="made from the text of the whole chat"):
        whole = checked(TrajectoryMasker(TOY, on_prefix_break="retokenize").mask_trajectory(trajectory))
    assert (whole.prompt_ids, whole.response_mask) == (PROMPT, (1, 1, *[0] * 22, 1, 1))
    assert not whole.exact
    with pytest.raises(InvalidOption, match="is no policy"):
        TrajectoryMasker(TOY, on_prefix_break="ignore")  # type: ignore[arg-type]


def test_thoughts_that_a_template_drops_are_told_apart() -> None:
    """Qwen3's template leaves out the thoughts of earlier turns: what was sampled is not what is read next."""
    dropping = TOY.chat_template.replace(
        "{{ message['content'] + '<|im_end|>' }}{% endgeneration %}",
        "{{ (message['content'] if loop.last else message['content'].split('</think>')[-1]) + '<|im_end|>' }}"
        "{% endgeneration %}",
    )
    thinking = toy_tokenizer(dropping)
    trajectory = episode("hi", ("<think>a</think>ok", None, "no", 1.0), ("16", None, "", 2.0))
    with pytest.raises(PrefixBreak, match="turn 1 differs"):
        TrajectoryMasker(thinking).mask_trajectory(trajectory)
    with pytest.warns(MasksFromText):
        whole = checked(TrajectoryMasker(thinking, on_prefix_break="retokenize").mask_trajectory(trajectory))
    assert whole.text_of("model") == ("16<|im_end|>",)  # the first answer stands nowhere as it was sampled
    assert [span.step_index for span in whole.spans if span.source == "model"] == [1]
    assert whole.token_rewards()[-1] == 3.0


def test_nothing_to_mask() -> None:
    with pytest.raises(InvalidOption, match="holds no action"):
        TrajectoryMasker(TOY).mask_trajectory(episode("hi"))


TEXTS = st.text(
    st.sampled_from("the ok 16 in<a\n\u00e9\u4e2d\U0001f600|im_end?>"), min_size=0, max_size=12
).filter(lambda text: "<|im" not in text and text == text.strip())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.booleans(), TEXTS, TEXTS), min_size=1, max_size=5), st.integers(0, 2**32))
def test_masked_spans_are_exactly_what_the_model_said(turns: list[tuple[str, bool, str, str]], seed: int) -> None:
    """Random trajectories of texts and tool calls; ids sampled as a model may, not as the tokenizer would."""
    rng = random.Random(seed)
    steps, said, heard, read = [], [], [], []
    chat = [{"role": "user", "content": "hi"}]
    ids: list[int] = list(PROMPT)
    for number, (text, calls, content, more) in enumerate(turns):
        written = text + ('<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>' if calls else "")
        completion = [*_spelled(written, rng), 266]
        generation = sampled(text, ids, completion, metadata={"response_text": written})
        chat.append({"role": "assistant", "content": written})
        call = ToolCall("f", {}, f"c{number}")
        if calls:
            observation = Observation(more, tool_results=(ToolResult(call.id, "f", content),))
            new = [content] + ([more] if more else [])
            heard.append(content)
        else:
            observation, new = Observation(more), [more]
        read.append(more)
        steps.append((Action(text, (call,) if calls else ()), generation, observation, 1.0))
        ids += completion
        said.append(written + "<|im_end|>")
        roles = ["tool", "user"] if calls else ["user"]
        bridge = "\n" + "".join(f"<|im_start|>{r}\n{c}<|im_end|>\n" for r, c in zip(roles, new, strict=False))
        ids += TOY(bridge + "<|im_start|>assistant\n", add_special_tokens=False).input_ids
    masked = checked(TrajectoryMasker(TOY).mask_trajectory(episode("hi", *steps)))
    assert masked.exact
    assert masked.text_of("model") == tuple(said)
    assert sum(masked.response_mask) == sum(len(s[1].completion_token_ids) for s in steps)


def _spelled(text: str, rng: random.Random) -> list[int]:
    """Some ids that read as `text`: merged as the tokenizer does, or byte by byte."""
    ids: list[int] = []
    for token in TOY(text, add_special_tokens=False).input_ids:
        piece = TOY.convert_ids_to_tokens(token)
        if token < 264 and rng.random() < 0.5:
            ids += TOY.convert_tokens_to_ids(list(piece))
        else:
            ids.append(token)
    return ids
