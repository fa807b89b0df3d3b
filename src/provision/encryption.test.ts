import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createSeededRandom } from '#lib/random.ts'
import { parseYaml } from '#lib/yaml.ts'

import { MINIMAL } from './cluster-file.fixture.ts'
import { readClusterFile } from './cluster-file.ts'
import type { ClusterFile } from './cluster.ts'
import { encryptionConfig, keysOf, planDecryption, planKeyRotation } from './encryption.ts'

const random = createSeededRandom(1)

function clusterOf(config: string): ClusterFile {
  return readClusterFile(`${MINIMAL}services: {kube-api: {secrets_encryption_config: ${config}}}\n`)
    .cluster as ClusterFile
}

describe('encryption of Secrets', () => {
  const on = clusterOf('{enabled: true}')

  it('has a key when it is on, and keeps it', () => {
    assert.equal(encryptionConfig(clusterOf('{}'), '', random), '')
    const made = encryptionConfig(on, '', random)
    const [key] = keysOf(made)
    assert.match(key?.name ?? '', /^k-\w{5}$/)
    assert.equal(Buffer.from(key?.secret ?? '', 'base64').length, 32)
    assert.equal(encryptionConfig(on, made, random), made)
  })

  it("is the operator's own where there is one", () => {
    const custom = clusterOf('{enabled: true, custom_config: {kind: EncryptionConfiguration, resources: []}}')
    assert.deepEqual(parseYaml(encryptionConfig(custom, '', random)), {
      kind: 'EncryptionConfiguration',
      resources: [],
    })
  })

  it('gets another key without a moment in which something cannot be read', () => {
    const before = encryptionConfig(on, '', random)
    const [old] = keysOf(before)
    const { both, only, back } = planKeyRotation(before, random)
    const [fresh] = keysOf(only)
    assert.notDeepEqual(fresh, old)
    assert.deepEqual(keysOf(both), [fresh, old])
    assert.deepEqual(keysOf(only), [fresh])
    assert.deepEqual(keysOf(back), [old, fresh])
    assert.throws(() => planKeyRotation('', random), /not encrypted/)
  })

  it('ends with new Secrets in clear and old ones still readable', () => {
    const before = encryptionConfig(on, '', random)
    const { resources } = parseYaml(planDecryption(before)) as { resources: { providers: object[] }[] }
    assert.deepEqual(
      resources[0]?.providers.map((provider) => Object.keys(provider)[0]),
      ['identity', 'aescbc'],
    )
  })
})
