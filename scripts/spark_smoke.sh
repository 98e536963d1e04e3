#!/usr/bin/env bash
# Releases in a standalone cluster of Apache Spark on this machine: a master, two workers of one core and 1 GB, Spark Connect. The
# cluster encrypts what its processes send each other and write, and every command asks for it; one that does not is given nothing.
#
#   scripts/spark_smoke.sh [ROWS]            1,000,000 rows of the census unless told
#
# The vectors of tests/vectors/ranked.json must come out, row by row; a real table and the census are published, verified with the
# original, and published again under the same key while an executor is killed: the parts must hold the same rows. No key, no plan
# and no value may stand in the logs and events of the cluster. The command is killed in each phase, and the driver once: nothing
# may be visible of it. A release goes to a store of objects. A service publishes a table of the cluster, and is killed once. Needs Java 17, Python and protoc; Spark
# comes from PyPI unless SPARK_HOME names it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rows=${1:-1000000}
work=$(mktemp -d)
readonly rows work
pids=()
finish() {
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    rm -rf -- "$work"
}
trap finish EXIT

missing=()
command -v java >/dev/null || missing+=(openjdk-17-jre-headless)
command -v curl >/dev/null || missing+=(curl)
command -v protoc >/dev/null || missing+=(protobuf-compiler)
# the types that messages import
[[ -e /usr/include/google/protobuf/any.proto ]] || missing+=(libprotobuf-dev)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)
if ((${#missing[@]})); then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >&2
fi
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyarrow duckdb 'moto[server]'
if [[ -z ${SPARK_HOME:-} ]]; then
    "$work/venv/bin/pip" install --quiet 'pyspark[connect]==4.3.0'
    SPARK_HOME=$("$work/venv/bin/python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
else
    "$work/venv/bin/pip" install --quiet pyspark-client==4.2.0
fi
export SPARK_HOME
cargo build --locked --quiet --features spark --bin guardian --example census
guardian=${CARGO_TARGET_DIR:-target}/debug/guardian
check() { "$work/venv/bin/python" scripts/spark_smoke.py "$@"; }

mkdir "$work"/{lake,scratch,out,events,logs}
cat >"$work/encrypted.conf" <<END
spark.authenticate true
spark.authenticate.secret $(openssl rand -hex 32)
spark.network.crypto.enabled true
spark.io.encryption.enabled true
END
class() { "$SPARK_HOME/bin/spark-class" "$@" --properties-file "$work/encrypted.conf" >>"$work/logs/$1.log" 2>&1 & pids+=($!); }
export SPARK_WORKER_DIR=$work/workers SPARK_LOCAL_DIRS=$work/local SPARK_NO_DAEMONIZE=1
class org.apache.spark.deploy.master.Master --host 127.0.0.1 --port 17077 --webui-port 18080
for port in 18081 18082; do
    class org.apache.spark.deploy.worker.Worker spark://127.0.0.1:17077 --cores 1 --memory 1g --host 127.0.0.1 --webui-port "$port"
done
# streams of responses end after three seconds, as they do after two minutes elsewhere: statements that take longer go on
connect() { # PORT MASTER OPTION...
    local port=$1 master=$2
    shift 2
    "$SPARK_HOME/bin/spark-submit" --master "$master" --driver-memory 1g "$@" \
        --conf spark.driver.host=127.0.0.1 --conf spark.connect.grpc.binding.address=127.0.0.1 \
        --conf "spark.connect.grpc.binding.port=$port" --conf spark.eventLog.enabled=true --conf "spark.eventLog.dir=file://$work/events" \
        --conf spark.connect.execute.reattachable.senderMaxStreamDuration=3s \
        --conf "spark.sql.warehouse.dir=$work/warehouse" --class org.apache.spark.sql.connect.service.SparkConnectServer \
        --name connect local:/dev/null >>"$work/logs/connect.log" 2>&1 &
    connect=$!
    pids+=("$connect")
    for _ in {1..120}; do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
        sleep 1
    done
    echo "Spark Connect does not answer" >&2
    return 1
}
connect_cluster() {
    connect 15012 spark://127.0.0.1:17077 --executor-memory 700m --properties-file "$work/encrypted.conf"
    driver=$connect
}
connect_cluster
engine=(--engine sc://127.0.0.1:15012 --engine-require-encryption --scratch "$work/scratch")

publish() { # TABLE SPECIFICATION OUT [KEY]
    local key=()
    [[ -z ${4:-} ]] || key=(--reproduce "$4")
    "$guardian" publish "$1" "$2" "${engine[@]}" --out "$3" "${key[@]}" --json >"$3.json" || {
        cat "$3.json" >&2
        tail -n 30 "$work/logs/connect.log" >&2
        return 1
    }
    [[ -z $(ls -A "$work/scratch") ]] || {
        echo "the scratch folder is not empty" >&2
        return 1
    }
}

key=$(printf '%02x' {0..31})
check tables "$work/lake"
for table in "$work"/lake/vector-*/; do
    table=${table%/}
    publish "$table" "$table.json" "$work/out/$(basename "$table")" "$key"
done
check vectors "$work"
echo "vectors: the parts are those of tests/vectors/ranked.json"

check visits "$work/lake"
refused() { # TABLE REASON
    if publish "$work/lake/$1" "$work/lake/visits-day.json" "$work/out/$1" 2>"$work/refused"; then
        echo "$1 was let pass" >&2
        exit 1
    fi
    grep -q "$2" "$work/refused"
}
refused untyped 'score: equality'
refused undated 'years 0 to 9999'
for sensitive in day fee admitted; do
    publish "$work/lake/visits" "$work/lake/visits-$sensitive.json" "$work/out/visits-$sensitive"
    "$guardian" verify "$work/out/visits-$sensitive" --original "$work/lake/visits.parquet" | tail -n 1
done

gzip -dc examples/data/adult.csv.gz >"$work/adult.csv"
check parquet "$work/adult.csv" "$work/lake/adult"
"$guardian" plan "$work/lake/adult" examples/adult.json "${engine[@]}" --json >"$work/plan.json"
grep -q '"feasible": true' "$work/plan.json"
"$guardian" plan "$work/adult.csv" examples/adult.json --json >"$work/plan_at_hand.json"
check plans "$work/plan.json" "$work/plan_at_hand.json"
[[ -z $(ls -A "$work/scratch") ]]
# an engine that does not encrypt is given nothing
connect 15014 'local[1]'
if "$guardian" publish "$work/lake/adult" examples/adult.json --engine sc://127.0.0.1:15014 --engine-require-encryption \
    --scratch "$work/scratch" --out "$work/out/open" 2>"$work/open"; then
    echo "a release was made where files are not encrypted" >&2
    exit 1
fi
grep -q 'does not encrypt its files' "$work/open"
[[ ! -e $work/out/open && -z $(ls -A "$work/scratch") ]]
kill "$connect"
publish "$work/lake/adult" examples/adult.json "$work/out/adult"
"$guardian" verify "$work/out/adult" --original "$work/adult.csv" | tail -n 1
# buckets of several sizes, by thresholds
cat >"$work/thresholds.json" <<'END'
{"unlisted": "drop",
 "method": {"type": "bucketize", "quasi_identifiers": ["age", "sex", "race"], "sensitive": "occupation", "sizes": "multi",
            "thresholds": {"linear": {"theta": 4, "c": "0.02", "overrides": {"Armed-Forces": "0.05"}}}}}
END
publish "$work/lake/adult" "$work/thresholds.json" "$work/out/thresholds"
"$guardian" verify "$work/out/thresholds" --original "$work/adult.csv" | tail -n 1

# tables that are chosen by the rows, and persons with several rows
cat >"$work/chosen.json" <<'END'
{"unlisted": "drop",
 "method": {"type": "versatile", "algorithm": "gd", "rules": ["age, sex, race -> occupation", "age, education -> relationship"],
            "default_guarantee": {"type": "l_diversity", "l": 2}}}
END
publish "$work/lake/adult" "$work/chosen.json" "$work/out/chosen" "$key"
"$guardian" verify "$work/out/chosen" --original "$work/adult.csv" | tail -n 1
publish "$work/lake/adult" "$work/chosen.json" "$work/out/chosen-again" "$key"
check same "$work/out/chosen" "$work/out/chosen-again"
most=$(cut -d, -f3 "$work/adult.csv" | sort | uniq -c | sort -rn | awk 'NR == 1 { print $1 }')
for bound in $((most - 1)) "$most"; do
    "$guardian" plan "$work/lake/adult" examples/adult.json "${engine[@]}" \
        --subject fnlwgt --max-rows-per-subject "$bound" --json >"$work/persons-$bound.json" 2>&1 || true
done
grep -q "a subject has more than $((most - 1)) rows" "$work/persons-$((most - 1)).json"
grep -q "fnlwgt with at most $most rows" "$work/persons-$most.json"
echo "tables were chosen by the rows, and rows of persons were counted"

# classes follow from the rows alone, and sliced buckets from these and the key: they are those of the ordinary engine
cat >"$work/classes.json" <<'END'
{"unlisted": "drop",
 "method": {"type": "generalize", "quasi_identifiers": ["age", "sex", "race", "education"], "sensitive": ["occupation"],
            "guarantees": [{"type": "k_anonymity", "k": 10}, {"type": "l_diversity", "l": 3}]}}
END
cat >"$work/slices.json" <<'END'
{"unlisted": "drop",
 "method": {"type": "slicing", "sensitive": "occupation", "split": "strict", "guarantee": {"type": "l_diversity", "l": 2},
            "columns": {"explicit": [["age", "race"], ["education", "hours-per-week"], ["sex", "occupation"]]}}}
END
compared() { # TABLE SPECIFICATION ORIGINAL OUT
    publish "$1" "$2" "$4" "$key"
    "$guardian" verify "$4" --original "$3" | tail -n 1
    "$guardian" publish "$3" "$2" --out "$4-at-hand" --reproduce "$key" >/dev/null
    check equal "$4" "$4-at-hand"
}
for form in classes slices; do
    compared "$work/lake/adult" "$work/$form.json" "$work/adult.csv" "$work/out/$form"
    compared "$work/lake/visits" "$work/lake/visits-$form.json" "$work/lake/visits.parquet" "$work/out/visits-$form"
done
echo "classes and slices: the parts are those of the ordinary engine"

# by its name in the catalog, the table is the same
check catalog "$work/lake/adult" open.adult
publish spark_catalog.open.adult "$work/slices.json" "$work/out/catalog" "$key"
check same "$work/out/slices" "$work/out/catalog"

# a release goes to an object store from the scratch folder, and is verified there
"$work/venv/bin/moto_server" --host 127.0.0.1 --port 15013 >>"$work/logs/objects.log" 2>&1 &
pids+=($!)
export AWS_ACCESS_KEY_ID=smoke AWS_SECRET_ACCESS_KEY=smoke AWS_REGION=us-east-1
export AWS_ENDPOINT=http://127.0.0.1:15013 AWS_ALLOW_HTTP=true
curl -fsS --retry 30 --retry-connrefused -X PUT "$AWS_ENDPOINT/releases" >/dev/null
for form in thresholds classes; do
    "$guardian" publish "$work/lake/adult" "$work/$form.json" "${engine[@]}" \
        --out "s3://releases/$form" >/dev/null
    [[ -z $(ls -A "$work/scratch") ]]
    "$guardian" verify "s3://releases/$form" --original "$work/adult.csv" | tail -n 1
done
if curl -fsS "$AWS_ENDPOINT/releases" | grep -q guardian-publication; then
    echo "the claim of a release is left in the store" >&2
    exit 1
fi

# a service publishes what it registers, and goes on with a job after it was killed
served() {
    "$guardian" serve --listen 127.0.0.1:18099 --data "$work/data" --engines lake=sc://127.0.0.1:15012 \
        --engine-require-encryption --engine-scratch "lake=$work/scratch" --engine-tables "lake=$work/lake/*" >>"$work/logs/serve.log" 2>&1 &
    service=$!
    pids+=("$service")
    for _ in {1..60}; do
        curl -fs http://127.0.0.1:18099/readyz >/dev/null && return
        sleep 0.5
    done
    echo "the service does not answer" >&2
    return 1
}
served
check service http://127.0.0.1:18099 "$work"
[[ -z $(ls -A "$work/scratch") ]]
echo "a service: an upload of the same rows has the release that Spark made"
kill "$service"
wait "$service" || true
rm -rf "$work/data"
served
job=$(check queued http://127.0.0.1:18099 "$work")
until compgen -G "$work/scratch/*/*.w" >/dev/null; do sleep 0.1; done
kill -9 "$service"
wait "$service" || true
served
check ended http://127.0.0.1:18099 "$job"
[[ -z $(ls -A "$work/scratch") ]]
kill "$service"
wait "$service" || true
echo "a service was killed: its job went on, and nothing of it is left in the scratch"

"${guardian%/*}/examples/census" "$rows" "$work/census.csv"
check parquet "$work/census.csv" "$work/lake/census"
started=$SECONDS
publish "$work/lake/census" benches/anatomy.json "$work/out/census" "$key"
echo "census: $rows rows in $((SECONDS - started)) s"
"$guardian" verify "$work/out/census" --original "$work/census.csv" | tail -n 1

# an executor is killed while rows are assigned
(
    until compgen -G "$work/scratch/*/t1.w" >/dev/null; do sleep 0.2; done
    pkill -9 -n -f CoarseGrainedExecutorBackend
    touch "$work/killed"
) &
publish "$work/lake/census" benches/anatomy.json "$work/out/killed" "$key"
[[ -e $work/killed ]]
check same "$work/out/census" "$work/out/killed"
echo "an executor was killed: the parts hold the same rows"

# the command is killed in each phase: nothing is visible, and the next one clears what it left
killed_at() { # PATTERN, below the scratch or the folder of the release
    "$guardian" publish "$work/lake/adult" examples/adult.json "${engine[@]}" \
        --out "$work/out/never" >/dev/null 2>&1 &
    local command=$!
    until compgen -G "$1" >/dev/null; do
        kill -0 "$command" || {
            echo "the command ended before $1 was there" >&2
            return 1
        }
        sleep 0.1
    done
    kill -9 "$command"
    wait "$command" || true
    [[ ! -e $work/out/never ]]
}
for phase in "scratch/guardian-*" "scratch/*/*.k" "scratch/*/*.w" "out/.never.*/*.qi" "out/.never.*/*.sa" \
    "out/.never.*/*.sa/00000.parquet"; do
    killed_at "$work/$phase"
    rm -rf "$work"/out/.never.*
done
# what Spark still runs of killed commands may write to the scratch folder for a while
"$guardian" publish "$work/lake/adult" examples/adult.json "${engine[@]}" \
    --out "$work/out/afterwards" >/dev/null
"$guardian" verify "$work/out/afterwards" --original "$work/adult.csv" | tail -n 1
echo "the command was killed in six phases: nothing is visible of it"

# the driver is killed: the command ends, and leaves nothing
(
    until compgen -G "$work/scratch/*/*.w" >/dev/null; do sleep 0.1; done
    kill -9 "$driver"
) &
if "$guardian" publish "$work/lake/adult" examples/adult.json "${engine[@]}" \
    --out "$work/out/driverless" >/dev/null 2>"$work/driverless"; then
    echo "a release was made without its driver" >&2
    exit 1
fi
[[ ! -e $work/out/driverless ]]
grep -q 'cannot be reached' "$work/driverless"
connect_cluster
publish "$work/lake/adult" examples/adult.json "$work/out/driver"
"$guardian" verify "$work/out/driver" --original "$work/adult.csv" | tail -n 1
echo "the driver was killed: $(tail -n 1 "$work/driverless")"

check secrets "$work" "$key"
echo "logs, events, work folders and shuffle files hold no key, no plan and no value"
