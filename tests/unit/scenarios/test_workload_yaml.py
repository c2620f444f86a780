"""Workloads of vLLM's perf-eval as scenarios: what is carried over, and what is named instead."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from hybridwatch.cli.scenarios import scenarios_command as command
from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.scenarios.workload_yaml import Carried, parse_scenarios
from tests.command_line import run_verb

LAB = Path(__file__).parents[2] / "fixtures" / "perf-eval" / "lab.yaml"


def changed(tmp_path: Path, **keys: object) -> Path:
    """The workload with other values at the top, ``vllm__x`` a level below."""
    content = yaml.safe_load(LAB.read_text())
    for key, value in keys.items():
        table, _, inner = key.partition("__")
        if inner:
            content[table] = {**content[table], inner: value}
        else:
            content[table] = value
    path = tmp_path / "changed.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def served(tmp_path: Path, arguments: str) -> Carried:
    return parse_scenarios(changed(tmp_path, vllm__serve_args=arguments))


def config(**keys: object) -> dict[str, object]:
    plain = {"name": "x", "input_len": 8, "output_len": 4, "num_prompts": 4, "max_concurrency": 2}
    return {"configs": [{**plain, **keys}]}


def test_each_load_becomes_a_scenario() -> None:
    files = parse_scenarios(LAB).files
    assert [one.scenario.id for one in files] == [
        "tiny-lab-h100/1k-in-128-out-conc-1",
        "tiny-lab-h100/1k-in-128-out-conc-128",
    ]
    one, many = (file.scenario.workload.generation for file in files)
    assert (one.prompts, one.input_tokens, one.output_tokens, one.max_concurrency) == (
        16, 1024, 128, 1,
    )  # fmt: skip
    assert (many.prompts, many.max_concurrency) == (512, 128)
    scenario = files[1].scenario
    assert (scenario.model, scenario.accelerator, scenario.trials.performance) == (
        "lab/tiny-hybrid", "cuda", 7,
    )  # fmt: skip
    assert scenario.is_of_speed_alone


def test_arguments_of_the_server_are_keys_of_the_engine() -> None:
    engine = parse_scenarios(LAB).files[0].scenario.engine
    assert (engine.data_parallel_size, engine.max_model_len, engine.max_num_seqs) == (2, 4096, 8)
    assert (engine.enable_prefix_caching, engine.mamba_cache_mode) == (False, "align")
    assert engine.speculation is not None
    assert (engine.speculation.method, engine.speculation.drafts) == ("mtp", 2)


def test_what_cannot_be_carried_over_is_named_key_by_key() -> None:
    notes = parse_scenarios(LAB).notes
    named = [note.split(": not carried over")[0] for note in notes if "not carried over" in note]
    assert named == [
        "gpu",
        "num_gpus",
        "timeout_in_minutes",
        "lm_eval.tasks",
        "vllm.image",
        "vllm.env.LAB_SWITCH",
        "vllm_bench.configs[0].args.num_warmups",
        "vllm.serve_args --tensor-parallel-size 2",
        "vllm.serve_args --block-size 33333333",
        "vllm.serve_args --trust-remote-code",
        "vllm.serve_args --speculative_config.disable_by_batch_size",
        "vllm_bench.configs[1]",
    ]
    others = [note for note in notes if "not carried over" not in note]
    assert others == [
        "vllm_bench.configs[0].repetitions: 7 for 3, the fewest that tell",
        "engine.dtype: bfloat16, since the workload leaves it to vLLM",
        "engine.cudagraph_mode: as vLLM chooses it, captured at powers of two",
        "engine.max_num_seqs: 64, so that the whole load is in a batch",
    ]


def test_every_word_of_the_file_is_carried_over_or_named(tmp_path) -> None:
    content = yaml.safe_load(LAB.read_text())
    words = [word for word in content["vllm"]["serve_args"].split() if word.startswith("-")]
    carried = parse_scenarios(LAB)
    kept = carried.files[1].text
    fields = {"dp": "data_parallel_size", "no-enable-prefix-caching": "enable_prefix_caching"}
    fields |= {"speculative-config.method": "speculation"}
    fields |= {"speculative_config.num_speculative_tokens": "speculation"}
    for word in words:
        name = word.lstrip("-").partition("=")[0]
        field = fields.get(name, name.replace("-", "_"))
        assert f"{field} = " in kept or any(f"--{name}" in note for note in carried.notes), name


def test_speculation_may_be_one_table(tmp_path) -> None:
    text = '--speculative-config {"method":"ngram","num_speculative_tokens":3,"prompt":1}'
    carried = served(tmp_path, text)
    speculation = carried.files[0].scenario.engine.speculation
    assert speculation is not None
    assert (speculation.method, speculation.drafts) == ("ngram", 3)
    assert "vllm.serve_args --speculative_config.prompt: not carried over" in "\n".join(
        carried.notes
    )


@pytest.mark.parametrize("value", ['{"method":"dspark","num_speculative_tokens":3}', "[1]", "{x"])
def test_speculation_that_no_scenario_has_is_named(tmp_path, value) -> None:
    carried = served(tmp_path, f"--speculative-config {value}")
    assert carried.files[0].scenario.engine.speculation is None
    assert "--speculative_config" in "\n".join(carried.notes)


def test_what_is_left_to_vllm_is_set_and_said(tmp_path) -> None:
    carried = served(tmp_path, "--max-model-len auto --dtype auto --async-scheduling")
    engine = carried.files[1].scenario.engine
    assert (engine.max_model_len, engine.max_num_seqs, engine.dtype) == (1152, 128, "bfloat16")
    assert engine.async_scheduling is True
    assert "engine.max_model_len: 1152, a prompt and its answer" in carried.notes


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ({"vllm": {}}, "vllm.model: missing; expected a text"),
        ({"name": 3}, "name: expected a text, found 3"),
        ({"vllm_bench": config(input_len="8")}, "vllm_bench.configs[0].input_len: expected"),
        ({"vllm_bench": config(dataset="sonnet")}, "expected a load of random prompts, found none"),
        (
            {"vllm_bench": config(max_concurrency=[1, 2], num_prompts=[4])},
            "num_prompts: expected 2 numbers, one for each max_concurrency, found 1",
        ),
        (
            {"vllm_bench": config(max_concurrency=8)},
            "max_concurrency 8: workload.generation.prompts: expected at least max_concurrency (8)",
        ),
    ],
)
def test_a_workload_that_is_wrong_is_refused_by_its_key(tmp_path, keys, wanted) -> None:
    with pytest.raises(ScenarioError, match=r"changed\.yaml|config x") as caught:
        parse_scenarios(changed(tmp_path, **keys))
    assert wanted in str(caught.value)


@pytest.mark.parametrize("text", ["a: [", "!!python/object:os.system {}", "\x00", "- 1", ""])
def test_what_is_no_workload_is_refused(tmp_path, text) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=r"x\.yaml: "):
        parse_scenarios(path)


def call(*words: object, status: int | None = None) -> Result:
    return run_verb(*words, of=command, status=status)


def test_the_verb_writes_files_that_are_valid_and_says_the_rest(tmp_path) -> None:
    answer = call("--from", LAB, "--out", tmp_path / "scenarios", status=0)
    folder = tmp_path / "scenarios"
    written = sorted(folder.rglob("*.toml"))
    assert [load_scenario(path, folder) for path in written] == sorted(
        (one.scenario for one in parse_scenarios(LAB).files), key=lambda one: one.id
    )
    assert f"{LAB}: num_gpus: not carried over: an engine lies on one GPU" in answer.stdout
    assert "# num_gpus: not carried over" in written[0].read_text()
    again = call("--from", LAB, "--out", folder, "--json")
    told = json.loads(again.stdout)
    assert (len(told["written"]), told["notes"]) == (2, list(parse_scenarios(LAB).notes))


def test_the_verb_does_not_write_over_what_somebody_changed(tmp_path) -> None:
    call("--from", LAB, "--out", tmp_path)
    path = sorted(tmp_path.rglob("*.toml"))[1]
    path.write_text("# mine\n")
    answer = run_verb("--from", LAB, "--out", tmp_path, of=command)
    assert isinstance(answer.exception, ScenarioError)
    assert f"{path}: expected no other scenario of this name" in str(answer.exception)
    assert path.read_text() == "# mine\n"


def test_from_needs_a_folder(tmp_path) -> None:
    call("--from", LAB, status=2)
    call("--out", tmp_path, status=2)


def test_hostile_text_stays_a_comment(tmp_path) -> None:
    path = changed(tmp_path, nightly="x", **{'e"""vil\n[engine]\n\x1b[2J': 1})
    (file, *_) = parse_scenarios(path).files
    target = tmp_path / f"scenarios/{file.scenario.id}.toml"
    target.parent.mkdir(parents=True)
    target.write_text(file.text)
    assert load_scenario(target, tmp_path / "scenarios") == file.scenario
