"""Drive Chromium over a pipe (the DevTools protocol), without another library."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# The protocol speaks through descriptors 3 and 4.
_START = """import os, sys
read, write, *command = sys.argv[1:]
os.dup2(int(read), 3)
os.dup2(int(write), 4)
os.execv(command[0], command)
"""


class Browser:
    """One page of a headless Chromium; ``errors`` collects what its console complains of."""

    def __init__(self, process: "subprocess.Popen[bytes]", to: BinaryIO, back: BinaryIO) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._process, self._to, self._back = process, to, back
        self._buffer, self._last, self._session = b"", 0, ""
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found
            self._note(answer)

    def open(
        self, place: Path | str, *, width: int = 1280, dark: bool = False, media: str = ""
    ) -> None:
        """Show a file or an address in a window of this width."""
        self.colours(dark=dark, media=media)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self._events.clear()
        self.call(
            "Page.navigate", url=place if isinstance(place, str) else place.absolute().as_uri()
        )
        self._wait("Page.loadEventFired")

    def colours(self, *, dark: bool, media: str = "") -> None:
        """Show the page by day or by night, or as on paper."""
        scheme = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def run(self, script: str) -> Any:
        """Return the value of an expression, or of the promise that it is."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def follow(self, script: str) -> None:
        """Run something that leads to another page, and wait for that."""
        self._events.clear()
        self.run(f"setTimeout(() => {{ {script} }}, 0); 1")
        self._wait("Page.loadEventFired")

    def downloads_to(self, folder: Path) -> None:
        """Keep what the page saves in a folder."""
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def picture(self, path: Path, *, least_height: int = 900) -> None:
        """Write the whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "scale": 1}
        clip["height"] = max(size["height"], least_height)
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _wait(self, method: str) -> None:
        while not any(event["method"] == method for event in self._events):
            self._note(self._receive())

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        parameters = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning"):
                self.errors.append(json.dumps(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.errors.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])

    def _receive(self) -> dict[str, Any]:
        pieces = [self._buffer]  # a tree of a large page is many megabytes
        while b"\0" not in pieces[-1]:
            pieces.append(os.read(self._back.fileno(), 1 << 20))
            assert pieces[-1], "the browser is gone"
        line, _, self._buffer = b"".join(pieces).partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start Chromium with a profile of its own in ``folder``."""
    assert CHROMIUM is not None
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    options = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
    options += ["--no-first-run", "--disable-gpu", "--disable-dev-shm-usage"]
    options += ["--no-sandbox"] if os.geteuid() == 0 else []
    numbers = [str(command_read), str(answer_write)]
    process = subprocess.Popen(
        [sys.executable, "-c", _START, *numbers, CHROMIUM, *options],
        pass_fds=(command_read, answer_write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_read)
    os.close(answer_write)
    with os.fdopen(command_write, "wb") as to, os.fdopen(answer_read, "rb") as back:
        try:
            yield Browser(process, to, back)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
