"""Hands the evaluation file of state recall to lm-eval, from whatever directory it is run.

Like `embedded_data` next to it: lm-eval loads it by its path, so it needs only `datasets`.
"""

import json
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict


def load(**_options: Any) -> DatasetDict:
    """Return the task's documents as the split `test`."""
    path = Path(__file__).with_name("state_recall.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines()
    return DatasetDict(test=Dataset.from_list([json.loads(line) for line in lines]))
