"""What values say about each row: findings, advice, and rows to look at."""
