"""Many measurements: searches (``bisect``), many hosts (``fleet``), nights (``nightly``)."""
