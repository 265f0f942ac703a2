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

from llenvs import Action, Observation, Signal, SignalBundle, State, Trajectory, make
from llenvs.core import SegmentedEnvironment, SentenceSegmenter, ToolCall, ToolResult
from llenvs.core.environment import StepResult
from llenvs.core.errors import InvalidOption
from llenvs.core.generation import FinishReason, Generation, TokenLogprob
from llenvs.core.message import ChatMessage
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
    assert whole.text_of("model") == ("ok<|im_end|>", "16<|im_end|>")  # what the template keeps of each
    assert [span.step_index for span in whole.spans if span.source == "model"] == [0, 1]
    assert [reward for reward in whole.token_rewards() if reward] == [1.0, 2.0]


def test_nothing_to_mask() -> None:
    with pytest.raises(InvalidOption, match="holds no action"):
        TrajectoryMasker(TOY).mask_trajectory(episode("hi"))


WORDS = st.sampled_from(["user", "assistant", "tool", "s", "a", "t", "im_start", "<|im_start|>", "16 user"])
TEXTS = st.one_of(
    WORDS, st.text(st.sampled_from("the ok 16 in<a\n\u00e9\u4e2d\U0001f600|im_end?>"), min_size=0, max_size=12)
).filter(lambda text: "<|im_end" not in text and text == text.strip())


@settings(max_examples=200, deadline=None)
@given(
    TEXTS, st.lists(st.tuples(TEXTS, st.booleans(), TEXTS, TEXTS), min_size=1, max_size=5), st.integers(0, 2**32)
)
def test_spans_are_exactly_what_was_said(first: str, turns: list[tuple[str, bool, str, str]], seed: int) -> None:
    """Random trajectories of texts and tool calls; ids sampled as a model may, not as the tokenizer would."""
    rng = random.Random(seed)
    steps, said, heard, read = [], [], [], []
    ids = _chat_ids(("user", first))
    for number, (text, calls, content, more) in enumerate(turns):
        written = text + ('<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>' if calls else "")
        completion = [*_spelled(written, rng), 266]
        generation = sampled(text, ids, completion, metadata={"response_text": written})
        call = ToolCall("f", {}, f"c{number}")
        results = (ToolResult(call.id, content, name="f"),) if calls else ()
        action = Action(text, (call,) if calls else ())
        steps.append((action, generation, Observation(more, tool_results=results), 1.0))
        new = [("tool", content), *([("user", more)] if more else [])] if calls else [("user", more)]
        if number + 1 < len(turns):  # what is said after the last answer is no part of it
            heard += [content] if calls else []
            read += [more]
        ids += [*completion, *_chat_ids(*new, before="\n")]
        said.append(written + "<|im_end|>")
    masked = checked(TrajectoryMasker(TOY).mask_trajectory(episode(first, *steps)))
    assert masked.exact
    assert masked.text_of("model") == tuple(said)
    assert sum(masked.response_mask) == sum(len(s[1].completion_token_ids) for s in steps)
    assert masked.text_of("tool") == tuple(text for text in heard if text)
    assert masked.text_of("environment") == tuple(text for text in read if text)
    assert masked.text_of("user") == ((first,) if first else ())


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.lists(st.tuples(TEXTS, st.booleans(), TEXTS, TEXTS), min_size=1, max_size=4))
def test_spans_made_from_text_are_what_was_said(first: str, turns: list[tuple[str, bool, str, str]]) -> None:
    """Without ids, step by step and from the whole chat: the same text, the same mask."""
    steps, said = [], []
    for number, (text, calls, content, more) in enumerate(turns):
        call = ToolCall("f", {}, f"c{number}")
        results = (ToolResult(call.id, content, name="f"),) if calls else ()
        steps.append((Action(text, (call,) if calls else ()), None, Observation(more, tool_results=results), 1.0))
        tag = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>' if calls else ""
        said.append("\n".join(part for part in (text, tag) if part) + "<|im_end|>")
    trajectory = episode(first, *steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MasksFromText)
        masked = checked(TrajectoryMasker(TOY).mask_trajectory(trajectory))
        masker = TrajectoryMasker(TOY, on_prefix_break="retokenize")
        whole = checked(masker._finished(masker._from_whole_text(masker._turns(trajectory)[0]), 1.0, None))
    assert masked.text_of("model") == whole.text_of("model") == tuple(said)
    assert TOY.decode(masked.response_ids) == TOY.decode(whole.response_ids)
    assert masked.prompt_ids == whole.prompt_ids
    # texts of control tokens that somebody wrote are no control tokens
    assert masked.response_ids.count(265) == whole.response_ids.count(265)
    assert masked.prompt_ids.count(265) == 2


