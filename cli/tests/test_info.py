import json


def test_options_spec_and_a_sample_prompt(quick):
    done = quick("info", "toy/sums")
    assert done.returncode == 0, done.stderr
    assert "  size: int = 10\n      Number of tasks.\n" in done.stdout
    assert "answer_extractor: Any = 'tag_based'" in done.stdout
    assert "success           score >= 1" in done.stdout
    assert "tag_based: What stands in the last complete pair of tags" in done.stdout
    assert "What is 0 + 1?" in done.stdout


def test_options_and_task_index_choose_the_sample(quick):
    done = quick("info", "toy/sums", "-o", "size=25", "--task-index", "20")
    assert "What is 20 + 1?" in done.stdout
    assert "tasks             25" in done.stdout


def test_tools_and_images_of_the_first_observation(quick):
    shown = quick("info", "toy/lock").stdout
    assert "--- user ---\nOpen the lock.\n\nThe lock is at 0.\n[image image/png, 5 bytes]" in shown
    assert "turn(to: integer, note?: string)  Turn the dial." in shown
    assert "several, at most 6" in shown


def test_json_holds_what_the_text_shows(quick):
    value = json.loads(quick("info", "toy/lock", "--json").stdout)
    assert value["id"] == "toy/lock"
    assert value["num_tasks"] == 3
    assert value["spec"]["max_steps"] == 6
    assert value["spec"]["success_signal"] == "open"
    assert value["sample"]["messages"] == [
        {"role": "user", "content": "Open the lock.\n\nThe lock is at 0.", "images": 1}
    ]
    assert value["sample"]["tools"][0]["function"]["name"] == "turn"
    option = next(each for each in value["options"] if each["name"] == "extra_rewards")
    assert option["default"] == "None"


def test_an_environment_that_needs_options_is_described_without_them(quick):
    done = quick("info", "toy/from_file")
    assert done.returncode == 0
    assert "path: str, required\n      The file with the tasks." in done.stdout
    assert "No sample prompt" in done.stdout
    value = json.loads(quick("info", "toy/from_file", "--json").stdout)
    assert value["sample"] is None
    assert "path" in value["error"]


def test_a_backend_and_its_options(quick):
    done = quick("info", "scripted")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("scripted\nAnswers by script.\n")
    assert "  latency: float = 0.0\n      seconds to wait before each answer.\n" in done.stdout
    assert "In a configuration: model: {backend: scripted, ...}" in done.stdout
    value = json.loads(quick("info", "scripted", "--json").stdout)
    assert [option["name"] for option in value["options"]][-2:] == ["budget", "cache"]


def test_errors_are_one_sentence(quick):
    cases = {
        ("toy/summs",): "unknown environment 'summs'; did you mean 'sums'",
        ("toy/sums", "-o", "sizee=3"): "unknown option 'sizee'; did you mean 'size'? (options of toy/sums)",
        ("toy/sums", "-o", "size=none"): "toy/sums: size: input should be a valid integer",
        ("toy/sums", "-o", "size"): "-o: is not of the form KEY=VALUE, got 'size'",
        ("toy/sums", "-o", "size=[1"): "-o size: is no YAML",
        ("toy/sums", "--task-index", "10"): "toy/sums: task_index 10 is out of range; valid: 0 to 9",
        ("toy/from_file", "-o", "path=tasks.json"): "toy/from_file: the upstream failed while reading the tasks",
        ("scripted", "-o", "latency=1"): "ADAPTER/NAME: is a backend, which -o and --task-index do not go with",
        ("toy",): "ADAPTER/NAME: is an adapter, not an environment, got 'toy'; valid: those of: llenvs list toy",
    }
    for arguments, said in cases.items():
        done = quick("info", *arguments)
        assert done.returncode == 2, arguments
        assert done.stderr.startswith(f"Error: {said}"), done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""


def test_hostile_text_is_spelled_out(quick):
    done = quick("info", "toy/hostile")
    assert "\\x1b[2J\\x1b]0;owned\\x07[bold red]not markup[/] [/oops] :smile:" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
