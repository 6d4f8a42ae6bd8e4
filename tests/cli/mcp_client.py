"""The official client of the Model Context Protocol (the package `mcp`) against `tilepilot mcp`, in both of its modes.

usage: mcp_client.py TILEPILOT TESTS_CLI STORE
Prints a line for each thing that held; ends with 1 at the first that does not.
"""

import asyncio
import sys
from pathlib import Path

import mcp
from mcp import Client, StdioServerParameters

TILEPILOT, TESTS, STORE = sys.argv[1:4]
MODEL = str(Path(TESTS) / "models/matmul.py")
ENDLESS = str(Path(TESTS) / "models/fail_endless_import.py")
GOOD = str(Path(TESTS) / "candidates/good_matmul.py")
WRONG = Path(TESTS) / "candidates/fail_unknown_name.py"


def expect(held, what):
    if not held:
        sys.exit(f"does not hold: {what}")
    print("holds:", what)


def text_of(result):
    return "".join(part.text for part in result.content)


async def use(mode):
    server = StdioServerParameters(command=TILEPILOT, args=["mcp", "--target", "cpu", "--store", STORE])
    async with Client(server, mode=mode) as client:
        # Once tools are listed, the client holds each result against its `outputSchema`.
        tools = (await client.list_tools()).tools
        expect([tool.name for tool in tools][:3] == ["generate", "check", "compile"], f"{mode}: tools are listed")
        told = await client.call_tool("language", {"construct": "T.gemm"})
        expect("`T.gemm(" in text_of(told), f"{mode}: the language is told")
        arguments = {"program_source": WRONG.read_text(), "call": "matmul(64, 64, 64)"}
        compiled = await client.call_tool("compile", arguments)
        expect(not compiled.is_error and "program.py:" in text_of(compiled), f"{mode}: errors have lines")
        expect(compiled.structured_content["errors"][0]["line"] > 0, f"{mode}: also in the structured result")
        refused = await client.call_tool("check", {"program": GOOD})
        expect(refused.is_error and "`model`" in text_of(refused), f"{mode}: wrong arguments are told")
        cards = (await client.list_resources()).resources
        read = await client.read_resource(cards[0].uri)
        expect("T.copy" in read.contents[0].text, f"{mode}: resources are read")

        progress = []

        async def on_progress(count, total, message):
            progress.append(message)

        judged = await client.call_tool(
            "check", {"program": GOOD, "model": MODEL, "no_timing": True}, progress_callback=on_progress
        )
        expect(judged.structured_content["outcome"] == "verified", f"{mode}: a program is verified")
        expect(any("judging" in message for message in progress), f"{mode}: progress is told")
        try:
            await asyncio.wait_for(client.call_tool("check", {"program": GOOD, "model": ENDLESS}), 2)
            expect(False, f"{mode}: an endless call goes on")
        except asyncio.TimeoutError:
            pass
        told = await client.call_tool("language", {"construct": "T.copy"})
        expect("T.copy" in text_of(told), f"{mode}: calls are cancelled, and others answered")


async def main():
    for mode in ["auto", "legacy"]:
        await use(mode)


asyncio.run(main())
print("done")
