"""What the upstream gets wrong, or what is easily got wrong with it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aviary_play import act, answers, begin, call, played, reward

import llenvs
from llenvs import Action, State
from llenvs.core.errors import InvalidOption, UnknownEnvironment, UnknownOption, UpstreamFailed
from llenvs.core.tools import ToolCall, ToolStatus
from llenvs_aviary.environment import AviaryEnvironment

Make = Callable[..., AviaryEnvironment]


@pytest.mark.parametrize(
    "expr",
    ["9**9**7", "9**9**9**9", "(7**300000)*(7**300000)", "10**5000", "round(5,-1000000000)", "1+" * 9000 + "1"],
)
def test_the_calculator_is_bounded(make: Make, gsm8k: str, expr: str) -> None:
    env = make("gsm8k", data_dir=gsm8k, time_limit=10)
    (result,) = played(env, 0, [call("calculator", expr=expr)])
    assert answers(result)[0].startswith("Error using calculator: ")
    assert (reward(result), result.terminated) == (-1.0, True)


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        ("2**0.5*2**0.5", "2.0000000000000004"),
        ("10**5000/10**4999", "10"),
        ("2**-2", "0.25"),
        ("round(17,-1)", "20"),
    ],
)
def test_the_bounds_leave_ordinary_expressions_alone(make: Make, gsm8k: str, expr: str, value: str) -> None:
    env = make("gsm8k", data_dir=gsm8k)
    assert answers(played(env, 0, [call("calculator", expr=expr)])[0]) == [value]


def test_wrong_arguments_are_results(make: Make, gsm8k: str) -> None:
    env = make("gsm8k", data_dir=gsm8k)
    state = begin(env, 0)
    # the argument that the upstream's own texts suggest; there it is a TypeError that leaves the step
    result = env.step(state, call("calculator", expression="1+1"))
    (answer,) = result.next_state.observation.tool_results
    assert answer.status is ToolStatus.INVALID_ARGUMENTS
    assert "'expr' is missing" in answer.content
    assert "there is no 'expression'" in answer.content
    assert (reward(result), result.done) == (0.0, False)
    mixed = env.step(state, act(("calculator", {"state": 1}), ("submit_answer", {"answer": "18"})))
    assert (answers(mixed)[1], reward(mixed), mixed.terminated) == ("True", 1.0, True)
    assert (result.rewards["tool_errors"].reward, mixed.rewards["tool_errors"].reward) == (1.0, 1.0)
    assert mixed.rewards.total == 1.0


@pytest.mark.parametrize(
    "value", ["\ud800", "\x00", float("nan"), 10**400, None, b"bytes", {"a": [1, {"b": (1, 2)}]}, "word " * 50_000]
)
@pytest.mark.parametrize("name", ["gsm8k", "hotpotqa", "dummy"])
def test_odd_arguments_are_answered(make: Make, gsm8k: str, hotpotqa: str, name: str, value: Any) -> None:
    folders = {"gsm8k": {"data_dir": gsm8k}, "hotpotqa": {"data_dir": hotpotqa}, "dummy": {}}
    env = make(name, **folders[name])
    state = begin(env, 0)
    for tool in state.observation.available_tools:
        arguments = dict.fromkeys(tool.parameters["properties"], value)
        result = env.step(state, call(tool.name, **arguments))
        assert len(answers(result)) == 1
        assert State.from_json(result.next_state.to_json()) == result.next_state


def test_calls_that_could_not_be_read(make: Make, gsm8k: str) -> None:
    env = make("gsm8k", data_dir=gsm8k)
    broken = ToolCall.from_json("calculator", "{'expr': ", "call_0")
    result = env.step(begin(env, 0), Action("", (broken,)))
    # as the upstream has it: such a call is one of a tool that there is not
    assert (reward(result), result.terminated) == (-1.0, True)
    (answer,) = result.next_state.observation.tool_results
    assert (answer.status, answer.content) == (ToolStatus.INVALID_ARGUMENTS, f"Error: {broken.problem}")


def test_calls_without_ids_and_with_one_twice(make: Make, gsm8k: str) -> None:
    env = make("gsm8k", data_dir=gsm8k)
    calls = tuple(ToolCall("calculator", {"expr": f"{n}+1"}, id) for n, id in enumerate(["", "", "a", "a"]))
    result = env.step(begin(env, 0), Action("", calls))
    assert answers(result) == ["1", "2", "3", "4"]
    assert result.resolved_action is not None
    ids = [each.id for each in result.resolved_action.tool_calls]
    assert len(set(ids)) == 4
    assert [each.call_id for each in result.next_state.observation.tool_results] == ids


def test_evaluation_modes_count(make: Make, hotpotqa: str) -> None:
    def paid(mode: str, answer: str, task: int) -> tuple[float, float | None, float | None]:
        env = make("hotpotqa", data_dir=hotpotqa, evaluation_mode=mode)
        (result,) = played(env, task, [call("submit_answer", answer=answer)])
        return reward(result), result.rewards["correct"].reward, result.rewards["exact_match"].reward

    assert paid("exact", "It is Port Lume", 0) == (0.0, 0.0, 0.0)  # the upstream pays 1.0
    assert paid("exact", "port lume.", 0) == (1.0, 1.0, 1.0)
    assert paid("contains", "It is Port Lume", 0) == (1.0, 1.0, 0.0)
    # as upstream: the gold answer "no" is contained in "I do not know"; the second signal tells
    assert paid("contains", "I do not know", 3) == (1.0, 1.0, 0.0)


def test_hotpotqa_options(make: Make, hotpotqa: str) -> None:
    env = make("hotpotqa", data_dir=hotpotqa, difficulty_level=["easy"], correct_reward=3, incorrect_reward=-2)
    assert len(env) == 2
    assert reward(played(env, 1, [call("submit_answer", answer="the Sarn")])[0]) == 3.0
    assert reward(played(env, 1, [call("submit_answer", answer="the Thames")])[0]) == -2.0


def test_disambiguation_pages_are_followed(make: Make, hotpotqa: str) -> None:
    env = make("hotpotqa", data_dir=hotpotqa)
    (result,) = played(env, 0, [call("search", entity="Mercury")])
    assert answers(result) == ["Mercury is the smallest planet in this list. It has no moons.."]


def test_pages_stay_with_their_environment(make: Make, hotpotqa: str) -> None:
    from aviary.envs.hotpotqa import HotPotQAEnv

    env = make("hotpotqa", data_dir=hotpotqa)
    played(env, 0, [call("search", entity="Ardenia")])
    assert HotPotQAEnv.wiki_cache == {}


def test_a_network_that_fails_is_no_wrong_answer(make: Make, hotpotqa: str) -> None:
    # the discard port of this machine: nobody answers there
    env = make("hotpotqa", data_dir=hotpotqa, online=True, proxy="http://127.0.0.1:9")
    state = begin(env, 0)
    assert env.step(state, call("search", entity="Ardenia")).rewards.total == 0.0  # from the file
    with pytest.raises(UpstreamFailed, match=r"aviary/hotpotqa: the upstream failed while stepping it"):
        env.step(state, call("search", entity="Nowhere"))


def test_pages_of_the_network_are_repeated_in_a_replay(make: Make, hotpotqa: str) -> None:
    """A page that the network gave is in the recipe, so another process shows it again."""
    from llenvs_aviary.pages import EpisodePages, PageLibrary

    library = PageLibrary({"A": "filed"}, online=True)
    pages = EpisodePages(library)
    with pytest.raises(KeyError):
        pages["B"]  # the upstream asks the network, then
    pages["B"] = "fetched"
    assert (pages["A"], pages["B"]) == ("filed", "fetched")
    heard = pages.heard()
    assert list(heard) == ["B"]
    again = EpisodePages(PageLibrary({"A": "filed"}, online=False))
    again.tell(heard)
    assert again["B"] == "fetched"
    assert EpisodePages(library)["B"] == "fetched"  # another episode need not ask again


def test_a_state_brings_its_pages_along(make: Make, hotpotqa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a network whose page is another one each time it is asked."""
    import httpx
    from aviary.envs.hotpotqa import env as upstream

    asked = []

    async def fetch(client: Any, url: str, **kwargs: Any) -> httpx.Response:
        asked.append(url)
        page = (
            f"<p>Version {len(asked)} of the page is here. It is long enough.</p><p>Line two of {len(asked)}.</p>"
        )
        return httpx.Response(200, text=page, request=httpx.Request("GET", url))

    monkeypatch.setattr(upstream, "fetch_with_retry", fetch)
    first = make("hotpotqa", data_dir=hotpotqa, online=True)
    searched = first.step(begin(first, 0), call("search", entity="A B"))
    assert answers(searched)[0].startswith("Version 1 of the page is here.")
    assert asked == ["https://en.wikipedia.org/w/index.php?search=A+B"]
    looked = first.step(searched.next_state, call("lookup", keyword="line two"))
    assert answers(looked) == ["(Result 1 / 1) Line two of 1."]

    second = make("hotpotqa", data_dir=hotpotqa, online=True)
    other = second.step(begin(second, 0), call("search", entity="A B"))
    assert answers(other)[0].startswith("Version 2 of the page is here.")
    there = State.from_json(searched.next_state.to_json())
    assert answers(second.step(there, call("lookup", keyword="line two"))) == ["(Result 1 / 1) Line two of 1."]
    again = second.step(second.step(there, call("lookup", keyword="x")).next_state, call("search", entity="A B"))
    assert answers(again)[0].startswith("Version 1 of the page is here.")
    assert len(asked) == 2


