"""The S3 store on the wire: addresses, signatures, connections, proxies, certificates."""

from __future__ import annotations

import hmac
import json
import re
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from hashlib import sha1, sha256
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from http_double import COPIED, ETAG, LISTING, Reply, S3Double, Sent, error
from test_contract import ODD_KEYS
from test_store_s3 import CALLS

from livememfs.errors import Denied, SettingsError, StoreError, TooLarge, Unreachable
from livememfs.store.base import IfMatch
from livememfs.store.s3 import S3Options, S3Store
from livememfs.store.s3_address import AwsSurroundings, locate

SECRET = "not-a-real-secret"
FOUND = {"ETag": f'"{ETAG}"', "Last-Modified": "Fri, 20 Feb 2026 14:00:00 GMT"}


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxies, keys or certificates but those that a test sets."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "aws_profile", "aws_ca_bundle"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")


@pytest.fixture
def keeping_double() -> Iterator[S3Double]:
    """A server that keeps its connections."""
    with S3Double(kept=True) as server:
        yield server


# --- signatures, worked out again from what came over the wire ----------------------------------------------------


def signature_v4(sent: Sent, region: str = "us-east-1") -> str:
    """The signature that a server arrives at, which knows the secret and the request and nothing else."""
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=test/(\d{8})/([^/]+)/s3/aws4_request, SignedHeaders=([^,]+), Signature=\w{64}",
        sent.headers["authorization"],
    )
    assert found is not None
    day, named_region, signed = found.groups()
    path, _, query = sent.path.partition("?")
    lines = [
        sent.verb,
        path,
        "&".join(sorted(query.split("&"))),
        *(f"{name}:{sent.headers[name]}" for name in signed.split(";")),
        "",
        signed,
        sent.headers["x-amz-content-sha256"],
    ]
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(
        ["AWS4-HMAC-SHA256", sent.headers["x-amz-date"], scope, sha256("\n".join(lines).encode()).hexdigest()]
    )
    key = f"AWS4{SECRET}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    assert named_region == region
    return hmac.new(key, text.encode(), sha256).hexdigest()


def signature_v2(sent: Sent, resource: str) -> str:
    amazon = sorted(f"{name}:{value}" for name, value in sent.headers.items() if name.startswith("x-amz-"))
    text = "\n".join([sent.verb, "", sent.headers.get("content-type", ""), sent.headers["date"], *amazon, resource])
    return b64encode(hmac.new(SECRET.encode(), text.encode(), sha1).digest()).decode()


def second(key: str) -> str:
    return key[:-1] + "2"


async def ask_everything(store: S3Store, key: str) -> None:
    await store.put(key, key.encode(), meta={"m": "é %"})
    await store.get(key, if_match="e")
    await store.copy(key, second(key), meta={"m": "2"}, condition=IfMatch(ETAG))
    await store.delete(key, condition=IfMatch("e"))
    await store.list_page(key, delimiter="/", start_after=key, token=key)


@pytest.mark.parametrize("key", ODD_KEYS, ids=lambda key: ascii(key[:20]))
async def test_what_is_signed_is_what_is_sent(keeping_double: S3Double, key: str) -> None:
    """The path above all: nothing on the way may take `a/../z` for `z`, or escape what is escaped."""
    async with aclosing(S3Store(keeping_double.options(region="eu-west-3"))) as store:
        await ask_everything(store, key)
    objects = [sent for sent in keeping_double.sent if "?" not in sent.path]

    for sent in keeping_double.sent:
        assert sent.headers["authorization"].endswith(signature_v4(sent, "eu-west-3"))
        assert sent.headers["x-amz-content-sha256"] == sha256(sent.body).hexdigest()
    assert {unquote(sent.path) for sent in objects} == {f"/some-bucket/{key}", f"/some-bucket/{second(key)}"}
    sources = [sent.headers["x-amz-copy-source"] for sent in objects if "x-amz-copy-source" in sent.headers]
    assert [unquote(source) for source in sources] == [f"some-bucket/{key}"]
    assert "+" not in "".join(sent.path for sent in keeping_double.sent), (
        "a plus means a blank to some and not to others"
    )


