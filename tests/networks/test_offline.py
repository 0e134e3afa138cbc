"""Settings make no computer reach out: a server listens, and nobody comes."""

from __future__ import annotations

import http.client
import inspect
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from inbounds.config import Network, network_of
from inbounds.errors import BadInput
from inbounds.networks import build, networks
from inbounds.networks.build import _slots
from inbounds.networks.offline import offline

monai = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning", "ignore::FutureWarning")
FLEXIBLE = {"backbone": "efficientnet-b0", "spatial_dims": 2}


class Server:
    """Listens on this computer, closes each connection, and counts them."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port, self.calls = self.socket.getsockname()[1], 0
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()

    def _listen(self) -> None:
        while True:
            connection, _ = self.socket.accept()
            with connection:
                if connection.recv(100) == b"stop":
                    return
                self.calls += 1

    def stop(self) -> int:
        """How often it was called; nobody listens any more."""
        if not self.thread.is_alive():
            return self.calls
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"stop")
        self.thread.join()
        self.socket.close()
        return self.calls

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/weights.pth"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


def by_urllib(server: Server) -> None:
    urllib.request.urlopen(server.url, timeout=5)


def by_torch(server: Server) -> None:
    torch.hub.load_state_dict_from_url(server.url, progress=False)


def by_http(server: Server) -> None:
    connection = http.client.HTTPConnection("localhost", server.port, timeout=5)
    connection.request("GET", "/")
    connection.close()


def by_number(server: Server) -> None:
    with socket.socket() as one:
        one.connect_ex(("127.0.0.1", server.port))


def in_silence(server: Server) -> None:
    """Who goes on without what it could not fetch builds another network than the settings say."""
    try:
        by_urllib(server)
    except OSError:
        return


@pytest.mark.parametrize("fetch", [by_urllib, by_torch, by_http, by_number, in_silence])
def test_a_network_that_fetches_is_refused_and_nobody_is_called(
    server: Server,
    fetch: Callable[[Server], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    def reaching(channels: int, classes: int) -> nn.Module:
        fetch(server)
        return nn.Conv2d(channels, classes, 1)

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setitem(networks, "reaching", reaching)
    with pytest.raises(BadInput, match=r"network.name=reaching: it would connect to (127.0.0.1|localhost).*weights ="):
        network_of(Network(name="reaching"), 1, 2)
    assert server.stop() == 0


def test_before_and_after_and_in_other_threads_all_is_as_it_was(server: Server) -> None:
    before = dict(vars(socket.socket)), socket.getaddrinfo
    with pytest.raises(BadInput, match="would connect"), offline():
        by_number(server)
    with pytest.raises(ZeroDivisionError), offline():
        _ = 1 / 0
    assert (dict(vars(socket.socket)), socket.getaddrinfo) == before
    with offline():
        other = threading.Thread(target=by_number, args=[server])
        other.start()
        other.join()
    assert server.stop() == 1


@monai
@pytest.mark.parametrize(
    ("name", "settings", "saying"),
    [
        ("FlexibleUNet", FLEXIBLE | {"pretrained": True}, "pretrained = True would fetch weights from a server; give"),
        ("DenseNet121", {"spatial_dims": 2, "pretrained": 1}, "pretrained = 1 would fetch"),
        ("TorchVisionFCModel", {"weights": "DEFAULT"}, "weights = 'DEFAULT' would fetch"),
        ("TorchVisionFCModel", {"weights_backbone": "DEFAULT"}, "weights_backbone = 'DEFAULT' would fetch"),
        ("Transchex", {"path_or_repo_id": "."}, "Transchex cannot be built without fetching weights"),
        ("Transchex", {}, r"Transchex cannot be built without fetching weights \(path_or_repo_id\)"),
    ],
)
def test_arguments_by_which_monai_fetches_are_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch, name: str, settings: dict[str, Any], saying: str
) -> None:
    from monai.networks.nets import efficientnet

    monkeypatch.setitem(efficientnet.url_map, "efficientnet-b0", server.url)
    with pytest.raises(BadInput, match=f"network.name=monai:{name}: .*{saying}"):
        network_of(Network(name=f"monai:{name}", settings=settings), 1, 2)
    assert server.stop() == 0


@monai
def test_what_monai_fetches_by_default_it_leaves(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    """Built as if the first wall were not there, the same network meets the second."""
    from monai.networks import nets
    from monai.networks.nets import efficientnet

    monkeypatch.setitem(efficientnet.url_map, "efficientnet-b0", server.url)
    build("monai:EfficientNetBN", 1, 2, model_name="efficientnet-b0", spatial_dims=2)
    build("monai:FlexibleUNet", 1, 2, **FLEXIBLE, pretrained=False)
    monkeypatch.setitem(networks, "b0", lambda channels, classes: nets.EfficientNetBN("efficientnet-b0"))
    with pytest.raises(BadInput, match="would connect"):
        network_of(Network(name="b0"), 1, 2)
    assert server.stop() == 0


@monai
def test_no_network_of_monai_is_forgotten() -> None:
    """Whatever takes `pretrained` refuses it, whether it hands it on or not."""
    from monai.networks import nets

    found = set()
    for name, kind in vars(nets).items():
        known = inspect.isclass(kind) and issubclass(kind, nn.Module) and _slots(kind)
        if known and "pretrained" in inspect.signature(kind).parameters:
            found.add(name)
            with pytest.raises(ValueError, match="pretrained = True would fetch"):
                build(f"monai:{name}", 1, 2, pretrained=True)
    assert found >= {"FlexibleUNet", "DenseNet121", "EfficientNetBN", "AHNet", "TorchVisionFCModel"}
