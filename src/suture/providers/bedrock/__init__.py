"""Amazon Bedrock's Converse, from and into native messages."""
