# Called with the folder of the node, and the path at which its kubelet works.
mount -t tmpfs run /run
mkdir -p /run/containerd /run/netns /run/lock /run/knobs "$2" "$1/kubelet" "$1/log" /var/lib/cni
mount --bind "$1/kubelet" "$2"
mount --bind "$1/log" /var/log
mount -t tmpfs cni /var/lib/cni
for knob in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
	kernel/keys/root_maxbytes; do
	copy=/run/knobs/${knob##*/}
	cat "/proc/sys/$knob" >"$copy"
	mount --bind "$copy" "/proc/sys/$knob"
done
mount --make-rshared /
echo 1 >/proc/sys/net/ipv4/ip_forward
touch "$1/begun"
while :; do sleep 3600 & wait $!; done