def test_answers_in_text_for_models_without_tools(make: Make, gsm8k: str) -> None:
    env = make("gsm8k", data_dir=gsm8k, answer_extractor="tag_based")
    state = begin(env, 0)
    result = env.step(state, Action("9 * 2 = 18, so <answer>18</answer>"))
    assert (reward(result), result.terminated) == (1.0, True)
    assert result.resolved_action is not None
    assert result.resolved_action.tool_calls[0].arguments == {"answer": "18"}
    assert not env.step(state, Action("I do not know yet.")).done
    plain = make("gsm8k", data_dir=gsm8k)
    assert not plain.step(begin(plain, 0), Action("<answer>18</answer>")).done


def test_truncation_is_not_termination(make: Make, gsm8k: str) -> None:
    env = make("gsm8k", data_dir=gsm8k, max_steps=2)
    results = played(env, 0, [call("calculator", expr="1+1")] * 2)
    assert (results[1].terminated, results[1].truncated) == (False, True)
    assert (results[1].rewards["correct"].reward, results[1].rewards["submitted"].reward) == (0.0, 0.0)


def test_tool_use_is_reported_and_can_be_paid(make: Make, gsm8k: str) -> None:
    env = make("gsm8k", data_dir=gsm8k, extra_rewards=[{"type": "tool_validity", "weight": 0.5}])
    actions = [call("calculator", expression="1"), call("submit_answer", answer="18")]
    last = played(env, 0, actions)[-1]
    assert (last.rewards["tool_validity"].reward, last.rewards.total) == (0.5, 1.25)


