"""The compose profile `observability`: every file is there, parses, and names what the others have."""

import re

from tests.dashboard import COMPOSE, DASHBOARD, FOLDER, QUERIES, config, labels_of, metrics_of

SERVICES = COMPOSE["services"]
WATCHING = {name for name, service in SERVICES.items() if service.get("profiles") == ["observability"]}
DATA_SOURCES = {each["uid"]: each for each in config("grafana/provisioning/datasources/sources.yml")["datasources"]}


def test_the_profile_adds_four_services_and_changes_nothing_without_it():
    assert {"collector", "tempo", "prometheus", "grafana"} == WATCHING
    assert {name for name, service in SERVICES.items() if "profiles" not in service} == {"postgres", "server"}
    assert not [name for name in ("postgres", "server") if set(SERVICES[name].get("depends_on", ())) & WATCHING]


def test_images_are_pinned_and_only_grafana_has_a_port_on_loopback():
    assert all(re.search(r":v?\d+\.\d+\.\d+$", SERVICES[name]["image"]) for name in WATCHING)
    assert {name: SERVICES[name]["ports"] for name in WATCHING if "ports" in SERVICES[name]} == {
        "grafana": ["127.0.0.1:3000:3000"]
    }


def test_every_mounted_file_exists_and_every_volume_is_declared():
    mounts = [mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", ())]
    files = [mount for mount in mounts if mount.startswith("./")]
    assert len(files) == 5
    assert [file for file in files if not (FOLDER.parents[1] / file).exists()] == []
    assert {mount for mount in mounts if not mount.startswith("./")} == set(COMPOSE["volumes"])


def test_every_address_is_a_service_of_the_profile():
    [job] = config("prometheus.yml")["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["server:8000"]}]
    assert job["authorization"] == {"credentials_file": f"/run/secrets/{SERVICES['prometheus']['secrets'][0]}"}
    assert set(SERVICES["prometheus"]["secrets"]) <= set(COMPOSE["secrets"])
    collector = config("collector.yml")
    assert collector["exporters"]["otlp"]["endpoint"] == "tempo:4317"
    for pipeline in collector["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(collector[kind])
    assert config("tempo.yml")["distributor"]["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] == "0.0.0.0:4317"
    hosts = {re.match(r"http://(\w+):\d+$", source["url"])[1] for source in DATA_SOURCES.values()}
    assert hosts == {"prometheus", "tempo"}


def test_the_dashboard_is_whole():
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert len({(place["x"], place["y"]) for place in places}) == len(places)
    assert {target["datasource"]["uid"] for panel in panels for target in panel["targets"]} <= set(DATA_SOURCES)
    assert {panel["title"] for panel in panels} >= {
        "Turns by status", "Input tokens by model", "Compactions by reason", "Evicted messages", "Cache read ratio",
        "Summarizer share of tokens", "Overflow retries", "Epochs by cause",
    }  # fmt: skip


def test_queries_are_read_as_they_are_meant():
    query = 'sum by (le, model) (rate(a_b_bucket{kind="x"}[$__rate_interval])) / max(c_d)'
    assert metrics_of(query) == {"a_b_bucket", "c_d"}
    assert labels_of(query) == {"le", "model", "kind"}
    assert all(metrics_of(query) for query in QUERIES)
