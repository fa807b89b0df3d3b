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

/**
 * Configurations that all API servers must have one after the other, with several of them at work all the time: none may write with
 * a key that another does not know yet. `rewrites`: once all have it, every Secret is written again.
 */
export interface KeyStage {
  readonly config: string
  readonly rewrites: boolean
}

/** A new key. A rotation that was begun before is gone on with: some Secrets may be written with each of its keys. */
export function planKeyRotation(config: string, random: Random): KeyStage[] {
  const [first, second] = keysOf(config)
  if (!first)
    throw new Error('Secrets are not encrypted with a key of hyperkube; change your own configuration instead')
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

/** From what a cluster at work has to what the file wants of it. */
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

/** New Secrets are in clear, those with a key are read. */
function clearFirst(config: string): string {
  return configuration([
    { identity: {} },
    { aescbc: { keys: keysOf(config).map(({ name, secret }) => ({ name, secret })) } },
  ])
}
