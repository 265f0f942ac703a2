from __future__ import annotations

from dataclasses import replace

from llenvs.core import (
    Action,
    ChatMessage,
    Generation,
    ImageContent,
    Observation,
    StateMetadata,
    StepResult,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Trajectory,
)
from llenvs.core.state import State
from llenvs.evaluation.conversation import Conversation
from llenvs.evaluation.prompting import prompt_builder

DOT = ImageContent(b"\x89PNG")


def roles_and_texts(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in conversation.messages()]


def test_a_text_game() -> None:
    conversation = Conversation(prompt_builder("any", "You play."))
    conversation.observe(Observation("You see a door.", task="Get out.", images=(DOT,)))
    first = conversation.messages()
    assert roles_and_texts(conversation) == [("system", "You play."), ("user", "Get out.\n\nYou see a door.")]
    assert first[1].images == (DOT,)
    conversation.act(Action("open door"))
    conversation.observe(Observation("It is locked.", task="Get out."))
    assert roles_and_texts(conversation)[2:] == [("assistant", "open door"), ("user", "It is locked.")]
    assert conversation.messages()[: len(first)] == first


def test_a_task_that_the_prompt_repeats_is_said_once() -> None:
    conversation = Conversation()
    conversation.observe(Observation("Get out. You see a door.", task="Get out."))
    assert roles_and_texts(conversation) == [("user", "Get out. You see a door.")]


def test_a_template_may_place_the_task() -> None:
    conversation = Conversation(prompt_builder("any", prompt={"template": "Task: {task}\nNow: {question}"}))
    conversation.observe(Observation("You see a door.", task="Get out."))
    assert roles_and_texts(conversation) == [("user", "Task: Get out.\nNow: You see a door.")]


def test_results_follow_their_calls_in_the_order_of_the_calls() -> None:
    conversation = Conversation()
    tool = ToolDefinition("look")
    conversation.observe(Observation("Go.", available_tools=(tool,)))
    assert conversation.tools == (tool,)
    calls = (ToolCall("look", {"at": "a"}, "1"), ToolCall("look", {"at": "b"}, "2"), ToolCall("look", {}, "3"))
    conversation.act(Action("Looking.", calls))
    conversation.observe(Observation("", tool_results=(ToolResult("2", "b!"), ToolResult("1", "a!"))))
    messages = conversation.messages()[2:]
    assert [(m.role, m.tool_call_id, m.name, m.content) for m in messages] == [
        ("tool", "1", "look", "a!"),
        ("tool", "2", "look", "b!"),
        ("tool", "3", "look", "(no result)"),
    ]
    assert conversation.messages()[1] == ChatMessage("assistant", "Looking.", tool_calls=calls)
    assert conversation.tools == ()


def test_text_beside_tool_results_comes_after_them() -> None:
    conversation = Conversation()
    conversation.observe(Observation("Go."))
    conversation.act(Action.from_tool_call("look", id="1"))
    conversation.observe(Observation("A door.", tool_results=(ToolResult("1", "ok"), ToolResult("9", "stray"))))
    assert roles_and_texts(conversation)[2:] == [("tool", "ok"), ("user", "stray\n\nA door.")]


def test_a_turn_without_anything_new_still_gives_the_model_the_floor() -> None:
    conversation = Conversation()
    conversation.observe(Observation("Go."))
    conversation.act(Action("wait"))
    conversation.observe(Observation(""))
    assert [message.role for message in conversation.messages()] == ["user", "assistant", "user"]


def test_an_environment_that_dictates_the_chat_is_obeyed() -> None:
    chat = (ChatMessage.system("Rules."), ChatMessage.user("Hi"))
    conversation = Conversation(prompt_builder("any", "Be brief."))
    conversation.observe(Observation("Hi", task="ignored", messages=chat))
    assert roles_and_texts(conversation) == [("system", "Rules.\n\nBe brief."), ("user", "Hi")]
    conversation.act(Action("Hello"))
    rewritten = (*chat, ChatMessage.assistant("Hello!"), ChatMessage.user("Bye"))
    conversation.observe(Observation("Bye", messages=rewritten))
    assert conversation.chat == rewritten


def test_calls_without_their_own_id_get_one() -> None:
    conversation = Conversation()
    conversation.observe(Observation("Go."))
    generation = Generation("", (ToolCall("a"), ToolCall("b", {}, "x"), ToolCall("c", {}, "x")))
    action = conversation.action_of(generation)
    assert [call.id for call in action.tool_calls] == ["call_0_0", "x", "call_0_2"]
    conversation.act(action, generation)
    assert [call.id for call in conversation.action_of(generation).tool_calls] == ["call_1_0", "x", "call_1_2"]


def test_the_prefix_is_part_of_what_the_model_said() -> None:
    assert Conversation().action_of(Generation(" 4</answer>"), "<answer>").text == "<answer> 4</answer>"


def test_what_a_backend_needs_back_is_kept() -> None:
    conversation = Conversation()
    conversation.observe(Observation("Go."))
    generation = Generation("hm", metadata={"signature": "s"})
    conversation.act(conversation.action_of(generation), generation)
    assert conversation.messages()[1].metadata == {"signature": "s"}


def test_the_conversation_of_a_trajectory_is_the_one_that_led_there() -> None:
    start = State(Observation("Go."), None)
    after = State(Observation("Gone."), None, StateMetadata(step=1))
    trajectory = Trajectory(start).append(Action("go"), StepResult(after))
    assert roles_and_texts(Conversation.of(trajectory)) == [
        ("user", "Go."),
        ("assistant", "go"),
        ("user", "Gone."),
    ]


def test_what_a_backend_needs_back_survives_an_environment_that_keeps_the_chat() -> None:
    conversation = Conversation()
    first = ChatMessage.user("Add 1 and 1.")
    conversation.observe(Observation("", messages=(first,)))
    call = ToolCall("add", {"a": 1}, "c1")
    signed = {"anthropic_content": [{"type": "thinking", "thinking": "...", "signature": "c2ln"}]}
    conversation.act(Action("I add.", (call,)), Generation("I add.", (call,), metadata=signed))
    said, result = (
        ChatMessage.assistant("I add.", (call,)),
        ChatMessage("tool", "2", tool_call_id="c1", name="add"),
    )
    conversation.observe(Observation("", messages=(first, said, result)))
    assert conversation.chat == (first, replace(said, metadata=signed), result)
    # an environment that changed what was said has the last word
    conversation.observe(Observation("", messages=(first, replace(said, content="I guess."), result)))
    assert conversation.chat[1].metadata == {}
