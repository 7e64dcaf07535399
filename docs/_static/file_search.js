// Search excerpts are fetched from other pages, which browsers forbid for a site opened from disk.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
