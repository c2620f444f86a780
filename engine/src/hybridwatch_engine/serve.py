"""``python -m hybridwatch_engine.serve``: vLLM's API server, kept off the network from the start.

The ranks of a data-parallel engine meet before vLLM loads any plugin, so the plugin would come too
late to keep their meeting on the loopback address, and to choose the model runner. Processes that
are spawned import this module first, as the main module of their parent.
"""

import runpy
import sys

from hybridwatch_engine.early import end_with_parent, interval_arguments, prepare
from hybridwatch_engine.source import installed_tree

prepare()

if __name__ == "__main__":
    sys.argv += interval_arguments(installed_tree())
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__")
elif __name__ == "__mp_main__":
    end_with_parent()
