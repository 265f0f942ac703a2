"""The plain HTTP routes: what curl and other languages have."""

import json
import re
from collections.abc import Iterator

import pytest
from life import eventually
from probing import Server, here, serving

from llenvs import Action, State
from llenvs.core.encoding import decode


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(ballast=10) as running:
        yield running


def test_health_and_description(server):
    assert server.ask("GET", "/health") == (200, {"status": "ok"})
    status, spec = server.ask("GET", "/spec")
    assert status == 200
    assert decode(spec["spec"]) == here().spec
    assert spec["num_tasks"] == 5
    assert server.ask("GET", "/length") == (200, {"length": 5})
    assert server.ask("GET", "/tools")[1]["tools"][0]["name"] == "say"


def test_an_episode(server):
    status, reset = server.ask("POST", "/reset", {"options": {"task_index": 2}})
    assert status == 200
    assert decode(reset["state"]) == here(ballast=10).reset(options={"task_index": 2})[0]
    by_key = server.ask("POST", "/step", {"key": reset["key"], "action": "14"})
    by_state = server.ask("POST", "/step", {"state": reset["state"], "action": {"text": "14"}})
    assert by_key[0] == by_state[0] == 200
    assert by_state[1].pop("state_key") == reset["key"]
    assert by_key == by_state
    assert by_key[1]["terminated"] is True
    assert by_key[1]["key"] is None
    assert decode(by_key[1]["rewards"])["found"].reward == 1.0
    body = {"key": reset["key"], "action": "14", "next_state": by_key[1]["next_state"]}
    assert server.ask("POST", "/compute_rewards", body)[1]["rewards"] == by_key[1]["rewards"]


def test_plain_tool_calls(server):
    _, reset = server.ask("POST", "/reset", {"options": {"task_index": 2}})
    action = {"text": "", "tool_calls": [{"name": "say", "arguments": {"words": "hi"}, "id": "c1"}]}
    _, step = server.ask("POST", "/step", {"key": reset["key"], "action": action})
    (result,) = decode(step["next_state"]).observation.tool_results
    assert (result.call_id, result.content) == ("c1", "hi")


def test_batches_hold_results_and_errors(server):
    _, reset = server.ask("POST", "/reset", {"options": {"task_index": 1}})
    steps = [{"key": reset["key"], "action": text} for text in ("1", "raise it", "7")]
    status, batch = server.ask("POST", "/step_batch", {"steps": [*steps, {"key": "0" * 32, "action": "1"}]})
    assert status == 200
    kinds = [next(iter(result)) for result in batch["results"]]
    assert kinds == ["ok", "error", "ok", "error"]
    assert batch["results"][2]["ok"]["terminated"]
    assert batch["results"][1]["error"]["type"] == "UpstreamFailed"
    assert batch["results"][3]["error"]["type"] == "StateMissing"
    assert server.ask("POST", "/step_batch", {"steps": []}) == (200, {"results": []})
    many = {"steps": [{"key": reset["key"], "action": str(i)} for i in range(3000)]}
    results = server.ask("POST", "/step_batch", many)[1]["results"]
    assert [i for i, result in enumerate(results) if result["ok"]["terminated"]] == [7]


def test_pages_of_tasks(server):
    status, page = server.ask("GET", "/tasks?offset=3&limit=10")
    assert status == 200
    assert [task["task_index"] for task in page["tasks"]] == [3, 4]
    assert page["total"] == 5
    assert "hidden" not in json.dumps(page)
    assert server.ask("GET", "/tasks?limit=1000")[0] == 400
    assert server.ask("GET", "/tasks?ofset=1")[1]["error"]["message"].count("did you mean 'offset'") == 1


