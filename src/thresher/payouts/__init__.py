"""From values of owners to whole cents: `shares` divides, and `statement` says who is paid what."""
