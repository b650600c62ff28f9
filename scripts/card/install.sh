#!/usr/bin/env bash
# Installs a package of AI CPU kernels into a CANN toolkit, so that the runtime sends it to a card. It lies beside the
# package that it installs. Not yet run on hardware.
#
#   install.sh [--cann DIR] [--dry-run]               copies the package and adds its block to the whitelist
#   install.sh [--cann DIR] [--dry-run] --uninstall   takes both away
#   install.sh --validate FILE...                     checks whitelist files, a line of answer for each
#
# DIR is the folder of the toolkit; without it, ASCEND_HOME_PATH. One bad line in the whitelist makes the runtime drop every
# package, the vendor's too. So: the whole file is checked before and after the change, which is made beside it and renamed
# into place; the file as it was is kept as ascend_package_load.ini.hcomm-backup.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly MAX_PACKAGES=100

fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

usage() {
    sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

# The rules of the runtime's parser, on the strict side where its source leaves room. A line with `name:` in it opens a
# block; the next four lines are its values, in any order, each key once; other lines do not count.
readonly VALIDATE='
function trim(text) { sub(/^ +/, "", text); sub(/ +$/, "", text); return text }

# Whether the next line belongs to what was read; sets reason if the runtime would refuse it.
function judge(line,    colon, key, value) {
    if (left == 0) {
        colon = index(line, "name:")
        if (colon == 0) return
        value = trim(substr(line, colon + 5))
        if (value == "") { reason = "a name: without a package"; return }
        if (value ~ /[\001-\037\177]/) { reason = "a tab or control character in a name"; return }
        packages++
        if (packages > max) { reason = "more than " max " packages"; return }
        left = 4
        split("", seen)
        return
    }
    left--
    colon = index(line, ":")
    if (line ~ /[\001-\037\177]/) reason = "a tab or control character in a block"
    else if (line == "") reason = "an empty line inside a block"
    else if (colon == 0) reason = "a line without a colon inside a block"
    if (reason != "") return
    key = trim(substr(line, 1, colon - 1))
    value = trim(substr(line, colon + 1))
    if (key == "install_path") { if (value !~ /^[0-3]$/) reason = "an install_path that is not 0 to 3" }
    else if (key == "optional" || key == "load_as_per_soc") {
        if (value != "true" && value != "false") reason = "a value of " key " that is neither true nor false"
    }
    else if (key == "package_path") { if (value == "") reason = "a package_path without a value" }
    else reason = "a line inside a block with a key that the runtime does not know"
    if (reason == "" && key in seen) reason = "the key " key " twice in a block"
    seen[key] = 1
}

BEGIN {
    bad = 0
    for (i = 1; i < ARGC; i++) {
        file = ARGV[i]
        left = packages = number = 0
        reason = ""
        while (reason == "" && (status = (getline line < file)) > 0) { number++; judge(line) }
        if (status < 0) reason = "it can not be read"
        if (reason == "" && left > 0) reason = "the last block has " left " lines too few"
        close(file)
        if (reason == "") print file ": ok, " packages " packages"
        else { print file ": line " number ": " reason; bad = 1 }
    }
    exit bad
}'

# Writes a whitelist that has passed the rules, without the block of `package`, or with `block` in its place or at the end.
readonly REWRITE='
BEGIN {
    while ((getline line < file) > 0) {
        if (left > 0) { left--; if (!ours) print line; continue }
        at = index(line, "name:")
        if (at > 0) {
            name = substr(line, at + 5)
            sub(/^ +/, "", name); sub(/ +$/, "", name)
            left = 4
            ours = name == package
            if (ours) { if (block != "" && !placed) { print block; placed = 1 } continue }
        }
        print line
    }
    if (block != "" && !placed) print block
}'

# Checks whitelist files: all of them in one process.
validate() {
    awk -v max=$MAX_PACKAGES "$VALIDATE" "$@" </dev/null
}

# Whether one file is free of zero bytes, which text tools do not agree about, and passes the rules. Says why not.
check_whitelist() {
    local file=$1 bytes
    bytes=$(wc -c <"$file")
    if [ "$(tr -d '\000' <"$file" | wc -c)" -ne "$bytes" ]; then
        printf '%s: a zero byte\n' "$file"
        return 1
    fi
    validate "$file"
}

action=install dry_run=no cann=${ASCEND_HOME_PATH:-}
while [ $# -gt 0 ]; do
    case $1 in
        --validate)
            shift
            [ $# -gt 0 ] || usage
            validate "$@"
            exit
            ;;
        --cann)
            [ $# -ge 2 ] || usage
            cann=$2
            shift
            ;;
        --dry-run) dry_run=yes ;;
        --uninstall) action=uninstall ;;
        *) usage ;;
    esac
    shift
