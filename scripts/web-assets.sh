#!/usr/bin/env bash
# Rebuilds crates/serve/assets/vendor: third-party files of the live page, from npm, of fixed versions.
# `SHA256SUMS` has the checksum of every file; a test compares them. Run it only to take a new version.
set -euo pipefail
cd "$(dirname "$0")/../crates/serve/assets/vendor"

UPLOT=1.6.32

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "uplot@$UPLOT" >/dev/null && tar xzf "uplot-$UPLOT.tgz")
cp "$work/package/dist/uPlot.iife.min.js" "$work/package/dist/uPlot.min.css" .
cp "$work/package/LICENSE" uPlot.LICENSE
cat > README.md <<END
Third-party files of the live page. \`scripts/web-assets.sh\` writes this folder.

| files | package | version | licence |
|---|---|---|---|
| uPlot.iife.min.js, uPlot.min.css | [uplot](https://www.npmjs.com/package/uplot) | $UPLOT | MIT (uPlot.LICENSE) |
END
sha256sum uPlot.iife.min.js uPlot.min.css uPlot.LICENSE > SHA256SUMS
