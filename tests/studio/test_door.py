"""Who is let in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from studios import TOKEN, Page, ids, opened, scans


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened(scans(tmp_path_factory.mktemp("door") / "scans", ("one",))) as page:
        yield page


@pytest.fixture
def client(page: Page) -> Page:
    page.cookies.clear()
    page.get("/", params={"token": TOKEN})
    return page


def test_the_first_address_sets_a_cookie_that_scripts_cannot_read(client: Page) -> None:
    client.cookies.clear()
    answer = client.get("/", params={"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    kept = answer.headers["set-cookie"].lower()
    assert "httponly" in kept
    assert "samesite=strict" in kept
    assert client.get("/api/project").status_code == 200
    assert client.get("/", params={"token": "wrong"}).status_code == 401


@pytest.mark.parametrize("path", ["/api/project", "/api/scans/1", "/api/events", "/api/nothing"])
def test_without_the_cookie_nothing_is_told(path: str, client: Page) -> None:
    client.cookies.clear()
    assert client.get(path).status_code == 401
    assert client.post(path, json={}).status_code == 401
    for page in ("/", "/page/main.js"):
        assert client.get(page).status_code == 401
        assert "token" in client.get(page).text
    client.cookies.set(f"inbounds_studio_{client.port}", "guess")
    assert client.get(path).status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{}"])
def test_other_names_for_this_computer_are_refused(host: str, client: Page) -> None:
    for path in ("/", "/api/project", "/page/app.js"):
        assert client.get(path, headers={"host": host.format(client.port)}).status_code == 403
    assert client.get("/api/project", headers={"host": f"localhost:{client.port}"}).status_code in (200, 401)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_pages_are_refused(headers: dict[str, str], client: Page) -> None:
    assert client.get("/api/project", headers=headers).status_code == 403
    assert client.post("/api/undo", json={"who": "Ana"}, headers=headers).status_code == 403
    mine = {"origin": f"http://127.0.0.1:{client.port}", "sec-fetch-site": "same-origin"}
    assert client.get("/api/project", headers=mine).status_code == 200


def test_large_bodies_are_refused_before_they_are_read(client: Page) -> None:
    content = b'{"who": "' + b"a" * (9 << 20) + b'"}'
    kind = {"content-type": "application/json"}
    assert client.post("/api/undo", content=content, headers=kind).status_code == 413
    pieces = (content[place : place + 65536] for place in range(0, len(content), 65536))
    answer = client.post("/api/undo", content=pieces, headers=kind)  # in pieces, without a length
    assert answer.status_code == 413
    assert "8 MiB" in answer.json()["error"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_only_json_changes_anything(kind: str, client: Page) -> None:
    answer = client.post("/api/undo", content=b'{"who": "Ana"}', headers={"content-type": kind})
    assert answer.status_code == 400
    assert "application/json" in answer.json()["error"]


def test_what_is_no_json_is_refused_in_a_sentence(client: Page) -> None:
    answer = client.post("/api/undo", content=b"{", headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert client.post("/api/undo", json={"who": "Ana", "more": 1}).status_code == 400
    assert client.post("/api/undo", json=[]).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/page/../server.py",
        "/page/..%2fserver.py",
        "/page/%2e%2e/server.py",
        "/page//etc/passwd",
        "/..%5cserver.py",
        "/api/scans/..%2f1",
        "/api/scans/1/image/0/..%2f..",
        "/api/scans/x",
    ],
)
def test_paths_lead_nowhere_else(path: str, client: Page) -> None:
    answer = client.get(path)
    assert answer.status_code in (400, 404, 405)
    assert b"def " not in answer.content


def test_every_answer_carries_the_policy(client: Page) -> None:
    for path in ("/api/project", "/api/nothing", f"/api/scans/{ids(client)['one']}/labels/0/0"):
        headers = client.get(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
