"""Where a bucket is, and what boto3 finds out by itself: keys, certificates, Amazon's addresses.

Owns the form of a request's URL. Refuses to make requests to the bucket; looking for keys may ask Amazon's metadata
service. The address is pure and may be used from any thread; the surroundings belong to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from botocore.credentials import Credentials
from botocore.httpsession import get_cert_path
from botocore.utils import check_dns_name

if TYPE_CHECKING:
    from boto3.session import Session
    from botocore.session import Session as CoreSession
    from mypy_boto3_s3 import S3Client

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """Where a bucket is.

    `origin` is `http://host:port`, `host` the Host header, `root` the path of the bucket, empty where the host stands
    for it. `signed_root` is the path of the bucket in signatures of version 2, which name it in any case.
    """

    origin: str
    host: str
    root: str
    signed_root: str

    def target(self, key: str | None, query: Mapping[str, str]) -> str:
        """What a request line asks for: the key's path, or the bucket's without one. Dot segments stay."""
        path = f"{self.root}/{_path(key)}" if key is not None else self.root or "/"
        return f"{path}?{urlencode(query, quote_via=quote, safe='')}" if query else path

    def signed_path(self, key: str | None) -> str:
        """The path that a signature of version 2 is made over."""
        return f"{self.signed_root}/{_path(key or '')}"


class AwsSurroundings:
    """What boto3's session finds in the environment, the user's AWS configuration and on Amazon's machines.

    Asking may raise botocore's BotoCoreError. Nothing is loaded before it is asked for: a store with an endpoint and
    keys of its own, which is the usual one, never needs a session.
    """

    @cached_property
    def _core(self) -> CoreSession:
        from botocore.session import Session as CoreSession

        return CoreSession(session_vars={"requests_ca_bundle": (None, "REQUESTS_CA_BUNDLE", None, None)})

    @cached_property
    def _session(self) -> Session:
        from boto3.session import Session

        return Session(botocore_session=self._core)

    def credentials(self) -> Credentials | None:
        """Keys from a profile, a role or wherever boto3 looks; None when there are none."""
        return self._session.get_credentials()

    def client(self, region: str, **how: Any) -> S3Client:
        """boto3's own client, for what is asked seldom. It needs closing."""
        return self._session.client("s3", region_name=region, **how)

    def amazon(self, region: str) -> str:
        """The URL of S3 in a region."""
        client = self.client(region, aws_access_key_id="unused", aws_secret_access_key="unused")
        client.close()
        return client.meta.endpoint_url

    def certificates(self) -> str:
        """The file of the certificates to trust."""
        for name in ("ca_bundle", "requests_ca_bundle"):
            if path := self._core.get_config_variable(name):
                return str(path)
        return str(get_cert_path(True))


def locate(bucket: str, endpoint_url: str, *, path_style: bool) -> BucketAddress:
    """The address of a bucket at an endpoint.

    Without `path_style` the bucket goes before the host's name, unless it cannot: a name with dots would not match a
    certificate, and one with capitals is no host name. Raises ValueError for an endpoint that is no URL.
    """
    url = urlsplit(endpoint_url)
    if url.scheme not in _DEFAULT_PORTS or not url.hostname:
        raise ValueError("the endpoint is not of the form https://host or http://host:port")
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    if url.port not in (None, _DEFAULT_PORTS[url.scheme]):
        host = f"{host}:{url.port}"
    above = url.path.rstrip("/")
    if path_style or not check_dns_name(bucket):
        root = f"{above}/{quote(bucket, safe='')}"
        return BucketAddress(f"{url.scheme}://{host}", host, root, root)
    host = f"{bucket}.{host}"
    return BucketAddress(f"{url.scheme}://{host}", host, above, f"/{bucket}")


def _path(key: str) -> str:
    """A key as S3 wants to see it signed: all but the unreserved characters and the slash is escaped."""
    return quote(key, safe="/~")
