"""Files of other tools: ``read`` brings them into our types, ``write`` makes them of ours."""
