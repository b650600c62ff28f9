#!/usr/bin/env bash
# Measures a commit and the working tree in turn, five times, and prints one table of the medians.
#
#   scripts/bench_compare.sh COMMIT             builds both: the commit as a worktree in the target folder
#   scripts/bench_compare.sh --table BASE HEAD  only the table, of two folders with the JSON files of `make bench`
#
# Exit code 1: a count or size (what docs/performance.toml gives a `limit`) is larger, or the median of another row is more
# than 10 % worse. RUNS=n measures n times.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Rows of both sides, each with the median of its values. serde_json writes one field a line.
table() {
    awk -v base_files="$1" -v toml=docs/performance.toml '
        function median(text,    values, n, i, j, held) {
            n = split(text, values, " ")
            for (i = 2; i <= n; i++) {
                held = values[i] + 0
                for (j = i - 1; j > 0 && values[j] + 0 > held; j--) values[j + 1] = values[j]
                values[j + 1] = held
            }
            return n % 2 ? values[(n + 1) / 2] + 0 : (values[n / 2] + values[n / 2 + 1]) / 2
        }
        function field(line) {
            sub(/^[^:]*: */, "", line)
            sub(/,$/, "", line)
            gsub(/^"|"$/, "", line)
            return line
        }
        BEGIN {
            while ((getline line < toml) > 0) {
                if (line ~ /^id = /) { id = line; gsub(/^id = "|"$/, "", id) }
                if (line ~ /^better = "more"/) is_more[id] = 1
            }
        }
        FNR == 1 { side = index(FILENAME, base_files "/") == 1 ? "base" : "head" }
        /^ *"id":/ { id = field($0); if (side == "head" && !(id in seen)) { seen[id] = 1; order[++rows] = id } }
        /^ *"unit":/ { unit[id] = field($0) }
        /^ *"value":/ && field($0) != "null" { values[side, id] = values[side, id] " " field($0) }
        /^ *"limit":/ && side == "head" && field($0) != "null" { is_exact[id] = 1 }
        END {
            printf "%-28s %14s %14s %-12s %8s\n", "row", "base", "now", "unit", "change"
            for (row = 1; row <= rows; row++) {
                id = order[row]
                if (!(("head", id) in values)) { printf "%-28s not measured\n", id; continue }
                now = median(values["head", id])
                if (!(("base", id) in values)) { printf "%-28s %14s %14.2f %-12s new\n", id, "", now, unit[id]; continue }
                was = median(values["base", id])
                worse = id in is_more ? was - now : now - was
                # Of nothing, everything is a change.
                part = was == 0 ? (now == 0 ? 0 : 1) : worse / was
                limit = id in is_exact ? 1e-9 : 0.1
                verdict = part > limit ? "  WORSE" : ""
                if (verdict) failed++
                change = was == 0 ? (now == 0 ? 0 : 100) : (now / was - 1) * 100
                printf "%-28s %14.2f %14.2f %-12s %+7.1f%%%s\n", id, was, now, unit[id], change, verdict
            }
            if (rows == 0) { print "no rows"; exit 2 }
            if (failed) { printf "%d of %d rows are worse\n", failed, rows; exit 1 }
        }' "$1"/*.json "$2"/*.json
}

if [ "${1:-}" = --table ]; then
    [ $# -eq 3 ] || { echo 'bench_compare: --table takes two folders' >&2; exit 2; }
    table "${2%/}" "${3%/}"
    exit
fi
[ $# -eq 1 ] || { echo 'bench_compare: which commit? make bench-compare BASE=commit' >&2; exit 2; }
commit=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "bench_compare: there is no commit $1" >&2; exit 2; }

target=$(scripts/target_dir.sh)
folder=$target/bench-compare
rm -rf "$folder/base.json" "$folder/head.json"
mkdir -p "$folder/base.json" "$folder/head.json"
if [ -e "$folder/base/.git" ]; then
    git -C "$folder/base" checkout --quiet --force --detach "$commit"
else
    git worktree prune
    git worktree add --quiet --detach "$folder/base" "$commit"
fi

# measure FOLDER TARGET ARGUMENTS..: `make` there, with a target folder of its own.
measure() { CARGO_TARGET_DIR=$2 BENCH_KEEP_DOCS=1 make --no-print-directory -C "$1" "${@:3}"; }
build() {
    measure "$1" "$2" image linux
    (cd "$1" && CARGO_TARGET_DIR=$2 cargo bench --locked -p hcomm-tests --bench performance --no-run)
}
build "$folder/base" "$folder/target"
build "$PWD" "$target"
for run in $(seq "${RUNS:-5}"); do
    printf 'run %d of %d\n' "$run" "${RUNS:-5}"
    BENCH_JSON=$folder/base.json/$run.json measure "$folder/base" "$folder/target" bench >"$folder/base.log" 2>&1
    BENCH_JSON=$folder/head.json/$run.json measure "$PWD" "$target" bench >"$folder/head.log" 2>&1
done
table "$folder/base.json" "$folder/head.json"
