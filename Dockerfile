# The service and its workers in one image: `docker build -t guardian .`

FROM rust:1.94.0-slim-bookworm AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends make=4.3-4.1 protobuf-compiler libprotobuf-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# "dev" builds in a third of the time
ARG PROFILE=release
# the client of Apache Spark; without it the image is a little smaller
ARG FEATURES=spark
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile "$PROFILE" --locked --features "$FEATURES" --bin guardian \
    && case $PROFILE in dev) folder=debug ;; *) folder=$PROFILE ;; esac \
    && install -D --mode=0755 "target/$folder/guardian" /out/guardian \
    && strip /out/guardian

FROM debian:12.12-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/guardian --shell /usr/sbin/nologin guardian \
    && install -d -o guardian -g guardian -m 0700 /var/lib/guardian
COPY --from=build /out/guardian /usr/local/bin/guardian
COPY --chmod=0755 docker/entrypoint.sh /usr/local/bin/guardian-entrypoint

# There is no store by default: an empty ledger by accident would be a privacy failure. Name one with DATABASE_URL, or say
# GUARDIAN_STORE=embedded for a single container with a volume at /var/lib/guardian.
ENV GUARDIAN_LISTEN=0.0.0.0:8080 \
    GUARDIAN_AUTH=keys \
    GUARDIAN_DATA=/var/lib/guardian \
    GUARDIAN_LOG_FORMAT=json
# The only folder that is written to: uploads that are read from their end pass through it. The rest may be read-only.
VOLUME /var/lib/guardian
WORKDIR /var/lib/guardian
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# last: another revision makes no other layer
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="guardian" \
      org.opencontainers.image.description="Publishes microdata tables under privacy rules" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED" \
      org.opencontainers.image.base.name="debian:12.12-slim"
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 CMD ["guardian", "healthcheck"]
ENTRYPOINT ["guardian-entrypoint"]
CMD ["serve"]
