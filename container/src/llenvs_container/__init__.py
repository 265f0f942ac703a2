"""The server of isolated environments: one environment, no sessions, over HTTP and WebSocket."""
