import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createSeededRandom } from '#lib/random.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

import type { ClusterFile } from '../cluster.ts'
import { MINIMAL } from '../file/cluster-file.fixture.ts'
import { readClusterFile } from '../file/cluster-file.ts'
import { encryptionConfig, keysOf, planEncryption, planKeyRotation } from './encryption.ts'

const random = createSeededRandom(1)

function clusterOf(config: string): ClusterFile {
  return readClusterFile(`${MINIMAL}services: {kube-api: {secrets_encryption_config: ${config}}}\n`)
    .cluster as ClusterFile
}

describe('encryption of Secrets in a built cluster', () => {
  const on = clusterOf('{enabled: true}')

  it('creates a key when cluster.yml enables it, and keeps the key', () => {
    assert.equal(encryptionConfig(clusterOf('{}'), '', random), '')
    const made = encryptionConfig(on, '', random)
    const [key] = keysOf(made)
    assert.match(key?.name ?? '', /^k-\w{5}$/)
    assert.equal(Buffer.from(key?.secret ?? '', 'base64').length, 32)
    assert.equal(encryptionConfig(on, made, random), made)
  })

  it('uses custom_config of cluster.yml if there is one', () => {
    const custom = clusterOf('{enabled: true, custom_config: {kind: EncryptionConfiguration, resources: []}}')
    assert.deepEqual(parseYaml(encryptionConfig(custom, '', random)), {
      kind: 'EncryptionConfiguration',
      resources: [],
    })
  })

  it('rotates the key in steps, so that each API server always has all keys in use', () => {
    const before = encryptionConfig(on, '', random)
    const [old] = keysOf(before)
    const stages = planKeyRotation(before, random)
    const [fresh] = keysOf(stages.at(-1)?.config ?? '')
    assert.notDeepEqual(fresh, old)
    assert.deepEqual(
      stages.map(({ config, rewrites }) => [keysOf(config), rewrites]),
      [
        [[old, fresh], false],
        [[fresh, old], true],
        [[fresh], false],
      ],
    )
    assert.throws(() => planKeyRotation('', random), /not encrypted/)
  })

  it('finishes an interrupted key rotation before it starts another', () => {
    const before = encryptionConfig(on, '', random)
    const [, both] = planKeyRotation(before, random)
    const stages = planKeyRotation(both?.config ?? '', random)
    assert.deepEqual(
      stages.map(({ config }) => keysOf(config).length),
      [2, 1],
    )
    assert.deepEqual(keysOf(stages[1]?.config ?? '')[0], keysOf(both?.config ?? '')[0])
  })

  it('can be enabled and disabled in a running cluster', () => {
    const key = encryptionConfig(on, '', random)
    const providers = (config: string): string[] => {
      const value = parseYaml(config) as { resources: { providers: object[] }[] } | null
      return value?.resources[0]?.providers.map((provider) => Object.keys(provider)[0] ?? '') ?? []
    }
    const shown = (from: string, to: string): unknown[] =>
      planEncryption(from, to).map(({ config, rewrites }) => [...providers(config), rewrites])
    assert.deepEqual(shown('', key), [
      ['identity', 'aescbc', false],
      ['aescbc', 'identity', true],
    ])
    assert.deepEqual(shown(key, ''), [['identity', 'aescbc', true], [false]])
    assert.deepEqual(shown(key, key), [['aescbc', 'identity', false]])
    assert.deepEqual(shown('', ''), [[false]])
  })
})
