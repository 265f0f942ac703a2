"""Playing: a person in the place of the model."""
