"""Keys of a GROUP BY: conditions that tell the declared ones from others, and partition selection."""
