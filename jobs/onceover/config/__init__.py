"""The operator's settings: pipelines' TOML files, the environment, addresses and secrets."""
