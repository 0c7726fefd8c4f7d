"""usage: assistant.py URL MODE END

The official client for Python calls each tool once and prints the answers as JSON. MODE: auto or legacy.
"""
import asyncio
import json
import sys

from mcp import Client

URL, MODE, END = sys.argv[1:4]
CPU = {"profiles": 'cpu{__service__="shop"}', "window": "20m", "end": END}
CALLS = [
    ("services", {"window": "20m", "end": END}),
    ("top", CPU),
    ("tree", CPU),
    ("function", {**CPU, "function": "main.scoreItems"}),
    ("compare", CPU),
    ("query", {"query": "topk(2, flat(merge(cpu)))", "window": "20m", "end": END}),
    ("query", {"query": "sum(cpu", "mode": "validate"}),
    ("help", {}),
]


async def main():
    async with Client(URL, mode=MODE) as client:
        tools = await client.list_tools()
        answers = []
        for name, arguments in CALLS:
            result = await client.call_tool(name, arguments)
            answers.append({"name": name, "text": result.content[0].text, "isError": result.is_error,
                            "structured": result.structured_content})
        print(json.dumps({"version": client.protocol_version, "tools": [t.name for t in tools.tools], "answers": answers}))


asyncio.run(main())