done

[ -n "$cann" ] || fail "which toolkit? Set ASCEND_HOME_PATH, or give --cann DIR"
[ -d "$cann/opp" ] || fail "$cann is not a CANN toolkit: it has no folder opp"
cann=$(cd "$cann" && pwd -P)
command -v flock >/dev/null || fail "flock is missing: install util-linux"

# What to install is told by the block that lies beside this script.
block_file=$here/whitelist.txt
[ -f "$block_file" ] || fail "$block_file is missing: install.sh must lie beside the package"
if ! answer=$(check_whitelist "$block_file"); then fail "$answer"; fi
block=$(cat "$block_file")
[ "$(wc -l <"$block_file")" -eq 5 ] || fail "$block_file: not one block of five lines"
package=$(sed -n '1s/^name://p' "$block_file")
package_path=$(sed -n 's/^package_path://p' "$block_file")
[[ $package =~ ^[A-Za-z0-9_-][A-Za-z0-9._-]*\.tar\.gz$ ]] || fail "$block_file: '$package' is not a package name"
[[ $package_path =~ ^opp/vendors/[A-Za-z0-9_-][A-Za-z0-9._-]*/aicpu/kernel$ ]] ||
    fail "$block_file: package_path is '$package_path', not opp/vendors/NAME/aicpu/kernel"
vendor=${package_path%/aicpu/kernel}
kernel_dir=$cann/$package_path
config_dir=$cann/$vendor/aicpu/config

