"""The real agent programs: how they are installed, and how each is pointed at a pretend model."""

import json
import subprocess
from pathlib import Path

# The package and the version with which the outcomes were seen.
PACKAGES = {
    "claude": ("@anthropic-ai/claude-code", "2.1.197"),
    "codex": ("@openai/codex", "0.166.0"),
    "gemini": ("@google/gemini-cli", "0.61.0"),
    "opencode": ("opencode-ai", "1.18.33"),
    "copilot": ("@github/copilot", "1.0.102"),
}


def install(cache, latest):
    """Installs the programs into `cache` and returns the folder with them."""
    wanted = [name if latest else f"{name}@{version}" for name, version in PACKAGES.values()]
    mark = cache / "installed.json"
    folder = cache / "node_modules" / ".bin"
    if not latest and mark.exists() and json.loads(mark.read_text()) == wanted:
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    print(f"installing {' '.join(wanted)}", flush=True)
    command = ["npm", "install", "--prefix", str(cache), "--no-audit", "--no-fund", *wanted]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    mark.write_text(json.dumps(wanted))
    return folder


def point_at_model(agent, port, home):
    """Writes the agent's own settings into `home` and returns its environment variables."""
    url = f"http://127.0.0.1:{port}"
    return {
        "claude": claude,
        "codex": codex,
        "gemini": gemini,
        "opencode": opencode,
        "copilot": copilot,
    }[agent](url, home)


def write(path, text):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))


def claude(url, _home):
    return {
        "ANTHROPIC_BASE_URL": url,
        # A pretend subscription, because only those have limits that reset.
        "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-pretend",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }


def codex(url, home):
    write(
        home / ".codex/config.toml",
        f"""model = "pretend"
model_provider = "pretend"

[model_providers.pretend]
name = "pretend"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "PRETEND_KEY"
""",
    )
    return {"PRETEND_KEY": "pretend"}


def gemini(url, home):
    settings = {
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    }
    write(home / ".gemini/settings.json", settings)
    return {"GEMINI_API_KEY": "pretend", "GEMINI_MODEL": "gemini-pretend", "GOOGLE_GEMINI_BASE_URL": url}


def opencode(url, home):
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "pretend",
        "options": {"baseURL": f"{url}/v1", "apiKey": "pretend"},
        "models": {"pretend": {"name": "pretend", "cost": {"input": 1, "output": 2}}},
    }
    write(home / ".config/opencode/opencode.json", {"model": "pretend/pretend", "provider": {"pretend": provider}})
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def copilot(url, _home):
    return {
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_MODEL": "pretend",
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_API_KEY": "pretend",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
    }
