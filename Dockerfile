FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml requirements.lock alembic.ini LICENSE README.md ./
COPY app app
COPY alembic alembic
RUN python -m venv /opt/hango \
    && pip wheel --no-cache-dir --no-deps --wheel-dir /dist . \
    && /opt/hango/bin/pip install --no-cache-dir --constraint requirements.lock "$(ls /dist/hango-*.whl)[otlp,mcp]"

FROM python:3.11-slim
# A named user: without HANGO_DATABASE_URL the embedded PostgreSQL looks its own user up.
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/hango hango
COPY --from=build /opt/hango /opt/hango
ENV PATH=/opt/hango/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HANGO_DATA_DIR=/var/lib/hango \
    HANGO_HOST=0.0.0.0 \
    HANGO_PORT=8000
USER hango
WORKDIR /var/lib/hango
VOLUME /var/lib/hango
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as web; web.urlopen('http://127.0.0.1:' + os.environ['HANGO_PORT'] + '/livez', timeout=2)"]
CMD ["hango", "serve"]
