import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { mountsBelow, parseMountTable } from '#lib/files/mount-table.ts'

import { cgroupMounts } from './cgroups.ts'
import { natRemovals } from './leftovers.ts'
import { containerdPaths } from './paths.ts'
import { containerdIn, idleShimsIn, shimsIn } from './process-table.ts'

const MOUNTINFO = `21 1 0:19 / / rw - ext4 /dev/vda rw
30 21 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
31 21 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
40 21 0:40 / /run/hyperkube/a rw - tmpfs tmpfs rw
41 40 0:41 / /run/hyperkube/a/x\\040y rw shared:1 - overlay overlay rw
42 21 0:42 / /run/hyperkube/ab rw - tmpfs tmpfs rw
`

/** Rules of two networks, one with a mapped port, and a foreign rule. */
const SAVED = `*nat
:PREROUTING ACCEPT [0:0]
:CNI-1111 - [0:0]
:CNI-2222 - [0:0]
:CNI-DN-1111 - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-HOSTPORT-MASQ - [0:0]
:CNI-HOSTPORT-SETMARK - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-A POSTROUTING -s 10.1.0.2/32 -m comment --comment "name: \\"hk-a\\" id: \\"one\\"" -j CNI-1111
-A POSTROUTING -s 10.2.0.2/32 -m comment --comment "name: \\"hk-b\\" id: \\"two\\"" -j CNI-2222
-A POSTROUTING -o eth0 -j MASQUERADE
-A CNI-1111 -d 10.1.0.0/24 -m comment --comment "name: \\"hk-a\\" id: \\"one\\"" -j ACCEPT
-A CNI-1111 ! -d 224.0.0.0/4 -m comment --comment "name: \\"hk-a\\" id: \\"one\\"" -j MASQUERADE
-A CNI-2222 ! -d 224.0.0.0/4 -m comment --comment "name: \\"hk-b\\" id: \\"two\\"" -j MASQUERADE
-A CNI-DN-1111 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.0.2:80
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"hk-a\\" id: \\"one\\"" -m multiport --dports 80 -j CNI-DN-1111
-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
-A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000
COMMIT
`

describe('leftovers of a containerd instance', () => {
  it('include only mounts below its directories, newest first', () => {
    const mounts = mountsBelow(parseMountTable(MOUNTINFO), '/run/hyperkube/a')
    assert.deepEqual(
      mounts.map(({ path }) => path),
      ['/run/hyperkube/a/x y', '/run/hyperkube/a'],
    )
  })

  it('include cgroups of both cgroup versions', () => {
    assert.deepEqual(cgroupMounts(parseMountTable(MOUNTINFO)), ['/sys/fs/cgroup/memory', '/sys/fs/cgroup/unified'])
  })

  it('include NAT rules and chains of its network, and unused shared chains', () => {
    const removals = natRemovals(SAVED, 'hk-a').map((args) => args.join(' '))
    assert.deepEqual(removals, [
      '-D POSTROUTING -s 10.1.0.2/32 -m comment --comment name: "hk-a" id: "one" -j CNI-1111',
      '-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
      '-D POSTROUTING -m comment --comment CNI portfwd requiring masquerade -j CNI-HOSTPORT-MASQ',
      ...['-F', '-X'].flatMap((verb) =>
        ['CNI-1111', 'CNI-DN-1111', 'CNI-HOSTPORT-DNAT', 'CNI-HOSTPORT-SETMARK', 'CNI-HOSTPORT-MASQ'].map(
          (chain) => `${verb} ${chain}`,
        ),
      ),
    ])
  })

  it('exclude chains that another network uses', () => {
    const removals = natRemovals(SAVED, 'hk-b').map((args) => args.join(' '))
    assert.deepEqual(removals, [
      '-D POSTROUTING -s 10.2.0.2/32 -m comment --comment name: "hk-b" id: "two" -j CNI-2222',
      '-F CNI-2222',
      '-X CNI-2222',
    ])
    assert.deepEqual(natRemovals('', 'hk-b'), [])
  })

  it('include shims with its socket, and their child processes', () => {
    const places = containerdPaths('/data')
    const shim = ['containerd-shim-runc-v2', '-namespace', 'k8s.io', '-id', 'x', '-address']
    const all = [
      { pid: 5, parent: 4, args: ['sleep'] },
      { pid: 2, parent: 1, args: ['containerd', '--config', places.configFile] },
      { pid: 3, parent: 1, args: [...shim, places.socket] },
      { pid: 4, parent: 3, args: ['pause'] },
      { pid: 6, parent: 1, args: [...shim, '/run/containerd/containerd.sock'] },
      { pid: 7, parent: 6, args: ['pause'] },
    ]
    assert.deepEqual(containerdIn(all, places), [2])
    assert.deepEqual(shimsIn(all, places), [3, 4, 5])
  })

  it('include shims without containers', () => {
    const places = containerdPaths('/a')
    const shim = (socket: string): string[] => ['shim', '-id', 'x', '-address', socket]
    const all = [
      { pid: 4, parent: 1, args: shim(places.socket) },
      { pid: 5, parent: 4, args: ['sleep'] },
      { pid: 6, parent: 1, args: shim(places.socket) },
      { pid: 7, parent: 1, args: shim('/run/containerd/containerd.sock') },
    ]
    assert.deepEqual(idleShimsIn(all, places), [6])
  })
})
