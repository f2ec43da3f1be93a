"""Commands about MCP: servers that agents use, signing in at them, and Bowerbird as one."""
