import assert from 'node:assert/strict'
import { test } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { readClusterFile } from './cluster-file.ts'
import { toDesired } from './desired-cluster.ts'
import { completeBundle } from './pki/bundle.ts'

const FILE = `
nodes:
  - { address: 10.0.0.1, user: root, hostname_override: one, role: [controlplane, etcd] }
  - { address: 10.0.0.2, user: root, hostname_override: two, role: [worker] }
network: { plugin: flannel }
prefix_path: /data
`

test('toDesired() gives each machine the services, files and taints of its roles, below the prefix', () => {
  const { cluster, faults } = readClusterFile(FILE)
  assert.deepEqual(faults, [])
  assert.ok(cluster)
  const { bundle } = completeBundle(cluster, {}, { clock: realClock, random: createSeededRandom(1) })
  const { hosts, home, etcd } = toDesired(cluster, {
    bundle,
    encryption: '',
    state: 'state',
    program: () => '/data/opt/hyperkube/programs/x',
    runtime: (_, dataDir) => ({ dataDir, endpoint: 'unix:///run/x', cgroupParent: '/x', stateFolder: '/run/x' }),
    includes: new Map(),
  })
  const [one, two] = hosts
  assert.ok(one && two)
  const names = (host: typeof one): string[] => host.services.map(({ spec }) => spec.name)
  assert.deepEqual(names(one), [
    'etcd',
    'etcd-snapshots',
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
    'containerd',
    'kubelet',
    'flanneld',
    'kube-proxy',
  ])
  assert.deepEqual(names(two), ['api-proxy', 'containerd', 'kubelet', 'flanneld', 'kube-proxy'])
  assert.equal(home, '/data/opt/hyperkube')
  assert.ok(hosts.every(({ files }) => files.every(({ path }) => path.startsWith('/data/'))))
  assert.ok(two.files.every(({ path }) => !path.endsWith('kube-ca-key.pem')))
  assert.deepEqual(
    one.node.taints.map(({ key }) => key.split('/')[1]),
    ['etcd', 'controlplane'],
  )
  assert.deepEqual(two.node.taints, [])
  assert.equal(etcd.peerUrl(one), 'https://10.0.0.1:2380')
})
