"""A scripted model on loopback, for the real agent programs.

It speaks Anthropic Messages, OpenAI Responses, OpenAI chat completions and Gemini, streaming or not. A script is a list
of turns that are played one after another, one per request in which the agent offers tools:

    Say("text")                 the model says something, which ends its turn
    Run("command")              it calls the agent's shell tool
    Call("finish_task", {...})  it calls the tool whose name ends like this; the arguments may be a function of the
                                request's text

A failure is answered instead of a turn, until it is removed. Requests without tools (titles, summaries) get a fixed
answer and are not counted. Every request is kept.
"""

import itertools
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Say:
    text: str


@dataclass
class Run:
    command: str


@dataclass
class Call:
    tool: str
    arguments: object = field(default_factory=dict)


@dataclass
class Failure:
    status: int
    body: dict
    headers: dict = field(default_factory=dict)


class PretendModel:
    """The server. `requests` has the text of each request, `played` counts the turns."""

    def __init__(self):
        self.lock = threading.Lock()
        self.turns, self.played, self.failure, self.requests = [], 0, None, []
        model = self

        class Handler(RequestHandler):
            pass

        Handler.model = model
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # An agent that is killed closes its connections.
        self.server.handle_error = lambda *_: None
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def play(self, *turns):
        with self.lock:
            self.turns, self.played, self.failure, self.requests = list(turns), 0, None, []

    def fail(self, failure):
        with self.lock:
            self.failure = failure

    def close(self):
        """From now on connections are refused."""
        self.server.shutdown()
        self.server.server_close()

    def next_turn(self):
        with self.lock:
            turn = self.turns[self.played] if self.played < len(self.turns) else Say("There is nothing more to do.")
            self.played += 1
            return turn


class RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None
    numbers = itertools.count(1)

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer({})

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "pretend", "object": "model"}], "models": []})

    def do_POST(self):
        text = self.read_body().decode("utf-8", "replace")
        with self.model.lock:
            self.model.requests.append(text)
            failure = self.model.failure
        try:
            body = json.loads(text or "{}")
        except ValueError:
            return self.answer({}, 400)
        path = self.path.split("?")[0]
        protocols = {
            "/messages": Anthropic,
            "/responses": Responses,
            "/chat/completions": Chat,
            ":streamGenerateContent": Gemini,
            ":generateContent": Gemini,
        }
        protocol = next((found for end, found in protocols.items() if path.endswith(end)), None)
        if protocol is None:
            return self.answer({"input_tokens": 100, "totalTokens": 100})
        if failure:
            return self.answer(failure.body, failure.status, failure.headers)
        protocol = protocol(body, next(self.numbers), path)
        aside = protocol.aside()
        turn = Say(aside) if aside is not None else self.model.next_turn()
        whole, events = protocol.render(turn, text)
        try:
            if protocol.is_streamed():
                self.stream(events)
            else:
                self.answer(whole)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def read_body(self):
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, value, status=200, headers=None):
        text = json.dumps(value).encode()
        self.send_response(status)
        for name, content in (headers or {}).items():
            self.send_header(name, content)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.close_connection = True
        self.end_headers()
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            data = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{head}data: {data}\n\n".encode())
            self.wfile.flush()


class Protocol:
    """One request, and the answers to it."""

    SHELLS = ()

    def __init__(self, body, number, path):
        self.body, self.number, self.path = body, number, path

    def tools(self):
        """The names of the offered tools."""
        raise NotImplementedError

    def aside(self):
        """The answer to a request that is not part of the work."""
        return None if self.tools() else "An aside"

    def is_streamed(self):
        return bool(self.body.get("stream"))

    def call(self, turn, text):
        """The name and the arguments of the tool that a turn calls."""
        if isinstance(turn, Run):
            name = next((name for name in self.SHELLS if name in self.tools()), self.SHELLS[0])
            return name, self.shell_arguments(name, turn.command)
        if isinstance(turn, Call):
            found = [name for name in self.tools() if name.endswith(turn.tool)]
            arguments = turn.arguments(text) if callable(turn.arguments) else turn.arguments
            return (found or [turn.tool])[0], arguments
        return None

    def shell_arguments(self, _name, command):
        return {"command": command, "description": "run it"}


class Anthropic(Protocol):
    SHELLS = ("Bash",)

    def tools(self):
        return [tool.get("name") for tool in self.body.get("tools") or []]

    def aside(self):
        return None if self.tools() else '{"title": "pretend", "isNewTopic": false}'

    def render(self, turn, text):
        call = self.call(turn, text)
        if call:
            name, arguments = call
            block = {"type": "tool_use", "id": f"toolu_{self.number}", "name": name, "input": arguments}
            empty = dict(block, input={})
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        else:
            block = {"type": "text", "text": turn.text}
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}
        stop = "tool_use" if call else "end_turn"
        usage = {"input_tokens": 1200, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 5000}
        whole = {
            "id": f"msg_{self.number}", "type": "message", "role": "assistant", "model": self.body.get("model"),
            "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": dict(usage, output_tokens=77),
        }
        begun = dict(whole, content=[], stop_reason=None, usage=dict(usage, output_tokens=1))
        events = [
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 77}},
            {"type": "message_stop"},
        ]
        return whole, [(event["type"], event) for event in events]


