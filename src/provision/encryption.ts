/** The EncryptionConfiguration of a cluster: made once, kept in the state, and how its key is changed without a gap. */
import type { JsonObject } from '#lib/json-value.ts'
import { pick, type Random } from '#lib/random.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml.ts'

import type { ClusterFile } from './cluster.ts'

const NAME_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const KEY_BYTES = 32

interface Key {
  readonly name: string
  readonly secret: string
}

function configuration(providers: readonly JsonObject[]): string {
  return stringifyYaml({
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'EncryptionConfiguration',
    resources: [{ resources: ['secrets'], providers }],
  })
}

function withKeys(keys: readonly Key[]): string {
  return configuration([{ aescbc: { keys: keys.map(({ name, secret }) => ({ name, secret })) } }, { identity: {} }])
}

function createKey(random: Random): Key {
  return {
    name: `k-${pick(random, NAME_ALPHABET, 5)}`,
    secret: random.bytes(KEY_BYTES).toString('base64'),
  }
}

/** What API servers should be told; empty: nothing is encrypted. What was made before stays. */
export function encryptionConfig(cluster: ClusterFile, before: string, random: Random): string {
  const { enabled, custom_config } = cluster.services['kube-api'].secrets_encryption_config
  if (!enabled) return ''
  if (custom_config) return stringifyYaml(custom_config)
  return keysOf(before).length > 0 ? before : withKeys([createKey(random)])
}

/** The keys of a configuration of ours; none for one of somebody's own. */
export function keysOf(config: string): readonly Key[] {
  if (config === '') return []
  const value = parseYaml(config) as { resources?: { providers?: { aescbc?: { keys?: Key[] } }[] }[] } | null
  return (value?.resources ?? []).flatMap(({ providers = [] }) => providers.flatMap((one) => one.aescbc?.keys ?? []))
}

/** The steps of a rotation, each a configuration that all API servers must have before the next. */
export interface KeyRotation {
  /** Written with the new key, read with both. Then every Secret is written again. */
  readonly both: string
  /** The old key is forgotten. */
  readonly only: string
  /** What to go back to when writing has failed: it still reads what the new key wrote. */
  readonly back: string
}

export function planKeyRotation(config: string, random: Random): KeyRotation {
  const [old] = keysOf(config)
  if (!old) throw new Error('Secrets are not encrypted with a key of hyperkube; change your own configuration instead')
  const fresh = createKey(random)
  return { both: withKeys([fresh, old]), only: withKeys([fresh]), back: withKeys([old, fresh]) }
}

/** While encryption is being switched off: new Secrets are in clear, old ones are read. Then all are written again. */
export function planDecryption(config: string): string {
  return configuration([
    { identity: {} },
    { aescbc: { keys: keysOf(config).map(({ name, secret }) => ({ name, secret })) } },
  ])
}
