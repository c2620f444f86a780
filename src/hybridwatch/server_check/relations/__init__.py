"""What must hold for every right engine: one function a relation, each asked once a round."""
