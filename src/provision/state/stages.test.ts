import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { parseBundle, parseCertificate } from '#lib/x509/certificate.ts'
import { verifyChain } from '#lib/x509/chain.ts'

import type { ClusterFile } from '../cluster.ts'
import { MINIMAL } from '../file/cluster-file.fixture.ts'
import { readClusterFile } from '../file/cluster-file.ts'
import { type Bundle, completeBundle } from '../pki/bundle.ts'
import { planCertificates } from '../pki/plan.ts'
import { certificateStages, keyStages, ordinaryStages, stagesAfter } from './stages.ts'

const tools = { clock: realClock, random: createSeededRandom(1) }
const cluster = readClusterFile(MINIMAL).cluster as ClusterFile
const encrypted = readClusterFile(`${MINIMAL}services: {kube-api: {secrets_encryption_config: {enabled: true}}}\n`)
  .cluster as ClusterFile
const bundle = completeBundle(cluster, {}, tools).bundle
const current = { bundle, encryption: '', built: '' }

/** True if the owner of one bundle trusts all certificates of the other. */
function trusts(one: Bundle, other: Bundle): boolean {
  return planCertificates(cluster)
    .filter(({ purpose }) => purpose !== 'authority')
    .every(({ name, signer }) => {
      const roots = parseBundle(one[signer]?.certificatePEM ?? '')
      try {
        const shown = parseCertificate(other[name]?.certificatePEM ?? '')
        verifyChain(shown, { roots, nowMs: realClock.now(), usage: 'client auth' })
        return true
      } catch {
        return false
      }
    })
}

describe('stages of a certificate change', () => {
  it('consist of a single stage if the CAs stay the same', () => {
    const stages = certificateStages(cluster, current, { service: 'kubelet' }, tools)
    assert.equal(stages.length, 1)
    assert.ok(trusts(bundle, stages[0]?.certificatesBundle ?? {}))
  })

  it('keep trust between all machines at every moment if the CAs change', () => {
    const stages = certificateStages(cluster, current, { authorities: true }, tools).map(
      (each) => each.certificatesBundle,
    )
    const all = [bundle, ...stages]
    assert.equal(all.length, 4)
    for (const [at, before] of all.entries()) {
      const after = all[at + 1]
      if (after === undefined) continue
      assert.ok(trusts(before, after), `stage ${at} trusts the next`)
      assert.ok(trusts(after, before), `stage ${at + 1} trusts the one before`)
    }
    assert.ok(!trusts(all[3] ?? {}, bundle))
    for (const stage of stages) assert.deepEqual(completeBundle(cluster, stage, tools).changes, [])
  })

  it('continue after an interruption, followed by the changes of cluster.yml', () => {
    const [, ...left] = certificateStages(cluster, current, { authorities: true }, tools)
    assert.deepEqual(stagesAfter({ cluster, current, left, tools }), left)
    const more = stagesAfter({ cluster: encrypted, current, left, tools })
    assert.deepEqual(more.slice(0, 2), left)
    assert.deepEqual(
      more.slice(2).map(({ after }) => after),
      [undefined, 'rewrite-secrets'],
    )
  })
})

describe('stages of an encryption key change', () => {
  it('are none for a new cluster', () => {
    assert.equal(ordinaryStages(encrypted, { bundle, encryption: '', built: undefined }, tools).length, 1)
    assert.equal(ordinaryStages(encrypted, current, tools).length, 2)
  })

  it('rewrite Secrets after all API servers have the new key', () => {
    const [{ encryptionConfig: encryption } = { encryptionConfig: '' }] = ordinaryStages(
      encrypted,
      { bundle, encryption: '', built: undefined },
      tools,
    )
    const stages = keyStages(encrypted, { bundle, encryption, built: encryption }, tools)
    assert.deepEqual(
      stages.map(({ after }) => after),
      [undefined, 'rewrite-secrets', undefined],
    )
  })
})
