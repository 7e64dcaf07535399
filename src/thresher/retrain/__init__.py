"""Values by retraining a model for every coalition, for comparison with other methods."""