@pytest.mark.parametrize("key", ODD_KEYS, ids=lambda key: ascii(key[:20]))
async def test_version_2_signs_what_is_sent(keeping_double: S3Double, key: str) -> None:
    async with aclosing(S3Store(keeping_double.options(signature_mode="dual", session_token="t-o"))) as store:
        await ask_everything(store, key)
    old = [sent for sent in keeping_double.sent if sent.headers["authorization"].startswith("AWS test:")]

    assert len(old) == 4
    for sent in old:
        assert sent.headers["authorization"].endswith(":" + signature_v2(sent, sent.path))
        assert sent.headers["x-amz-security-token"] == "t-o"


async def test_where_the_bucket_is_in_the_host_the_signatures_name_it_all_the_same(keeping_double: S3Double) -> None:
    """Seen through a proxy, since no such host can be looked up here."""
    options = keeping_double.options(endpoint_url="http://store.invalid:9000", path_style=False, signature_mode="dual")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("http_proxy", f"http://127.0.0.1:{keeping_double.port}")
        async with aclosing(S3Store(options)) as store:
            await store.get("/lead")
            await store.list_page()
    data, query = keeping_double.sent

    assert data.path == "http://some-bucket.store.invalid:9000//lead"
    assert query.path.startswith("http://some-bucket.store.invalid:9000/?list-type=2&")
    assert data.headers["host"] == query.headers["host"] == "some-bucket.store.invalid:9000"
    assert data.headers["authorization"].endswith(":" + signature_v2(data, "/some-bucket//lead"))


async def test_a_temporary_key_sends_its_token(s3_double: S3Double) -> None:
    await S3Store(s3_double.options(session_token="t-o")).get("k")
    (sent,) = s3_double.sent

    assert sent.headers["x-amz-security-token"] == "t-o"
    assert "x-amz-security-token" in sent.headers["authorization"]


# --- keys and addresses that botocore finds -----------------------------------------------------------------------


