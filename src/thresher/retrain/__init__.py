"""Values by retraining a model for every coalition: what users compare with."""
