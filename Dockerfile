# livememfs as an image: the page and MCP over HTTP, MCP for one client, or a mount that the host shares. docs/doors.md
# says how it is run. It has the Debian package, and nothing of what builds it.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
    ca-certificates gcc libc6-dev libfuse3-dev pkg-config python3-dev python3-venv
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt
COPY . /src
RUN /src/scripts/deb /dist

FROM ${BASE}
# The package stays in the stage that made it. A mount that a host shares must let other users in, and fusermount3 looks
# into mtab, which a root has from its installer, and an image from nobody.
RUN --mount=type=bind,from=build,source=/dist,target=/dist \
    apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates /dist/livememfs_*.deb && \
    rm -rf /var/lib/apt/lists/* && \
    echo user_allow_other >>/etc/fuse.conf && \
    ln -sf /proc/self/mounts /etc/mtab && \
    useradd --uid 1000 --create-home livememfs && \
    install -d -o livememfs -g livememfs -m 700 /data && \
    install -d -o livememfs -g livememfs /memory
ENV LIVEMEMFS_STORE=/data/store LIVEMEMFS_CACHE=/data/cache XDG_STATE_HOME=/data/state
VOLUME /data
EXPOSE 8765
USER livememfs
ENTRYPOINT ["livememfs"]
# Who publishes the port to other machines names the host that their browsers use.
CMD ["web", "0.0.0.0:8765", "--allow-host", "127.0.0.1", "--allow-host", "localhost"]
