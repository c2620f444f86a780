"""``ENGINE_PYTHON transformers_server.py MODEL PORT``: transformers' own server, on the processor.

MODEL is a repository in the hub's cache, which ``HF_HOME`` names.
"""

import sys

from transformers.cli.serve import Serve
from transformers.cli.serving.model_manager import ModelManager

if __name__ == "__main__":
    # A device that is named asks for accelerate, which an engine's environment lacks.
    ModelManager.device = property(lambda _: None, lambda *_: None)
    Serve(force_model=sys.argv[1], device="cpu", host="127.0.0.1", port=int(sys.argv[2]))
