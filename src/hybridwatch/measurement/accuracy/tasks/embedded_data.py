"""Loads the evaluation files in this folder for lm-eval, from any working directory.

It is a `custom_dataset` by its path, whether or not hybridwatch is installed, and needs only
`datasets`, which lm-eval brings.
"""

import json
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict


def load_recall(**_options: Any) -> DatasetDict:
    """Return the recall task's documents as the split `test`."""
    return _load("recall.jsonl")


def load_shared_recall(**_options: Any) -> DatasetDict:
    """Return the documents of recall over shared listings as the split `test`."""
    return _load("shared_recall.jsonl")


def load_block_end_recall(**_options: Any) -> DatasetDict:
    """Return the documents of recall at the end of a block as the split `test`."""
    return _load("block_end_recall.jsonl")


def load_word_problems(**_options: Any) -> DatasetDict:
    """Return the word problems as the split `test`."""
    return _load("word_problems.jsonl")


def load_state_recall(**_options: Any) -> DatasetDict:
    """Return the documents of recall from a state as the split `test`."""
    return _load("state_recall.jsonl")


def _load(name: str) -> DatasetDict:
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    return DatasetDict(test=Dataset.from_list([json.loads(line) for line in lines]))
