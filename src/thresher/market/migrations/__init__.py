"""The forms that the tables had, one after another."""
