"""What users pass in, checked and made into arrays."""