def _chat_ids(*messages: tuple[str, str], before: str = "") -> list[int]:
    """Messages and a generation prompt, the contents spelled without control tokens."""
    ids = TOY(before, add_special_tokens=False).input_ids if before else []
    for role, content in messages:
        ids += TOY(f"<|im_start|>{role}\n", add_special_tokens=False).input_ids
        ids += TOY(content, add_special_tokens=False, split_special_tokens=True).input_ids if content else []
        ids += TOY("<|im_end|>\n", add_special_tokens=False).input_ids
    return [*ids, *TOY("<|im_start|>assistant\n", add_special_tokens=False).input_ids]


def _spelled(text: str, rng: random.Random) -> list[int]:
    """Some ids that read as `text`: merged as the tokenizer does, or byte by byte."""
    ids: list[int] = []
    for token in TOY(text, add_special_tokens=False, split_special_tokens=True).input_ids if text else []:
        piece = TOY.convert_ids_to_tokens(token)
        if token < 264 and rng.random() < 0.5:
            ids += TOY.convert_tokens_to_ids(list(piece))
        else:
            ids.append(token)
    return ids


def test_an_environment_that_rewrites_its_chat() -> None:
    """It shows the last exchange only: two parts, or one text in which the first answer no longer stands."""
    shown = Observation(messages=(ChatMessage.user("hi"), ChatMessage("assistant", "16"), ChatMessage.user("no")))
    trajectory = episode("hi", ("ok", None, shown, 1.0), ("16", None, "", 2.0))
    with pytest.raises(PrefixBreak):
        TrajectoryMasker(TOY).mask_trajectory(trajectory)
    with pytest.warns(MasksFromText):
        whole = TrajectoryMasker(TOY, on_prefix_break="retokenize").mask_trajectory(trajectory)
    assert whole.text_of("model") == ("16<|im_end|>", "16<|im_end|>")
    forgotten = Observation(messages=(ChatMessage.user("no"),))
    trajectory = episode("hi", ("ok", None, forgotten, 1.0), ("16", None, "", 2.0))
    with pytest.warns(MasksFromText):
        whole = checked(TrajectoryMasker(TOY, on_prefix_break="retokenize").mask_trajectory(trajectory))
    assert whole.text_of("model") == ("16<|im_end|>",)
    assert [span.step_index for span in whole.spans if span.source == "model"] == [1]
    assert whole.token_rewards()[-1] == 3.0


def test_calls_and_cut_answers_of_a_whole_text() -> None:
    call = ToolCall("f", {"x": 1}, "c0")
    cut = Generation("ok", finish_reason=FinishReason.LENGTH)
    trajectory = episode(
        "a",
        (Action("", (call,)), None, Observation("", tool_results=(ToolResult("c0", "s", name="f"),)), 1.0),
        ("", None, "s", 1.0),
        ("ok", cut, "no", 1.0),
        ("s", cut, "", 1.0),
    )
    masker = TrajectoryMasker(TOY, on_prefix_break="retokenize")
    whole = checked(masker._finished(masker._from_whole_text(masker._turns(trajectory)[0]), 1.0, None))
    written = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call><|im_end|>'
    assert whole.text_of("model") == (written, "<|im_end|>", "ok", "s")
    assert whole.text_of("tool") == ("s",)
    assert whole.text_of("environment") == ("s", "no")
    assert whole.truncated


def test_what_is_no_trajectory_or_tokenizer() -> None:
    for wrong in ("x", 5, [1]):
        with pytest.raises(InvalidOption, match="must be a Trajectory or a Rollout"):
            TrajectoryMasker(TOY).mask_trajectory(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidOption, match="is no tokenizer"):
            TrajectoryMasker(wrong)
    for limit in ("a", 1.5, True, -1):
        with pytest.raises(InvalidOption, match="max_response_length"):
            TrajectoryMasker(TOY).mask_trajectory(two_turns(), max_response_length=limit)  # type: ignore[arg-type]


def test_a_cut_answer_without_ids_has_no_end() -> None:
    cut = Generation("ok", finish_reason=FinishReason.LENGTH)
    masked = checked(
        TrajectoryMasker(TOY).mask_trajectory(episode("hi", ("ok", cut, "no", 0), ("16", cut, "", 0)))
    )
    assert masked.text_of("model") == ("ok", "16")
    assert masked.response_ids == (259, 266, *BRIDGE, 260)
    assert masked.response_mask == (1, *[0] * 23, 1)


