cat > release.sh <<'X'
#!/bin/sh
# Usage: release.sh [-n] VERSION
set -e
usage() { echo "usage: release.sh [-n] VERSION" >&2; exit 2; }
dry=
while getopts n option; do
    case $option in
    n) dry=yes ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
version=$1
[ -n "$version" ] || usage
run() {
    if [ "$dry" ]; then echo "+ $*"; else "$@"; fi
}
latest() {
    if [ "$dry" ]; then echo "+ echo $version > dist/LATEST"; else echo "$version" > dist/LATEST; fi
}
run mkdir -p dist
run cp notes.txt "dist/notes-$version.txt"
latest
X
