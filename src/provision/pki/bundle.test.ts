import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { parseBundle, parseCertificate } from '#lib/x509/certificate.ts'
import { verifyChain } from '#lib/x509/chain.ts'
import { isSameKey, parsePrivateKey } from '#lib/x509/key.ts'

import type { ClusterFile } from '../cluster.ts'
import { readClusterFile } from '../file/cluster-file.ts'
import { type Bundle, completeBundle, isSettling, type PkiTools, rotateBundle, settleBundle } from './bundle.ts'
import { planCertificates } from './plan.ts'

const HOUR_MS = 3_600_000

function clusterOf(...more: readonly string[]): ClusterFile {
  const { cluster, faults } = readClusterFile(`nodes:
- {address: 10.0.0.1, user: root, role: [controlplane, etcd], hostname_override: cp1}
- {address: 10.0.0.2, internal_address: 192.168.0.2, user: root, role: [etcd, worker]}
${more.join('\n')}
`)
  assert.deepEqual(faults, [])
  return cluster as ClusterFile
}

function tools(now = Date.parse('2026-11-16T12:00:00Z')): PkiTools {
  return { clock: createVirtualClock(now), random: createSeededRandom(1) }
}

const cluster = clusterOf()
const made = completeBundle(cluster, {}, tools())

function certificate(bundle: Bundle, name: string): ReturnType<typeof parseCertificate> {
  return parseCertificate(bundle[name]?.certificatePEM ?? '')
}

describe('certificates of a built cluster', () => {
  it("are RKE's, with an identity for each node and a CA for etcd", () => {
    const rows = planCertificates(cluster).map(({ name, signer, commonName, organizations, purpose }) =>
      [name, signer, commonName, organizations.join(), purpose].join(' '),
    )
    assert.deepEqual(rows, [
      'kube-ca kube-ca kube-ca  authority',
      'kube-apiserver-requestheader-ca kube-apiserver-requestheader-ca kube-apiserver-requestheader-ca  authority',
      'kube-etcd-ca kube-etcd-ca kube-etcd-ca  authority',
      'kube-apiserver kube-ca kube-apiserver  peer',
      'kube-service-account-token kube-ca kube-service-account-token  client',
      'kube-controller-manager kube-ca system:kube-controller-manager  client',
      'kube-scheduler kube-ca system:kube-scheduler  client',
      'kube-proxy kube-ca system:kube-proxy  client',
      'kube-network-policies kube-ca system:kube-network-policies  client',
      'kube-admin kube-ca kube-admin system:masters client',
      'kube-apiserver-proxy-client kube-apiserver-requestheader-ca kube-apiserver-proxy-client  peer',
      'kube-node-10-0-0-1 kube-ca system:node:cp1 system:nodes client',
      'kube-node-192-168-0-2 kube-ca system:node:10.0.0.2 system:nodes client',
      'kube-etcd-10-0-0-1 kube-etcd-ca kube-etcd  peer',
      'kube-etcd-192-168-0-2 kube-etcd-ca kube-etcd  peer',
      'kube-etcd-client kube-etcd-ca kube-etcd-client  client',
    ])
  })

  it('have the planned names, form valid chains and are valid for ten years', () => {
    const nowMs = Date.parse('2026-11-16T12:00:00Z')
    for (const plan of planCertificates(cluster)) {
      const found = certificate(made.bundle, plan.name)
      assert.equal(found.subject.commonName, plan.commonName)
      assert.deepEqual([...found.subject.organizations], [...plan.organizations])
      const usage = plan.purpose === 'peer' ? 'server auth' : 'client auth'
      verifyChain(found, { roots: [certificate(made.bundle, plan.signer)], nowMs, usage })
      assert.ok(isSameKey(found.publicKey, parsePrivateKey(made.bundle[plan.name]?.keyPEM ?? '')))
      assert.ok(found.notAfterMs > nowMs + 9.9 * 365 * 24 * HOUR_MS)
      assert.ok(plan.purpose === 'peer' || plan.purpose === 'authority' || !found.usages.includes('server auth'))
    }
  })

  it('contain all names of the API server', () => {
    const { names } = certificate(made.bundle, 'kube-apiserver')
    assert.deepEqual([...names.ips], ['10.0.0.1', '127.0.0.1', '10.43.0.1'])
    assert.deepEqual(
      [...names.dns],
      [
        'cp1',
        'localhost',
        'kubernetes',
        'kubernetes.default',
        'kubernetes.default.svc',
        'kubernetes.default.svc.cluster.local',
      ],
    )
    assert.deepEqual(
      [...certificate(made.bundle, 'kube-etcd-192-168-0-2').names.ips],
      ['10.0.0.2', '192.168.0.2', '127.0.0.1'],
    )
  })

  it('have separate keys, and there is a service account key', () => {
    const keys = Object.values(made.bundle).map(({ keyPEM }) => keyPEM)
    assert.equal(new Set(keys).size, keys.length)
  })

  it('stay unchanged if nothing has changed', () => {
    const again = completeBundle(cluster, made.bundle, tools())
    assert.deepEqual(again, { bundle: made.bundle, changes: [] })
  })

  it('are reissued with the same key if names change', () => {
    const { bundle, changes } = completeBundle(
      clusterOf('authentication: {sans: [api.example.com]}'),
      made.bundle,
      tools(),
    )
    assert.deepEqual(changes, [{ name: 'kube-apiserver', reason: 'names' }])
    assert.equal(bundle['kube-apiserver']?.keyPEM, made.bundle['kube-apiserver']?.keyPEM)
    assert.ok(certificate(bundle, 'kube-apiserver').names.dns.includes('api.example.com'))
  })

  it('are issued and removed with machines, and others stay unchanged', () => {
    const other = readClusterFile(`nodes:
- {address: 10.0.0.1, user: root, role: [controlplane, etcd], hostname_override: cp1}
- {address: 10.0.0.3, user: root, role: [etcd, worker]}
services: {kubelet: {generate_serving_certificate: true}}
`).cluster as ClusterFile
    const { changes } = completeBundle(other, made.bundle, tools())
    assert.deepEqual(changes.map(({ name, reason }) => `${reason} ${name}`).toSorted(), [
      'dropped kube-etcd-192-168-0-2',
      'dropped kube-node-192-168-0-2',
      'new kube-etcd-10-0-0-3',
      'new kube-kubelet-10-0-0-1',
      'new kube-kubelet-10-0-0-3',
      'new kube-node-10-0-0-3',
    ])
  })

  it('are reissued after expiry, unless a CA has expired', () => {
    const later = tools(Date.parse('2026-11-16T12:00:00Z') + 10 * 365 * 24 * HOUR_MS - 2 * 60_000)
    const { changes } = completeBundle(cluster, made.bundle, later)
    assert.ok(changes.length > 5 && changes.every(({ reason }) => reason === 'expired'))
    const tooLate = tools(Date.parse('2037-01-01T00:00:00Z'))
    assert.throws(() => completeBundle(cluster, made.bundle, tooLate), { code: 'expired', message: /rotate-ca/ })
  })

  it('include the given certificates for an external etcd', () => {
    const pem = '-----BEGIN CERTIFICATE-----\n      xxxx\n      -----END CERTIFICATE-----'
    const external = readClusterFile(`nodes: [{address: 10.0.0.1, user: root, role: [controlplane]}]
services:
  etcd:
    external_urls: ["https://e:2379"]
    path: /p
    ca_cert: |-
      ${pem}
    cert: |-
      ${pem}
    key: |-
      ${pem}
`).cluster as ClusterFile
    const { bundle } = completeBundle(external, {}, tools())
    assert.match(bundle['kube-etcd-client-ca']?.certificatePEM ?? '', /xxxx/)
    assert.equal(bundle['kube-etcd-ca'], undefined)
    assert.equal(isSettling(bundle), false)
  })

  it('cause an error if they cannot be parsed, and are not replaced', () => {
    const broken = { ...made.bundle, 'kube-proxy': { certificatePEM: 'x', keyPEM: '' } }
    assert.throws(() => completeBundle(cluster, broken, tools()), { code: 'unreadable' })
  })
})

