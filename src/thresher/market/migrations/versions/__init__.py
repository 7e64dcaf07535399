"""A module for each form."""
