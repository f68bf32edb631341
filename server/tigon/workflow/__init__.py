"""The workflow: tasks and their states, profiles, reviews, gates, reports."""
