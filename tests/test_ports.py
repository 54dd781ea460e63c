"""Ports for servers that must be told theirs."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from benchlib.ports import LOWEST, free_ports


def test_they_are_free_and_none_that_the_kernel_would_give_away() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20
    for port in ports:
        with socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", 0)) as any_port:
            assert LOWEST <= port < any_port.getsockname()[1]


def test_where_there_are_not_so_many_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "range").write_text("10001\t60999\n")

    with pytest.raises(OSError, match="fewer than 1001 are free"):
        free_ports(1_001, addresses=tmp_path / "range")
