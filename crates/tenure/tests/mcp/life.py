"""The whole life of a task, seen by an independent client: the Python package `mcp`.

usage: life.py TENURE PROJECT stdio-modern|stdio-legacy|http [URL TOKEN]

Every answer of a tool is checked by the package against the schema that the tool declares, errors by this script.
"""

import asyncio
import json
import subprocess
import sys

import httpx2
import jsonschema
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation

tenure, project, way = sys.argv[1:4]
TOOLS = {
    "get_status", "list_tasks", "get_task", "add_task", "claim_next", "claim_task", "renew_lease", "release_task",
    "finish_task", "send_message", "read_inbox", "explain",
}


def cli(*words):
    done = subprocess.run([tenure, "--json", "-C", project, *words], capture_output=True, text=True)
    return json.loads(done.stdout)


def connect(name):
    info = Implementation(name=name, version="1.0")
    if way == "http":
        url, token = sys.argv[4:6]
        client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
        return Client(streamable_http_client(url, http_client=client), client_info=info, cache=None)
    server = StdioServerParameters(command=tenure, args=["mcp", "-C", project])
    mode = "legacy" if way == "stdio-legacy" else "auto"
    return Client(server, client_info=info, mode=mode, cache=None)


class Agent:
    """A connected client that expects success, or a certain error."""

    def __init__(self, client, tools):
        self.client = client
        self.schemas = {tool.name: tool.output_schema for tool in tools}

    async def call(self, tool, arguments=None, **more):
        result = await self.client.call_tool(tool, arguments or {}, **more)
        assert not result.is_error, (tool, result.content[0].text)
        assert result.content[0].text, tool
        return result.structured_content

    async def refused(self, code, tool, arguments=None, **more):
        result = await self.client.call_tool(tool, arguments or {}, **more)
        assert result.is_error, (tool, result.structured_content)
        jsonschema.validate(result.structured_content, self.schemas[tool])
        error = result.structured_content["error"]
        assert error["code"] == code, error
        assert result.content[0].text.startswith(code) or "lost" in result.structured_content, result.content[0].text
        return error, result.content[0].text