class Responses(Protocol):
    SHELLS = ("exec_command", "shell_command", "shell", "bash")

    def tools(self):
        names = []
        for tool in self.body.get("tools") or []:
            within = tool.get("tools") if tool.get("type") == "namespace" else None
            names += [inner.get("name") for inner in within] if within else [tool.get("name") or tool.get("type")]
        return names

    def namespace(self, name):
        for tool in self.body.get("tools") or []:
            if tool.get("type") == "namespace" and any(inner.get("name") == name for inner in tool.get("tools") or []):
                return {"namespace": tool["name"]}
        return {}

    def shell_arguments(self, name, command):
        return {"exec_command": {"cmd": command}, "shell": {"command": ["bash", "-c", command]}}.get(
            name, {"command": command, "description": "run it"}
        )

    def render(self, turn, text):
        call = self.call(turn, text)
        if call:
            name, arguments = call
            item = {
                "type": "function_call", "id": f"fc_{self.number}", "call_id": f"call_{self.number}", "name": name,
                "arguments": json.dumps(arguments), "status": "completed", **self.namespace(name),
            }
        else:
            content = [{"type": "output_text", "text": turn.text, "annotations": []}]
            item = {
                "type": "message", "role": "assistant", "id": f"msg_{self.number}", "status": "completed",
                "content": content,
            }
        usage = {
            "input_tokens": 1500, "input_tokens_details": {"cached_tokens": 1000}, "output_tokens": 88,
            "output_tokens_details": {"reasoning_tokens": 11}, "total_tokens": 1588,
        }
        whole = {
            "id": f"resp_{self.number}", "object": "response", "status": "completed",
            "model": self.body.get("model"), "output": [item], "usage": usage,
        }
        begun = dict(whole, status="in_progress", output=[], usage=None)
        events = [
            {"type": "response.created", "sequence_number": 0, "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        return whole, [(event["type"], event) for event in events]


class Chat(Protocol):
    SHELLS = ("bash", "run_shell_command", "shell")

    def tools(self):
        return [tool["function"]["name"] for tool in self.body.get("tools") or []]

    def render(self, turn, text):
        call = self.call(turn, text)
        message = {"role": "assistant"}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [{"index": 0, "id": f"call_{self.number}", "type": "function", "function": function}]
        else:
            message["content"] = turn.text
        finish = "tool_calls" if call else "stop"
        usage = {
            "prompt_tokens": 1300, "completion_tokens": 66, "total_tokens": 1366,
            "prompt_tokens_details": {"cached_tokens": 700},
        }
        base = {"id": f"chatcmpl-{self.number}", "created": 0, "model": self.body.get("model")}
        chunk = dict(base, object="chat.completion.chunk")
        choice = {"index": 0, "message": message, "finish_reason": finish}
        whole = dict(base, object="chat.completion", choices=[choice], usage=usage)
        events = [
            dict(chunk, choices=[{"index": 0, "delta": message, "finish_reason": None}]),
            dict(chunk, choices=[{"index": 0, "delta": {}, "finish_reason": finish}]),
            dict(chunk, choices=[], usage=usage),
            "[DONE]",
        ]
        return whole, [(None, event) for event in events]


class Gemini(Protocol):
    SHELLS = ("run_shell_command",)

    def tools(self):
        declared = [tool.get("functionDeclarations") or [] for tool in self.body.get("tools") or []]
        return [function["name"] for functions in declared for function in functions]

    def aside(self):
        config = self.body.get("generationConfig") or {}
        if any(key in config for key in ("responseJsonSchema", "responseSchema")) or (
            config.get("responseMimeType") == "application/json"
        ):
            # The answers to all questions that it asks about its own work.
            return json.dumps({
                "next_speaker": "user", "reasoning": "done", "model_choice": "flash", "complexity_score": 1,
                "complexity_reasoning": "simple", "is_loop": False, "confidence": 0.0, "summary": "pretend",
            })
        return super().aside()

    def is_streamed(self):
        return ":stream" in self.path

    def render(self, turn, text):
        call = self.call(turn, text)
        part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": turn.text}
        usage = {
            "promptTokenCount": 1400, "candidatesTokenCount": 55, "totalTokenCount": 1466,
            "cachedContentTokenCount": 400, "thoughtsTokenCount": 11,
        }
        content = {"role": "model", "parts": [part]}
        whole = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage,
            "modelVersion": "pretend", "responseId": f"r{self.number}",
        }
        return whole, [(None, whole)]