def test_wrong_data_is_named(make: Make, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"data_dir: holds no test.jsonl"):
        make("gsm8k", data_dir=str(tmp_path))
    (tmp_path / "test.jsonl").write_text('{"question": "1+1?", "answer": "two"}\n')
    with pytest.raises(UpstreamFailed, match=r"Failed to extract numerical answer"):
        make("gsm8k", data_dir=str(tmp_path))
    with pytest.raises(InvalidOption, match=r"questions.jsonl cannot be read"):
        make("hotpotqa", data_dir=str(tmp_path))
    row = {"id": "1", "question": "?", "answer": "!"}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row))
    with pytest.raises(InvalidOption, match=r"line 1 of questions.jsonl: id must be a text of 24 hexadecimal"):
        make("hotpotqa", data_dir=str(tmp_path))
    (tmp_path / "questions.jsonl").write_text(json.dumps({**row, "id": "0" * 24}))
    with pytest.raises(InvalidOption, match=r"online: leaves nothing to search in"):
        make("hotpotqa", data_dir=str(tmp_path), online=False)
    (tmp_path / "wiki_cache.json").write_text("[]")
    with pytest.raises(InvalidOption, match=r"pages: holds no pages"):
        make("hotpotqa", data_dir=str(tmp_path))


def test_names_and_options_are_checked(make: Make) -> None:
    with pytest.raises(UnknownEnvironment, match=r"did you mean 'gsm8k'"):
        make("gsm8")
    with pytest.raises(UnknownOption, match=r"did you mean 'end_immediately'"):
        make("dummy", end_immediatly=True)
    with pytest.raises(InvalidOption, match=r"split"):
        make("gsm8k", split="validation")
    with pytest.raises(InvalidOption, match=r"server_url: is no address"):
        make("remote", server_url="localhost:1")


def test_importing_the_adapter_does_not_import_the_upstream() -> None:
    code = (
        "import sys, llenvs, llenvs_aviary\n"
        "names = [e.name for e in llenvs_aviary.ADAPTER.list_environments()]\n"
        "llenvs_aviary.ADAPTER.describe('gsm8k')\n"
        "assert 'litqa2' in names and 'labbench' in names, names\n"
        "bad = {m.partition('.')[0] for m in sys.modules} & {'aviary', 'datasets', 'pandas', 'httpx', 'numpy'}\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_nothing_is_printed(gsm8k: str, tmp_path: Path) -> None:
    code = (
        "import llenvs, os\n"
        "from llenvs import Action\n"
        f"env = llenvs.make('aviary/gsm8k', data_dir={gsm8k!r}, size=3)\n"
        "state, _ = env.reset(options={'task_index': 0})\n"
        "env.step(state, Action.from_tool_call('calculator', {'expr': '1/0'}))\n"
        "env = llenvs.make('aviary/dummy')\n"
        "state, _ = env.reset()\n"
        "env.step(state, Action.from_tool_call('cast_float', {'x': 'abc'}))\n"
        "env.close()\n"
        "assert os.listdir() == [], os.listdir()\n"
        "import logging; assert not logging.getLogger().handlers\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("name", "extra"), [("litqa2", "labbench"), ("labbench", "labbench"), ("lfrqa", "lfrqa")])
def test_what_the_environments_over_papers_need(name: str, extra: str) -> None:
    from importlib.util import find_spec

    from llenvs.core.errors import NotInstalled

    if find_spec(f"aviary.envs.{extra}") is not None:
        pytest.skip("the upstream's part is installed here")
    with pytest.raises(NotInstalled) as caught:
        llenvs.make(f"aviary/{name}")
    said = str(caught.value)
    assert f'run: pip install "llenvs-aviary[{extra}]"' in said
    assert "OPENAI_API_KEY" in said


def test_describe_says_what_is_needed() -> None:
    from llenvs_aviary import ADAPTER

    description: Any = ADAPTER.describe("tableqa2")
    assert "gated" in description.info.metadata["needs"]
    assert [option.name for option in description.options if option.name == "dataset_options"]
