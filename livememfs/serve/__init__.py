"""What is served to programs and browsers: MCP, the live page, and who may use them."""