describe('certificate rotation of a built cluster', () => {
  const kept = (bundle: Bundle): string[] =>
    Object.keys(bundle)
      .filter((name) => bundle[name]?.keyPEM === made.bundle[name]?.keyPEM)
      .toSorted()

  it('creates all keys again except those of CAs and service accounts', () => {
    const { bundle, changes } = rotateBundle(cluster, made.bundle, {}, tools())
    assert.deepEqual(kept(bundle), [
      'kube-apiserver-requestheader-ca',
      'kube-ca',
      'kube-etcd-ca',
      'kube-service-account-token',
    ])
    assert.ok(changes.every(({ reason }) => reason === 'rotated'))
  })

  it('of one service does not affect others', () => {
    const { changes } = rotateBundle(cluster, made.bundle, { service: 'etcd' }, tools())
    assert.deepEqual(
      changes.map(({ name }) => name),
      ['kube-etcd-10-0-0-1', 'kube-etcd-192-168-0-2', 'kube-etcd-client'],
    )
  })

  it('of the CAs keeps the old CAs trusted until all machines have new certificates', () => {
    const { bundle } = rotateBundle(cluster, made.bundle, { authorities: true }, tools())
    assert.deepEqual(kept(bundle), ['kube-service-account-token'])
    assert.equal(parseBundle(bundle['kube-ca']?.certificatePEM ?? '').length, 2)
    const nowMs = Date.parse('2026-11-16T12:00:00Z')
    const roots = parseBundle(bundle['kube-ca']?.certificatePEM ?? '')
    for (const one of [made.bundle, bundle]) {
      verifyChain(certificate(one, 'kube-admin'), { roots, nowMs, usage: 'client auth' })
    }
    assert.ok(isSettling(bundle))
    assert.deepEqual(completeBundle(cluster, bundle, tools()).changes, [])
    const settled = settleBundle(cluster, bundle)
    assert.equal(isSettling(settled), false)
    assert.deepEqual(completeBundle(cluster, settled, tools()), { bundle: settled, changes: [] })
    assert.throws(() => {
      verifyChain(certificate(made.bundle, 'kube-admin'), {
        roots: parseBundle(settled['kube-ca']?.certificatePEM ?? ''),
        nowMs,
        usage: 'client auth',
      })
    })
  })
})