def test_contents_are_not_words_of_the_template() -> None:
    """A template with a system prompt of its own, and one that writes a thought's tags around every answer."""
    helpful = toy_tokenizer("{{ '<|im_start|>system\nYou help the user<|im_end|>\n' }}" + TOY.chat_template)
    for content in ("You", "user", "help", "see <tool_call> and <think>"):
        masked = TrajectoryMasker(helpful).mask_trajectory(episode(content, ("ok", None, "", 1.0)))
        before, said = masked.spans[:2]
        assert (said.source, said.text) == ("user", content)
        assert before.text.endswith("<|im_end|>\n<|im_start|>user\n")
    thinking = toy_tokenizer(
        TOY.chat_template.replace(
            "{{ message['content'] + '<|im_end|>' }}{% endgen",
            "{{ message['content'] if '<think>' in message['content'] else '<think>\n\n</think>\n\n' + "
            "message['content'] }}{{ '<|im_end|>' }}{% endgen",
        )
    )
    trajectory = episode("hi", ("<think>\na\n</think>\n\nok", None, "no", 1.0), ("16", None, "", 1.0))
    masker = TrajectoryMasker(thinking, on_prefix_break="retokenize")
    whole = checked(masker._finished(masker._from_whole_text(masker._turns(trajectory)[0]), 1.0, None))
    assert whole.text_of("model") == ("<think>\na\n</think>\n\nok<|im_end|>", "16<|im_end|>")


def test_a_renderer_by_the_name_of_the_model() -> None:
    """Where the family is known its renderer bridges, and keeps thoughts that the family's template drops."""
    with pytest.raises(InvalidOption, match="is no renderer"):
        TrajectoryMasker(TOY, renderer="qwen")
    pytest.importorskip("renderers", reason="needs renderers: pip install renderers")
    assert TrajectoryMasker(TOY, renderer="auto")._ids.renderer is None
    named = toy_tokenizer(
        TOY.chat_template.replace(
            "{{ message['content'] + '<|im_end|>' }}{% endgen",
            "{{ (message['content'] if loop.last else message['content'].split('</think>')[-1]) + '<|im_end|>' }}"
            "{% endgen",
        )
    )
    thought = "<think>\na\n</think>\n\nok"
    ids = TOY(thought, add_special_tokens=False).input_ids
    trajectory = episode(
        "hi",
        (thought, sampled(thought, PROMPT, (*ids, 266)), "no", 1.0),
        ("16", Generation("16", completion_token_ids=(260, 266)), "", 1.0),
    )
    with pytest.raises(PrefixBreak):
        TrajectoryMasker(named, renderer="auto").mask_trajectory(trajectory)
    named.name_or_path = "Qwen/Qwen3-0.6B"
    masked = checked(TrajectoryMasker(named, renderer="auto").mask_trajectory(trajectory))
    assert masked.response_ids == (*ids, 266, *BRIDGE, 260, 266)
    assert masked.text_of("model") == (thought + "<|im_end|>", "16<|im_end|>")


def test_a_template_that_writes_results_into_answers() -> None:
    """Gemma 4 puts them behind the call, in one turn: an environment's words must not be taken for the model's."""
    templates = pytest.importorskip("trl.chat_template_utils", reason="takes a family's template from TRL")
    gemma = toy_tokenizer(templates.gemma4_chat_template)
    call = ToolCall("f", {"x": 1}, "c0")
    shown = Observation("", tool_results=(ToolResult("c0", "higher", name="f"),))
    trajectory = episode("hi", (Action("s", (call,)), None, shown, 1.0), ("ok", None, "", 1.0))
    masker = TrajectoryMasker(gemma, on_prefix_break="retokenize")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MasksFromText)
        with pytest.raises(PrefixBreak, match="what follows an answer into it"):
            masker.mask_trajectory(trajectory)


def test_a_trajectory_of_segments_is_refused_and_its_base_is_masked() -> None:
    base = SegmentedEnvironment(make("arithmetic/times"), SentenceSegmenter())
    state, _ = base.reset(options={"task_index": 3})
    segments = base.replay(state, "I count. <answer>6</answer>").trajectory
    for policy in ("error", "split", "retokenize"):
        masker = TrajectoryMasker(TOY, on_prefix_break=policy)  # type: ignore[arg-type]
        with pytest.raises(InvalidOption, match=r"is one of segments.*env\.base_trajectory"):
            masker.mask_trajectory(segments)
    masked = checked(TrajectoryMasker(TOY).mask_trajectory(base.base_trajectory(segments)))
    (said,) = [span.text for span in masked.spans if span.source == "model"]
    assert said == "I count. <answer>6</answer><|im_end|>"
