"""Loads the evaluation files in this folder for lm-eval, from any working directory.

It is a `custom_dataset` by its path, whether or not hybridwatch is installed, and needs only
`datasets`, which lm-eval brings.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict


def _load(name: str, **_options: Any) -> DatasetDict:
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    return DatasetDict(test=Dataset.from_list([json.loads(line) for line in lines]))


load_recall = partial(_load, "recall.jsonl")
load_shared_recall = partial(_load, "shared_recall.jsonl")
load_block_end_recall = partial(_load, "block_end_recall.jsonl")
load_word_problems = partial(_load, "word_problems.jsonl")
load_state_recall = partial(_load, "state_recall.jsonl")
