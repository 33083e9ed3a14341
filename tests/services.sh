#!/bin/sh
# Install the servers that tests talk to, where they are absent and this is Debian's root.
set -eu

absent=""
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null || absent="$absent postgresql"
{ [ -x /usr/bin/chromium ] && [ -x /usr/bin/chromedriver ]; } || absent="$absent chromium chromium-driver"

[ -n "$absent" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $absent
else
    echo "tests that need them are skipped:$absent (apt-get install$absent)"
fi
