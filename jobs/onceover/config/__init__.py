"""What an operator wrote: pipelines' TOML files, the environment, addresses and secrets."""
