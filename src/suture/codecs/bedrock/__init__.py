"""Amazon Bedrock's Converse, from and into native messages."""

from suture.codecs.bedrock._codec import BedrockCodec

__all__ = ["BedrockCodec"]