async def life():
    async with connect("ann's client") as one, connect("bob") as two:
        version = one.protocol_version
        assert one.instructions and len(one.instructions) < 2048
        tools = (await one.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        for tool in tools:
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
            assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
            assert tool.annotations.read_only_hint == (tool.name in {"get_status", "list_tasks", "get_task", "explain"})
        await two.list_tools()
        ann, bob = Agent(one, tools), Agent(two, tools)

        # Two clients are two holders, named after their programs.
        names = [(await agent.call("get_status"))["you"] for agent in (ann, bob)]
        assert names[0].startswith("ann-s-client-") and names[1].startswith("bob-"), names

        added = await ann.call("add_task", {"title": "Paint the shed", "description": "Red.", "labels": ["home"]})
        task = added["task"]["key"]
        await ann.call("add_task", {"title": "Buy a brush", "key": "BRUSH"})
        await ann.call("add_task", {"title": "Admire it", "key": "ADMIRE", "dependsOn": [task]})
        await ann.refused("NOT_READY", "claim_task", {"task": "ADMIRE"})

        # Claim, and be refused.
        grant = await ann.call("claim_task", {"task": task, "ttl": "30s"})
        fence = grant["lease"]["fence"]
        assert grant["lease"]["holder"]["id"] == names[0] and grant["lease"]["alive"] is True
        assert (await ann.call("claim_task", {"task": task}))["lease"]["reacquired"] is True
        error, text = await bob.refused("TASK_LOCKED", "claim_task", {"task": task})
        assert error["details"]["lockedBy"] == names[0] and error["details"]["expiresAt"].endswith("Z"), error
        assert names[0] in text and "claim_next" in text and "force" not in text, text
        await bob.refused("NOT_HOLDER", "renew_lease", {"task": task})
        await bob.refused("NOT_HOLDER", "finish_task", {"task": task, "fence": fence + 1000, "outcome": "done"})

        # Renew.
        renewed = await ann.call("renew_lease", {"task": task, "ttl": "45s"})
        assert renewed["lease"]["ttlMs"] == 45_000 and renewed["lease"]["fence"] == fence
        mine = await ann.call("list_tasks", {"mine": True})
        assert [row["key"] for row in mine["tasks"]] == [task] and mine["total"] == 1

        # Messages: at least once, until they are acknowledged.
        await bob.call("send_message", {"task": task, "message": "Mind the cat"})
        sent = await bob.call("send_message", {"to": names[0], "message": "Hello"})
        inbox = await ann.call("read_inbox")
        assert [m["text"] for m in inbox["messages"]] == ["Mind the cat", "Hello"], inbox
        inbox = await ann.call("read_inbox", {"acknowledge": [sent["message"]["id"]]})
        assert [m["text"] for m in inbox["messages"]] == ["Mind the cat"], inbox
        assert (await bob.call("read_inbox"))["messages"] == []

        # Lose it by force, and be told with whatever is called next.
        assert cli("locks", "release", task, "--force")["success"]
        told = None
        for _ in range(200):
            told = (await ann.call("list_tasks"))
            if "lost" in told:
                break
            await asyncio.sleep(0.05)
        assert told["lost"][0]["code"] == "LEASE_LOST" and told["lost"][0]["task"] == task, told
        assert "no longer hold" in told["lost"][0]["message"]
        assert "lost" not in await ann.call("list_tasks"), "told once"
        _, text = await ann.refused("LEASE_LOST", "finish_task", {"task": task, "fence": fence, "outcome": "done"})
        assert "no longer hold" in text

        # Wait in line, with news of it, and be served when it is let go.
        await bob.call("claim_task", {"task": task})
        heard = []

        async def progress(done, total, message):
            heard.append((done, total, message))

        waiting = asyncio.create_task(
            ann.call("claim_task", {"task": task, "waitSeconds": 60}, progress_callback=progress)
        )
        for _ in range(400):
            if heard:
                break
            await asyncio.sleep(0.05)
        assert heard and heard[0][1] == 60 and names[1] in heard[0][2], heard
        await bob.call("release_task", {"task": task, "message": "Too much red"})
        again = await waiting
        assert again["lease"]["fence"] > fence

        # Resources.
        assert [str(r.uri) for r in (await one.list_resources()).resources] == ["tenure://board"]
        assert len((await one.list_resource_templates()).resource_templates) == 3

        async def read(uri):
            return (await one.read_resource(uri)).contents[0].text

        board = json.loads(await read("tenure://board"))
        assert {row["key"] for row in board["tasks"]} == {task, "BRUSH", "ADMIRE"}
        page = json.loads(await read(f"tenure://task/{task}"))
        assert page["task"]["lease"]["holder"]["id"] == names[0] and page["events"]
        lease = json.loads(await read(f"tenure://lease/{again['lease']['leaseId']}"))["lease"]
        assert lease["fence"] == again["lease"]["fence"]
        for wrong in ("tenure://task/NOWHERE", "tenure://shop", f"tenure://log/{task}"):
            try:
                await read(wrong)
                raise AssertionError(wrong)
            except MCPError as error:
                assert error.error.message, wrong

        # Finish, twice with the same word.
        done = {"task": task, "fence": again["lease"]["fence"], "outcome": "done"}
        finished = await ann.call("finish_task", done)
        assert finished["task"]["status"] == "completed" and finished["changed"] is True
        assert (await ann.call("finish_task", done))["changed"] is False
        await ann.refused("NOT_HOLDER", "finish_task", {"task": "BRUSH", "fence": 1, "outcome": "done"})

        # The next ones, to the last.
        brush = await bob.call("claim_next")
        assert brush["task"]["key"] == "BRUSH"
        failing = {"task": "BRUSH", "fence": brush["lease"]["fence"], "outcome": "fail"}
        await bob.refused("INVALID_ARGUMENTS", "finish_task", failing)
        await bob.call("finish_task", {**failing, "message": "Sold out"})
        admire = await bob.call("claim_next", {"waitSeconds": 0})
        await bob.call("finish_task", {"task": "ADMIRE", "fence": admire["lease"]["fence"], "outcome": "review"})
        await bob.refused("NOTHING_READY", "claim_next", {"waitSeconds": 0})
        await bob.refused("WAIT_TIMEOUT", "claim_next", {"waitSeconds": 1})
        why = await ann.call("explain")
        assert {reason["kind"] for reason in why["reasons"]} >= {"review", "failed"}, why

        # Wrong in every way, and the server lives.
        await ann.refused("INVALID_ARGUMENTS", "claim_task", {"task": 7})
        await ann.refused("INVALID_ARGUMENTS", "claim_task", {"task": "T1", "force": True})
        await ann.refused("TASK_NOT_FOUND", "get_task", {"task": "NOWHERE"})
        try:
            await one.call_tool("drop_everything", {})
            raise AssertionError("there is no such tool")
        except MCPError as error:
            assert "no tool" in error.error.message, error

        # What is held when the client leaves goes back.
        await ann.call("add_task", {"title": "Left behind", "key": "LEFT"})
        await ann.call("claim_task", {"task": "LEFT"})
    for _ in range(100):
        left = cli("tasks", "show", "LEFT")["data"]["task"]
        if left["status"] == "pending":
            break
        await asyncio.sleep(0.05)
    assert left["status"] == "pending" and left["lease"] is None, left
    print("the whole life of a task:", way, version)


asyncio.run(asyncio.wait_for(life(), 120))
