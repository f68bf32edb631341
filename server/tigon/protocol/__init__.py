"""MCP: tools, questions to the human, resources, prompts. No rule of the workflow lives here."""
