"""From values of owners to whole cents: `shares` divides, `statement` is what owners are told."""