async def test_keys_may_come_from_the_environment(s3_double: S3Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-outside")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    await S3Store(s3_double.options(access_key_id=None, secret_access_key=None)).get("k")

    assert "Credential=from-outside/" in s3_double.sent[0].headers["authorization"]


async def test_without_any_keys_access_is_denied_and_nothing_is_sent(s3_double: S3Double) -> None:
    with pytest.raises(Denied, match="credentials"):
        await S3Store(s3_double.options(access_key_id=None, secret_access_key=None)).get("k")

    assert s3_double.sent == []


async def test_keys_of_a_role_are_renewed(s3_double: S3Double, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys, config = tmp_path / "keys.json", tmp_path / "config"
    config.write_text(f"[default]\ncredential_process = cat {keys}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))

    def hand_out(name: str) -> None:
        soon = datetime.now(UTC) + timedelta(minutes=2)  # botocore renews keys that end within minutes
        keys.write_text(
            json.dumps({"Version": 1, "AccessKeyId": name, "SecretAccessKey": "s", "Expiration": soon.isoformat()})
        )

    hand_out("first")
    store = S3Store(s3_double.options(access_key_id=None, secret_access_key=None))
    await store.get("k")
    hand_out("second")
    await store.get("k")

    assert ["first" in sent.headers["authorization"] for sent in s3_double.sent] == [True, False]
    assert "second" in s3_double.sent[1].headers["authorization"]


def test_a_profile_that_is_not_there_is_a_settings_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    with pytest.raises(SettingsError, match="no-such-profile"):
        S3Store(S3Options(bucket="b-b", endpoint_url="http://127.0.0.1:1"))


@pytest.mark.parametrize(
    ("region", "host"), [("eu-west-1", "s3.eu-west-1.amazonaws.com"), ("cn-north-1", "s3.cn-north-1.amazonaws.com.cn")]
)
def test_amazons_regions_have_hosts_of_their_own(region: str, host: str) -> None:
    assert AwsSurroundings().amazon(region) == f"https://{host}"


@pytest.mark.parametrize(
    ("bucket", "endpoint", "path_style", "expected"),
    [
        ("b-b", "http://host:9000", True, "http://host:9000/b-b/k%20%C3%A9"),
        ("b-b", "http://HOST:80/", True, "http://host/b-b/k%20%C3%A9"),
        ("b-b", "https://host:443/above/", True, "https://host/above/b-b/k%20%C3%A9"),
        ("b-b", "https://host:444/above", False, "https://b-b.host:444/above/k%20%C3%A9"),
        ("b-b", "http://[::1]:9000", True, "http://[::1]:9000/b-b/k%20%C3%A9"),
        ("b.b", "https://host", False, "https://host/b.b/k%20%C3%A9"),
        ("B_B", "https://host", False, "https://host/B_B/k%20%C3%A9"),
    ],
)
def test_a_bucket_is_in_the_path_or_in_the_host(bucket: str, endpoint: str, path_style: bool, expected: str) -> None:
    address = locate(bucket, endpoint, path_style=path_style)

    assert address.origin + address.target("k é", {}) == expected
    assert address.host == expected.split("/")[2]


@pytest.mark.parametrize("endpoint", ["host:9000", "ftp://host", "http://", "http://host:port", "http://host:99999"])
def test_an_endpoint_that_is_no_address_is_a_settings_error(endpoint: str) -> None:
    with pytest.raises(SettingsError):
        S3Store(S3Options(bucket="b-b", endpoint_url=endpoint, access_key_id="a", secret_access_key="b"))


# --- connections --------------------------------------------------------------------------------------------------


async def test_one_connection_serves_all_requests(keeping_double: S3Double) -> None:
    async with aclosing(S3Store(keeping_double.options())) as store:
        for call in CALLS.values():
            await call(store)

    assert len(keeping_double.sent) == 7
    assert len({sent.port for sent in keeping_double.sent}) == 1


async def test_there_are_no_more_connections_than_threads(keeping_double: S3Double) -> None:
    async with aclosing(S3Store(keeping_double.options(threads=3))) as store, trio.open_nursery() as nursery:
        for n in range(30):
            nursery.start_soon(store.get, f"{n}")

    assert len(keeping_double.sent) == 30
    assert len({sent.port for sent in keeping_double.sent}) <= 3


@pytest.mark.parametrize("status", [403, 404, 503])
async def test_a_refusal_with_a_body_leaves_the_connection_good(keeping_double: S3Double, status: int) -> None:
    body = b"<Error><Code>Whatever</Code><Message>" + b"long " * 10_000 + b"</Message></Error>"
    keeping_double.replies.append(Reply(status, body, then="keep"))
    async with aclosing(S3Store(keeping_double.options())) as store:
        with pytest.raises(StoreError):
            await store.get("k")
        assert (await store.get("k")).data == b"abc"

    assert len({sent.port for sent in keeping_double.sent}) == 1


@pytest.mark.parametrize("verb", CALLS)
async def test_a_connection_that_was_closed_while_idle_is_replaced(keeping_double: S3Double, verb: str) -> None:
    """A write as well: nothing of it had been sent."""
    keeping_double.replies.append(Reply(200, b"abc", FOUND, then="drop"))
    async with aclosing(S3Store(keeping_double.options())) as store:
        await store.get("first")
        await trio.to_thread.run_sync(keeping_double.closed.acquire)
        await CALLS[verb](store)
    first, second = keeping_double.sent[:2]

    assert first.port != second.port


@pytest.mark.parametrize("verb", CALLS)
async def test_a_server_that_hangs_up_on_a_request_is_unreachable(keeping_double: S3Double, verb: str) -> None:
    """Not repeated here: whether it happened is for RetryingStore to find out."""
    async with aclosing(S3Store(keeping_double.options())) as store:
        await store.get("first")
        keeping_double.replies.append(Reply(hang_up=True))
        with pytest.raises(Unreachable):
            await CALLS[verb](store)
        assert len(keeping_double.sent) == 2
        await store.get("last")


async def test_an_answer_that_comes_too_late_is_never_taken_for_the_next_one(keeping_double: S3Double) -> None:
    keeping_double.replies.append(Reply(silent=True))
    async with aclosing(S3Store(keeping_double.options(read_timeout=0.05))) as store:
        with pytest.raises(Unreachable):
            await store.get("slow")
    async with aclosing(S3Store(keeping_double.options())) as store:
        await store.get("next")
    slow, following = keeping_double.sent

    assert slow.port != following.port


async def test_closing_lets_go_of_the_connections(keeping_double: S3Double) -> None:
    store = S3Store(keeping_double.options())
    await store.get("k")
    await store.aclose()
    with trio.fail_after(5):
        await trio.to_thread.run_sync(keeping_double.closed.acquire)


async def test_a_request_that_outlives_the_store_leaves_no_connection(keeping_double: S3Double) -> None:
    store = S3Store(keeping_double.options())
    await store.aclose()
    await store.get("k")
    with trio.fail_after(5):
        await trio.to_thread.run_sync(keeping_double.closed.acquire)


async def test_a_body_that_is_refused_half_way_is_refused_and_not_lost(s3_double: S3Double) -> None:
    """The server answers and hangs up while it is still being sent to; the answer is read all the same."""
    refusal = error(413, "EntityTooLarge")
    s3_double.replies.append(Reply(refusal.status, refusal.body, unread=True))
    with pytest.raises(TooLarge):
        await S3Store(s3_double.options()).put("k", b"x" * (32 << 20))


# --- replies as they come over the wire ---------------------------------------------------------------------------


def head_of(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", f'ETag: "{ETAG}"', *lines, "", ""]).encode()


def chunked(*parts: bytes, is_whole: bool = True) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n" * is_whole


async def test_a_listing_may_come_in_chunks(s3_double: S3Double) -> None:
    s3_double.replies.append(Reply(raw=head_of("Transfer-Encoding: chunked") + chunked(LISTING[:50], LISTING[50:])))
    async with aclosing(S3Store(s3_double.options())) as store:
        assert (await store.list_page()).objects == ()


@pytest.mark.parametrize(
    ("verb", "raw"),
    [
        ("get", head_of("Content-Length: 10") + b"123456789"),
        ("get", head_of() + b"who knows whether this is all"),
        ("get", head_of("Content-Length: ten") + b"1234567890"),
        ("put", b"HTTP/1.1 200 OK\r\nETag: "),
        ("put", b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: "900150983cd'),
        ("put", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("get", b"SSH-2.0-OpenSSH_9.6\r\n"),
        ("list", head_of("Transfer-Encoding: chunked") + chunked(LISTING[:50], is_whole=False)),
        ("list", head_of("Transfer-Encoding: chunked") + chunked(LISTING, is_whole=False)),
        ("list", head_of(f"Content-Length: {len(LISTING)}") + LISTING[:-1]),
        ("list", head_of() + LISTING[:-1]),
        ("list", head_of(f"Content-Length: {len(LISTING) - 1}") + LISTING[:-1]),
        ("copy", head_of("Content-Length: 0")),
        ("copy", head_of(f"Content-Length: {len(COPIED) - 1}") + COPIED[:-1]),
    ],
)
async def test_a_reply_that_is_cut_short_is_no_reply(s3_double: S3Double, verb: str, raw: bytes) -> None:
    if verb == "copy":
        s3_double.replies.append(Reply(200, b"abc", FOUND))  # the look at the source
    s3_double.replies.append(Reply(raw=raw))
    async with aclosing(S3Store(s3_double.options())) as store:
        with pytest.raises(Unreachable):
            await CALLS[verb](store)


async def test_bytes_that_are_stored_compressed_stay_compressed(s3_double: S3Double) -> None:
    s3_double.replies.append(Reply(200, b"\x1f\x8b not really", FOUND | {"Content-Encoding": "gzip"}))

    assert (await S3Store(s3_double.options()).get("k")).data == b"\x1f\x8b not really"
    assert s3_double.sent[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("verb", CALLS)
async def test_a_redirection_is_told_and_not_followed(s3_double: S3Double, verb: str) -> None:
    there = {"Location": f"http://127.0.0.1:{s3_double.port}/elsewhere", "x-amz-bucket-region": "eu-west-1"}
    s3_double.replies.append(Reply(307, b"", there))
    with pytest.raises(StoreError, match="eu-west-1") as caught:
        await CALLS[verb](S3Store(s3_double.options()))

    assert type(caught.value) is StoreError
    assert len(s3_double.sent) == 1


async def test_no_request_waits_to_be_told_to_go_on(s3_double: S3Double) -> None:
    await S3Store(s3_double.options()).put("k", b"x" * (2 << 20))

    assert "expect" not in s3_double.sent[0].headers
    assert len(s3_double.sent[0].body) == 2 << 20


async def test_an_empty_object_is_sent_with_its_length(s3_double: S3Double) -> None:
    await S3Store(s3_double.options()).put("k", b"")

    assert s3_double.sent[0].headers["content-length"] == "0"


# --- proxies and certificates -------------------------------------------------------------------------------------


async def test_a_proxy_gets_whole_addresses_with_every_dot(
    s3_double: S3Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://us%40er:pa%3Ass@127.0.0.1:{s3_double.port}")
    await S3Store(s3_double.options(endpoint_url="http://store.invalid:9000")).get("a/../z")
    (sent,) = s3_double.sent

    assert sent.path == "http://store.invalid:9000/some-bucket/a/../z"
    assert sent.headers["host"] == "store.invalid:9000"
    assert sent.headers["proxy-authorization"] == "Basic " + b64encode(b"us@er:pa:ss").decode()
    assert "proxy-authorization" not in sent.headers["authorization"]


async def test_hosts_can_be_spared_the_proxy(s3_double: S3Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    await S3Store(s3_double.options()).get("k")

    assert s3_double.sent[0].path == "/some-bucket/k"


async def test_a_proxy_is_asked_for_a_tunnel_to_a_secret_store(
    s3_double: S3Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", f"user:pass@127.0.0.1:{s3_double.port}")
    s3_double.replies.append(Reply(403))
    with pytest.raises(Unreachable) as caught:
        await S3Store(s3_double.options(endpoint_url="https://store.invalid")).get("k")
    (sent,) = s3_double.sent

    assert (sent.verb, sent.path) == ("CONNECT", "store.invalid:443")
    assert sent.headers["proxy-authorization"] == "Basic " + b64encode(b"user:pass").decode()
    assert "authorization" not in sent.headers
    assert "pass" not in str(caught.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Key and certificate, in one file, for an address; the certificate vouches for itself."""

    def make(address: str) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
            .sign(key, hashes.SHA256())
        )
        path = tmp_path_factory.mktemp("certificate") / f"{address}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + made.public_bytes(serialization.Encoding.PEM)
        )
        return path

    return make


def secret_double(path: Path) -> S3Double:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return S3Double(context, kept=True)


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
async def test_a_store_can_have_a_certificate_of_its_own(
    certificate: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    path = certificate("127.0.0.1")
    monkeypatch.setenv(variable, str(path))
    with secret_double(path) as server:
        async with aclosing(S3Store(server.options())) as store:
            await ask_everything(store, "a/../é")

        assert len({sent.port for sent in server.sent}) == 1
        for sent in server.sent:
            assert sent.headers["authorization"].endswith(signature_v4(sent))


@pytest.mark.parametrize(("address", "is_trusted"), [("127.0.0.1", False), ("127.0.0.2", True)])
async def test_a_certificate_of_a_stranger_or_for_another_host_is_refused(
    certificate: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, address: str, is_trusted: bool
) -> None:
    path = certificate(address)
    if is_trusted:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(path))
    with secret_double(path) as server:
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await S3Store(server.options()).get("k")

        assert server.sent == []


def test_a_bundle_that_is_no_file_is_a_settings_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/nonexistent")
    with pytest.raises(SettingsError):
        S3Store(S3Options(bucket="b-b", endpoint_url="https://host", access_key_id="a", secret_access_key="b"))


async def test_a_read_that_was_abandoned_gives_its_thread_back(keeping_double: S3Double) -> None:
    keeping_double.replies.append(Reply(silent=True))
    async with aclosing(S3Store(keeping_double.options(threads=1, read_timeout=0.1))) as store:
        with trio.move_on_after(0.01) as scope:
            await store.get("slow")
        assert scope.cancelled_caught
        assert (await store.get("next")).data == b"abc"


def test_boto3_is_not_loaded_for_an_endpoint_with_keys_of_its_own() -> None:
    """It would take longer than the first requests."""
    program = (
        "import sys\nfrom livememfs.store.s3 import S3Options, S3Store\n"
        "S3Store(S3Options(bucket='b-b', endpoint_url='http://h', access_key_id='a', secret_access_key='b'))\n"
        "print('boto3' in sys.modules, 'botocore.session' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False False\n"
