#!/bin/sh
# Starts the QEMU guest agent, and installs it where the image lacks it. It never fails
# the boot: without the agent the instance is found by its lease.
start() { systemctl enable qemu-guest-agent; systemctl start --no-block qemu-guest-agent; }
if ! command -v qemu-ga >/dev/null 2>&1; then
  if command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    timeout 60 apt-get -o DPkg::Lock::Timeout=60 update
    timeout 120 apt-get -o DPkg::Lock::Timeout=60 install -y --no-install-recommends qemu-guest-agent
  elif command -v dnf >/dev/null 2>&1; then
    timeout 180 dnf install -y qemu-guest-agent
  elif command -v zypper >/dev/null 2>&1; then
    timeout 180 zypper --non-interactive install qemu-guest-agent
  elif command -v apk >/dev/null 2>&1; then
    timeout 180 apk add qemu-guest-agent
  fi
fi
if command -v systemctl >/dev/null 2>&1; then
  start
elif command -v rc-service >/dev/null 2>&1; then
  rc-update add qemu-guest-agent; rc-service qemu-guest-agent start
fi
exit 0