@pytest.mark.parametrize(
    ("path", "body", "status", "kind"),
    [
        ("/reset", {"options": {"task_index": 77}}, 422, "TaskIndexOutOfRange"),
        ("/reset", {"optins": {}}, 400, "RequestRefused"),
        ("/step", {"key": "0" * 32, "action": "1"}, 409, "StateMissing"),
        ("/step", {"action": "1"}, 400, "RequestRefused"),
        ("/step", {"key": 7, "action": "1"}, 400, "RequestRefused"),
        ("/step", {"state": {"$State": 1}, "action": "1"}, 422, "EncodingFailed"),
        ("/step", {"state": [1, 2], "action": "1"}, 422, "EncodingFailed"),
        ("/step", [], 400, "RequestRefused"),
    ],
)
def test_status_codes(server, path, body, status, kind):
    answered, answer = server.ask("POST", path, body)
    assert (answered, answer["error"]["type"]) == (status, kind)


def test_the_upstreams_failure_is_a_500(server):
    _, reset = server.ask("POST", "/reset", {"options": {"task_index": 1}})
    status, answer = server.ask("POST", "/step", {"key": reset["key"], "action": "raise x"})
    assert (status, answer["error"]["type"]) == (500, "UpstreamFailed")
    assert "Traceback" in server.log.read_text()


def test_unknown_paths_and_methods(server):
    assert server.ask("GET", "/nothing")[0] == 404
    assert server.ask("GET", "/step")[0] == 405
    assert server.ask("GET", "/channel")[0] == 404


def test_the_description_fits_what_is_served(server):
    status, document = server.ask("GET", "/openapi.json")
    assert status == 200
    assert document["openapi"].startswith("3.1")
    for path, methods in document["paths"].items():
        for method in methods:
            assert server.ask(method.upper(), path, {} if method == "post" else None)[0] not in (404, 405), path
    schema = document["components"]["schemas"]["StepRequest"]
    assert set(schema["properties"]) == {"state", "key", "action", "share_hidden"}
    assert schema["additionalProperties"] is False
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert references <= set(document["components"]["schemas"])


def test_metrics_count(server):
    def count() -> int:
        text = server.ask("GET", "/metrics")[1]
        (line,) = re.findall(r'llenvs_requests_total\{operation="reset",outcome="ok"\} (\d+)', text)
        return int(line)

    server.ask("POST", "/reset", {})
    before = count()
    server.ask("POST", "/reset", {})
    assert count() == before + 1
    text = server.ask("GET", "/metrics")[1]
    assert re.search(r'request_duration_seconds_bucket\{operation="reset",le="\+Inf"\} [1-9]', text)
    for line in text.splitlines():
        assert line.startswith("#") or re.fullmatch(r"llenvs_\w+(\{[^}]*\})? [0-9.e+-]+", line)


def test_a_blocked_environment_does_not_block_health():
    with serving("--threads", "2", "--queue", "2", "--timeout", "4.0") as server:
        _, reset = server.ask("POST", "/reset", {"options": {"task_index": 1}})
        body = json.dumps({"key": reset["key"], "action": "sleep 8"})
        connections = [server.connection() for _ in range(6)]
        for number, connection in enumerate(connections):
            connection.request("POST", "/step", body)
            busy, waiting = min(number + 1, 2), min(max(number - 1, 0), 2)
            eventually(
                lambda busy=busy, waiting=waiting: (
                    gauge(server, "threads_busy") == busy and gauge(server, "queue_length") == waiting
                ),
                "the request was taken in",
            )
        assert server.ask("GET", "/health")[0] == 200
        # two run and two wait until they are given up on; for the last two the queue has no room
        assert [connection.getresponse().status for connection in connections] == [504, 504, 504, 504, 429, 429]
        for connection in connections:
            connection.close()


def gauge(server: Server, name: str) -> int:
    (value,) = re.findall(rf"^llenvs_{name} (\d+)", server.ask("GET", "/metrics")[1], re.MULTILINE)
    return int(value)


def test_a_state_from_here_is_stepped_there(server):
    state, _ = here(ballast=10).reset(options={"task_index": 2})
    body = {"state": json.loads(state.to_json()), "action": "14"}
    answer = server.ask("POST", "/step", body)[1]
    assert State.from_json(json.dumps(answer["next_state"])) == here().step(state, Action("14")).next_state
