#!/bin/sh
# Publishes a release while no runner works in the project.
# The lock lasts as long as the command, and is removed however it ends.
set -eu
exec tenure exclusive run --holder release --wait 10m --drain -- "$@"
