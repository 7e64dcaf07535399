"""A market that pays for data without revealing it: `thresher serve`."""
