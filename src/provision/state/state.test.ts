import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { ClusterFile } from '../cluster.ts'
import { readClusterFile } from '../file/cluster-file.ts'
import { completeBundle } from '../pki/bundle.ts'
import { decodeState, encodeState, type FullState, readStateSecret, stateFileOf, stateSecret } from './state.ts'

const random = createSeededRandom(1)
const rkeConfig = readClusterFile('nodes: [{address: 10.0.0.1, user: root, role: [controlplane, etcd, worker]}]\n')
  .cluster as ClusterFile
const { bundle } = completeBundle(rkeConfig, {}, { clock: createVirtualClock(), random })
const wanted = { rkeConfig, certificatesBundle: bundle, encryptionConfig: 'kind: EncryptionConfiguration\n' }

describe('state file of a built cluster', () => {
  it('round-trips unchanged', () => {
    const states: FullState[] = [
      {},
      { desiredState: wanted },
      { desiredState: wanted, currentState: wanted },
      {
        desiredState: wanted,
        leaving: rkeConfig.nodes,
        stages: [{ certificatesBundle: bundle, encryptionConfig: '', after: 'rewrite-secrets' }],
        restoring: 'a-snapshot',
      },
    ]
    for (const state of states) assert.deepEqual(decodeState(encodeState(state)), state)
  })

  it("describes each certificate in RKE's form", () => {
    const written = JSON.parse(encodeState({ desiredState: wanted })) as {
      currentState: object
      desiredState: { certificatesBundle: Record<string, Record<string, string>> }
    }
    assert.deepEqual(written.currentState, {})
    const { certificatePEM, keyPEM, ...rest } = written.desiredState.certificatesBundle['kube-scheduler'] ?? {}
    assert.ok(certificatePEM && keyPEM)
    assert.deepEqual(rest, {
      config: '',
      name: 'kube-scheduler',
      commonName: 'system:kube-scheduler',
      ouName: '',
      envName: 'KUBE_SCHEDULER',
      path: '/etc/kubernetes/ssl/kube-scheduler.pem',
      keyEnvName: 'KUBE_SCHEDULER_KEY',
      keyPath: '/etc/kubernetes/ssl/kube-scheduler-key.pem',
      configEnvName: 'KUBECFG_KUBE_SCHEDULER',
      configPath: '/etc/kubernetes/ssl/kubecfg-kube-scheduler.yaml',
    })
  })

  it('is encrypted, and can be read only with its passphrase', () => {
    const sealed = encodeState({ desiredState: wanted }, { passphrase: 'correct horse', random })
    assert.ok(!sealed.includes('BEGIN') && !sealed.includes('10.0.0.1'))
    assert.deepEqual(decodeState(sealed, 'correct horse'), { desiredState: wanted })
    assert.throws(() => decodeState(sealed), { code: 'sealed' })
    assert.throws(() => decodeState(sealed, 'battery'), { code: 'passphrase' })
    const bent = sealed.replace(/"data": "..../, '"data": "AAAA')
    assert.throws(() => decodeState(bent, 'correct horse'), { code: 'passphrase' })
    const heavy = sealed.replace(/"cost": \d+/, '"cost": 1073741824')
    assert.throws(() => decodeState(heavy, 'correct horse'), { code: 'unreadable' })
  })

  it('provides the certificates of an RKE state file', () => {
    const text = JSON.stringify({
      desiredState: { rkeConfig: { nodes: [] }, certificatesBundle: {} },
      currentState: { certificatesBundle: { 'kube-ca': { certificatePEM: 'c', keyPEM: 'k', name: 'kube-ca' } } },
    })
    assert.deepEqual(decodeState(text), { adopted: { 'kube-ca': { certificatePEM: 'c', keyPEM: 'k' } } })
  })

  it('is rejected if it is another file', () => {
    for (const text of ['', '{', '[]', 'null', '{}', '{"desiredState": {}}']) {
      assert.throws(() => decodeState(text), { code: 'unreadable' }, text)
    }
  })

  it('fits into a Secret, compressed if it is large', () => {
    const small = stateSecret('a state')
    assert.equal(small.metadata.name, 'full-cluster-state')
    assert.equal(readStateSecret(small.data), 'a state')
    const text = 'x'.repeat(3_000_000)
    const large = stateSecret(text)
    assert.ok(JSON.stringify(large).length < 1_000_000)
    assert.equal(readStateSecret(large.data), text)
    assert.equal(readStateSecret({}), undefined)
  })

  it('is stored beside cluster.yml', () => {
    assert.equal(stateFileOf('/a/b.c/cluster.yml'), '/a/b.c/cluster.rkestate')
    assert.equal(stateFileOf('prod.yaml'), 'prod.rkestate')
    assert.equal(stateFileOf('/a.b/cluster'), '/a.b/cluster.rkestate')
  })
})
