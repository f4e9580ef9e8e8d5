"""Keys of a GROUP BY: tests that separate the declared ones from others, and partition selection."""
