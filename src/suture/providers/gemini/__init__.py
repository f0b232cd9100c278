"""Google's Gemini, generateContent: requests, replies and streams from and into native values."""
