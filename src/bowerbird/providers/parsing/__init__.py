"""Reading what agents answer: JSON, code blocks, fields and tidied text out of any string (PR-34 … PR-38).

Pure: no function here keeps anything, none raises for any text, and each takes time in proportion to it.
Must not be here: anything that knows an agent.
"""

from bowerbird.providers.parsing.cleaning import clean_response
from bowerbird.providers.parsing.code_blocks import CodeBlock, first_code_block, parse_code_blocks
from bowerbird.providers.parsing.fields import (
    between,
    parse_key_values,
    parse_structured_output,
    split_keep,
    xml_tag,
)
from bowerbird.providers.parsing.json_values import ParsedJson, parse_json, parse_json_all

__all__ = [
    "CodeBlock",
    "ParsedJson",
    "between",
    "clean_response",
    "first_code_block",
    "parse_code_blocks",
    "parse_json",
    "parse_json_all",
    "parse_key_values",
    "parse_structured_output",
    "split_keep",
    "xml_tag",
]
