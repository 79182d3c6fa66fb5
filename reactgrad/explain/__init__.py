"""Why, records, events, statistics, profiles, snapshots: they show and change nothing."""