descriptions=()
for description in "$here"/*.json "$here"/*.ini; do
    [ ! -f "$description" ] || descriptions+=("$(basename "$description")")
done
if [ $action = install ]; then
    [ -f "$here/$package" ] || fail "$here/$package is missing"
    gzip -t "$here/$package" || fail "$here/$package is damaged"
    [ ${#descriptions[@]} -gt 0 ] || fail "$here has no description (.json) of the kernels"
fi

# A link stays a link: what it names is replaced.
whitelist=$(readlink -m "$cann/conf/ascend_package_load.ini")
conf_dir=$(dirname "$whitelist")
if [ ! -d "$conf_dir" ]; then
    [ $action = install ] || fail "there is no $conf_dir: nothing is installed in $cann"
    [ $dry_run = yes ] || mkdir -p "$conf_dir"
fi

temporaries=()
# Left behind by no way out, an interrupt included.
clean_up() {
    [ ${#temporaries[@]} -eq 0 ] || rm -f "${temporaries[@]}"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

if [ -d "$conf_dir" ]; then
    # Held until the end: of two installations at a time one waits.
    exec 9<"$conf_dir"
    flock -w 60 9 || fail "another installation has held $conf_dir for 60 s"
fi

old=$(mktemp) && temporaries+=("$old")
if [ -e "$whitelist" ]; then
    [ -f "$whitelist" ] || fail "$whitelist is not a regular file"
    cat "$whitelist" >"$old"
    if ! answer=$(check_whitelist "$old"); then
        fail "the runtime refuses $whitelist; correct it first, nothing was changed: ${answer#"$old": }"
    fi
fi

new_text() {
    local wanted=
    [ $action = uninstall ] || wanted=$block
    # Passed by the environment: awk reads escapes in what -v sets.
    FILE=$old PACKAGE=$package BLOCK=$wanted awk \
        "BEGIN { file = ENVIRON[\"FILE\"]; package = ENVIRON[\"PACKAGE\"]; block = ENVIRON[\"BLOCK\"] } $REWRITE" </dev/null
}

if [ $dry_run = yes ]; then
    new=$(mktemp) && temporaries+=("$new")
else
    # Beside the file, so that the rename is one step.
    new=$(mktemp "$whitelist.hcomm-new.XXXXXX") && temporaries+=("$new")
fi
new_text >"$new"
if ! answer=$(check_whitelist "$new"); then
    fail "the changed whitelist would be refused, nothing was changed: ${answer#"$new": }"
fi

say() {
    if [ $dry_run = yes ]; then printf 'would %s\n' "$*"; else printf '%s\n' "$*"; fi
}

# Puts file $1 into folder $2 in one step.
place() {
    local to=$2/$(basename "$1") beside
    say "copy $(basename "$1") to $2"
    [ $dry_run = no ] || return 0
    mkdir -p "$2"
    beside=$(mktemp "$to.hcomm-new.XXXXXX") && temporaries+=("$beside")
    cat "$1" >"$beside"
    chmod 644 "$beside"
    mv -f "$beside" "$to"
}

replace_whitelist() {
    if [ ! -e "$whitelist" ] && [ $action = uninstall ]; then return; fi
    if cmp -s "$old" "$new" && [ -e "$whitelist" ]; then
        printf '%s is not changed\n' "$whitelist"
        return
    fi
    say "change $whitelist:"
    diff -u --label before --label after "$old" "$new" || true
    [ $dry_run = no ] || return 0
    if [ -e "$whitelist" ]; then
        local backup
        backup=$(mktemp "$whitelist.hcomm-new.XXXXXX") && temporaries+=("$backup")
        cp -p "$whitelist" "$backup"
        mv -f "$backup" "$whitelist.hcomm-backup"
        # Owner and mode stay.
        chmod --reference="$whitelist" "$new"
        [ "$(id -u)" -ne 0 ] || chown --reference="$whitelist" "$new"
    else
        chmod 644 "$new"
    fi
    sync "$new"
    # Something else may have written it since it was read.
    if [ -e "$whitelist" ] && ! cmp -s "$whitelist" "$old"; then fail "$whitelist was changed meanwhile: run again"; fi
    mv -f "$new" "$whitelist"
}

if [ $action = install ]; then
    # The package first: a block whose package is missing sends nothing.
    place "$here/$package" "$kernel_dir"
    for description in "${descriptions[@]}"; do place "$here/$description" "$config_dir"; done
    replace_whitelist
    [ $dry_run = yes ] || cat <<END
installed. Programs that start from now on send the package to the card. Not yet run on hardware.
An unsigned package is refused until root allows it on the host of the card, for each device ID:
    npu-smi set -t custom-op-secverify-enable -i ID -d 1
    npu-smi set -t custom-op-secverify-mode -i ID -d 0
END
else
    # The block first: a package without a block is not sent.
    replace_whitelist
    removed=("$kernel_dir/$package")
    for description in ${descriptions[@]+"${descriptions[@]}"}; do removed+=("$config_dir/$description"); done
    for file in "${removed[@]}"; do
        [ -e "$file" ] || continue
        say "remove $file"
        [ $dry_run = yes ] || rm -f "$file"
    done
    if [ $dry_run = no ]; then
        # Folders that others use are not empty, and stay.
        for folder in "$kernel_dir" "$config_dir" "$cann/$vendor/aicpu" "$cann/$vendor"; do
            rmdir "$folder" 2>/dev/null || true
        done
    fi
fi
