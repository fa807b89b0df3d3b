import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { createKey, keyToPem, parsePrivateKey } from '#lib/x509/key.ts'
import { parseRequest, verifyRequest } from '#lib/x509/request.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

import type { ClusterFile, ClusterNode } from '../cluster.ts'
import { readClusterFile } from '../file/cluster-file.ts'
import { completeBundle } from './bundle.ts'
import { makeRequests, readCustomBundle } from './custom.ts'
import { adminKubeconfig, certificateFiles } from './files.ts'

const cluster = readClusterFile(`nodes:
- {address: 10.0.0.1, user: root, role: [controlplane, etcd]}
- {address: 10.0.0.2, user: root, role: [worker]}
- {address: 10.0.0.3, user: root, role: [etcd]}
`).cluster as ClusterFile
const tools = { clock: createVirtualClock(1_800_000_000_000), random: createSeededRandom(1) }
const { bundle } = completeBundle(cluster, {}, tools)

function namesOn(at: number): string[] {
  return certificateFiles(cluster, cluster.nodes[at] as ClusterNode, bundle).map(({ path }) =>
    path.replace('/etc/kubernetes/ssl/', ''),
  )
}

describe('certificate files of a machine', () => {
  const worker = [
    'kube-ca.pem',
    'kube-proxy.pem',
    'kube-proxy-key.pem',
    'kubecfg-kube-proxy.yaml',
    'kube-network-policies.pem',
    'kube-network-policies-key.pem',
    'kubecfg-kube-network-policies.yaml',
    'kube-node.pem',
    'kube-node-key.pem',
    'kubecfg-kube-node.yaml',
  ]

  it('include those that its roles need', () => {
    assert.deepEqual(namesOn(1), worker)
    assert.deepEqual(namesOn(2), [
      ...worker,
      'kube-etcd-ca.pem',
      'kube-etcd-10-0-0-3.pem',
      'kube-etcd-10-0-0-3-key.pem',
    ])
    const controlPlane = namesOn(0)
    assert.ok(controlPlane.includes('kube-ca-key.pem'))
    assert.ok(controlPlane.includes('kube-etcd-client-key.pem'))
    assert.ok(!controlPlane.includes('kube-apiserver-requestheader-ca-key.pem'))
    assert.ok(!controlPlane.includes('kube-etcd-ca-key.pem'))
    assert.equal(new Set(controlPlane).size, controlPlane.length)
  })

  it('are readable only by their owner, and identify the node', () => {
    const files = certificateFiles(cluster, cluster.nodes[1] as ClusterNode, bundle)
    assert.ok(files.every(({ mode }) => mode === 0o600))
    const own = files.find(({ path }) => path.endsWith('kube-node.pem'))
    assert.equal(parseCertificate(own?.content ?? '').subject.commonName, 'system:node:10.0.0.2')
    const kubeconfig = files.find(({ path }) => path.endsWith('kubecfg-kube-node.yaml'))
    assert.deepEqual(parseYaml(kubeconfig?.content ?? ''), {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'local',
          cluster: {
            'certificate-authority': '/etc/kubernetes/ssl/kube-ca.pem',
            server: 'https://127.0.0.1:6443',
          },
        },
      ],
      contexts: [{ name: 'local', context: { cluster: 'local', user: 'kube-node-local' } }],
      'current-context': 'local',
      users: [
        {
          name: 'kube-node-local',
          user: {
            'client-certificate': '/etc/kubernetes/ssl/kube-node.pem',
            'client-key': '/etc/kubernetes/ssl/kube-node-key.pem',
          },
        },
      ],
    })
  })

  it('are below prefix_path', () => {
    const files = certificateFiles({ ...cluster, prefix_path: '/opt/rke' }, cluster.nodes[1] as ClusterNode, bundle)
    assert.ok(files.every(({ path }) => path.startsWith('/opt/rke/etc/kubernetes/ssl/')))
  })
})

it("the operator's kubeconfig contains its certificates inline", () => {
  const config = parseYaml(adminKubeconfig(cluster, bundle, 'fd00::1')) as {
    clusters: { cluster: { server: string } }[]
    users: { name: string }[]
  }
  assert.equal(config.clusters[0]?.cluster.server, 'https://[fd00::1]:6443')
  assert.equal(config.users[0]?.name, 'kube-admin-local')
})

describe('certificates from an external CA', () => {
  it('each have a signing request, and a key that later runs keep', () => {
    const made = makeRequests(cluster, new Map())
    const request = parseRequest(made.get('kube-apiserver-csr.pem') ?? '')
    verifyRequest(request)
    assert.equal(request.subject.commonName, 'kube-apiserver')
    assert.ok(request.names.ips.includes('10.43.0.1'))
    assert.ok(!made.has('kube-ca-csr.pem'))
    assert.deepEqual(makeRequests(cluster, made).get('kube-admin-key.pem'), made.get('kube-admin-key.pem'))
  })

  const folder = new Map(
    Object.entries(bundle).flatMap(([name, { certificatePEM, keyPEM }]) => [
      [`${name}.pem`, certificatePEM],
      [`${name}-key.pem`, keyPEM],
    ]),
  )

  it('are used unchanged', () => {
    const read = readCustomBundle(cluster, folder)
    assert.deepEqual(read.faults, [])
    assert.deepEqual(completeBundle(cluster, read.bundle, tools).changes, [])
  })

  it('are issued by hyperkube if the key of the CA is present', () => {
    const few = new Map([...folder].filter(([name]) => /^kube-(ca|apiserver-requestheader-ca)/.test(name)))
    const { bundle: begun, faults } = readCustomBundle(cluster, few)
    assert.deepEqual(faults, [])
    const { bundle: whole } = completeBundle(cluster, begun, tools)
    assert.equal(Object.keys(whole).length, Object.keys(bundle).length)
    assert.equal(whole['kube-ca']?.certificatePEM, bundle['kube-ca']?.certificatePEM)
  })

  it('are reported as missing or invalid, all at once', () => {
    const wrong = new Map(folder)
    for (const name of [
      'kube-ca-key.pem',
      'kube-proxy.pem',
      'kube-admin-key.pem',
      'kube-apiserver-requestheader-ca.pem',
    ]) {
      wrong.delete(name)
    }
    wrong.set('kube-scheduler-key.pem', keyToPem(createKey()))
    wrong.set('kube-apiserver.pem', 'nonsense')
    const { faults } = readCustomBundle(cluster, wrong)
    assert.deepEqual(faults, [
      '"kube-apiserver.pem" or its key cannot be read: There is no certificate in this PEM text',
      '"kube-scheduler-key.pem" is not the key of "kube-scheduler.pem"',
      '"kube-admin-key.pem" is missing: the key of "kube-admin.pem"',
      '"kube-apiserver-requestheader-ca.pem" is missing: the certificate of the authority',
      '"kube-proxy.pem" is missing, and there is no key of "kube-ca" to make it with',
    ])
    assert.ok(parsePrivateKey(bundle['kube-ca']?.keyPEM ?? ''))
  })
})
