/**
 * Creates and rotates the EncryptionConfiguration of a cluster, which the state file stores. During a rotation all
 * Secrets stay readable.
 */
import type { JsonObject } from '#lib/json/value.ts'
import { pick, type Random } from '#lib/random.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml/yaml.ts'

import type { ClusterFile } from '../cluster.ts'

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

/** The desired configuration for API servers; empty: no encryption. An existing one stays. */
export function encryptionConfig(cluster: ClusterFile, before: string, random: Random): string {
  const { enabled, custom_config } = cluster.services['kube-api'].secrets_encryption_config
  if (!enabled) return ''
  if (custom_config) return stringifyYaml(custom_config)
  return keysOf(before).length > 0 ? before : withKeys([createKey(random)])
}

/** The keys of our configuration; none for a custom one. */
export function keysOf(config: string): readonly Key[] {
  if (config === '') return []
  const value = parseYaml(config) as { resources?: { providers?: { aescbc?: { keys?: Key[] } }[] }[] } | null
  return (value?.resources ?? []).flatMap(({ providers = [] }) => providers.flatMap((one) => one.aescbc?.keys ?? []))
}

/**
 * Successive configurations for all running API servers: no server may write with a key that another does not know yet.
 * `rewrites`: after all have it, every Secret is rewritten.
 */
export interface KeyStage {
  readonly config: string
  readonly rewrites: boolean
}

/** Plans a new key. Continues an interrupted rotation, because Secrets may exist with each of its keys. */
export function planKeyRotation(config: string, random: Random): KeyStage[] {
  const [first, second] = keysOf(config)
  if (!first)
    throw new Error('Secrets are not encrypted with a key of hyperkube; change your custom configuration instead')
  if (second)
    return [
      { config, rewrites: true },
      { config: withKeys([first]), rewrites: false },
    ]
  const fresh = createKey(random)
  return [
    { config: withKeys([first, fresh]), rewrites: false },
    { config: withKeys([fresh, first]), rewrites: true },
    { config: withKeys([fresh]), rewrites: false },
  ]
}

/** From the configuration of a running cluster to the desired one. */
export function planEncryption(before: string, wanted: string): KeyStage[] {
  if (before === '' && keysOf(wanted).length > 0)
    return [
      { config: clearFirst(wanted), rewrites: false },
      { config: wanted, rewrites: true },
    ]
  if (wanted === '' && keysOf(before).length > 0)
    return [
      { config: clearFirst(before), rewrites: true },
      { config: '', rewrites: false },
    ]
  return [{ config: wanted, rewrites: false }]
}

/** New Secrets are stored in plain text; existing ones are still decrypted. */
function clearFirst(config: string): string {
  return configuration([
    { identity: {} },
    { aescbc: { keys: keysOf(config).map(({ name, secret }) => ({ name, secret })) } },
  ])
}
