"""The demo corpus: messages to the help desk of a made-up bike-share, with their true intents."""
