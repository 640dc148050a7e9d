#!/bin/sh
set -e
trap 'runc --root %[1]s/state delete -f proof-engine' EXIT
runc --root %[1]s/state create --bundle %[1]s --pid-file %[1]s/pid proof-engine
sleep 1
runc --root %[1]s/state start proof-engine
# start returns before the workload is executed, which the removal would forestall
while read -r name </proc/$(cat %[1]s/pid)/comm && [ "$name" != probe ]; do sleep 0.01; done
