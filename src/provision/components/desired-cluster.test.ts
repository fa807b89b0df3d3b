import assert from 'node:assert/strict'
import { test } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { DesiredCluster } from '../desired.ts'
import { type ClusterFile, readClusterFile } from '../file/cluster-file.ts'
import { completeBundle } from '../pki/bundle.ts'
import { type DesiredInputs, toDesired } from './desired-cluster.ts'

const FILE = `
nodes:
  - { address: 10.0.0.1, user: root, hostname_override: one, role: [controlplane, etcd] }
  - { address: 10.0.0.2, user: root, hostname_override: two, role: [worker] }
network: { plugin: flannel }
prefix_path: /data
`

function desiredOf(cluster: ClusterFile, archives: DesiredInputs['archives'] = []): DesiredCluster {
  const { bundle } = completeBundle(cluster, {}, { clock: realClock, random: createSeededRandom(1) })
  return toDesired(cluster, {
    bundle,
    encryption: '',
    state: 'state',
    program: () => '/data/opt/hyperkube/programs/x',
    runtime: (_, dataDir) => ({ dataDir, endpoint: 'unix:///run/x', cgroupParent: '/x', stateFolder: '/run/x' }),
    includes: new Map(),
    archives,
  })
}

test('toDesired() gives kube-network-policies a separate identity for canal, and sends images to all machines', () => {
  const { cluster } = readClusterFile(FILE.replace('plugin: flannel', 'plugin: canal, options: { canal_iface: eth1 }'))
  assert.ok(cluster)
  const { hosts, access } = desiredOf(cluster, [{ source: '/tmp/a.tar', sha256: 'abc' }])
  for (const { services, uploads, ending } of hosts) {
    const holder = services.find(({ spec }) => spec.name === 'kube-network-policies')
    assert.match(holder?.spec.command.join(' ') ?? '', /--kubeconfig=\S+kubecfg-kube-network-policies\.yaml/)
    assert.ok(services.some(({ spec }) => spec.command.includes('--iface=eth1')))
    assert.deepEqual(ending['kube-network-policies']?.slice(1), ['kube-network-policies', '--cleanup'])
    assert.deepEqual(uploads.at(-1)?.path, '/data/opt/hyperkube/images/abc.tar')
  }
  assert.match(access[0]?.manifest ?? '', /networkpolicies/)
})

test('toDesired() sets the MTU in cluster.yml', () => {
  const { cluster } = readClusterFile(FILE.replace('plugin: flannel', 'plugin: canal, mtu: 1400'))
  assert.ok(cluster)
  for (const { files } of desiredOf(cluster).hosts)
    assert.match(String(files.find(({ path }) => path.endsWith('net-conf.json'))?.content), /"MTU": 1400/)
})

test('toDesired() writes registry passwords only to the files of kubelets', () => {
  const registries = 'private_registries: [{ url: r.example, user: me, password: secret-word }, { url: open.example }]'
  const { cluster } = readClusterFile(`${FILE}${registries}\n`)
  assert.ok(cluster)
  for (const { files, services } of desiredOf(cluster).hosts) {
    const file = files.find(({ path }) => path === '/data/var/lib/kubelet/config.json')
    const auth = Buffer.from('me:secret-word').toString('base64')
    assert.deepEqual(JSON.parse(file?.content.toString() ?? ''), { auths: { 'r.example': { auth } } })
    assert.equal(file?.mode, 0o600)
    assert.ok(!JSON.stringify(services).includes('secret-word'))
  }
})

test('toDesired() gives each machine the services, files and taints of its roles, below prefix_path', () => {
  const { cluster, faults } = readClusterFile(FILE)
  assert.deepEqual(faults, [])
  assert.ok(cluster)
  const { hosts, home, etcd } = desiredOf(cluster)
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
