"""The comparison of an engine that speculates with a plain one; engines are in tests/engine."""

import json

import pytest
from hybridwatch_engine_lab.studies.lossless import main


def test_kept_answers_to_other_requests_are_refused(tmp_path):
    kept = tmp_path / "said"
    asked = {"model": "tiny", "requests": 40, "seed": 0}
    kept.write_text(json.dumps({"asked": asked, "tokens": []}))
    with pytest.raises(SystemExit, match=r"said: asked: expected .*'requests': 41.*'requests': 40"):
        main(["tiny", "--requests", "41", "--plain", str(kept)])
