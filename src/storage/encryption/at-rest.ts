/**
 * Encryption at rest: which resources are sealed with what. The first provider of a resource seals, all of them open,
 * so a key is changed without downtime: add the new key behind the old one everywhere, put it first, rewrite, remove
 * the old one.
 */
import type { Random } from '#lib/random.ts'

import { StorageError } from '../backend.ts'
import type { EncryptionConfig, ProviderConfig, ResourceRule } from './config.ts'
import { createAesCbc, createAesGcm, type Sealer } from './transformer.ts'

/** How values of one resource rest. */
export interface Resting {
  seal(storageKey: string, value: Buffer): Buffer
  /** Throws `corrupt` for what no provider can open: it is never served. */
  open(storageKey: string, value: Uint8Array): Uint8Array
  /** Whether the value should be written again: it is plain, or sealed with a key that is no longer the first. */
  isStale(value: Uint8Array): boolean
}

export interface AtRest {
  resting(resource: { readonly group: string; readonly resource: string }): Resting
  /** Takes a new configuration; what is read and written from now on follows it. */
  reload(config: EncryptionConfig): void
}

const SEALED = Buffer.from('k8s:enc:')

export function createAtRest(config: EncryptionConfig, random: Random): AtRest {
  let rules = compile(config, random)
  return {
    resting(resource) {
      // Looked up at each use, so that a reload reaches stores that are open.
      const find = (): readonly Provider[] => rules.find((rule) => rule.matches(resource))?.providers ?? PLAIN
      return {
        seal: (key, value) => sealWith(find(), key, value),
        open: (key, value) => openWith(find(), key, value),
        isStale: (value) => isStale(find(), value),
      }
    },
    reload(next) {
      rules = compile(next, random)
    },
  }
}

/** A sealer with its prefix as bytes, or undefined for values that rest as they are. */
interface Provider {
  readonly sealer: Sealer | undefined
  readonly prefix: Buffer
}

const PLAIN: readonly Provider[] = [{ sealer: undefined, prefix: Buffer.alloc(0) }]

interface Rule {
  readonly providers: readonly Provider[]
  matches(resource: { readonly group: string; readonly resource: string }): boolean
}

function compile(config: EncryptionConfig, random: Random): Rule[] {
  return config.resources.map((rule) => ({
    providers: rule.providers.flatMap((provider) => createProviders(provider, random)),
    matches: (resource) => matches(rule, resource),
  }))
}

function createProviders({ type, keys }: ProviderConfig, random: Random): Provider[] {
  if (type === 'identity') return [...PLAIN]
  const create = type === 'aesgcm' ? createAesGcm : createAesCbc
  return keys.map((key) => {
    const sealer = create(key, random)
    return { sealer, prefix: Buffer.from(sealer.prefix) }
  })
}

/** `secrets`, `widgets.example.com`, `*.apps`, `*.` for the core group, `*.*` for everything. */
function matches(
  { resources }: ResourceRule,
  { group, resource }: { readonly group: string; readonly resource: string },
): boolean {
  const name = group === '' ? resource : `${resource}.${group}`
  return resources.some((pattern) => pattern === name || pattern === '*.*' || pattern === `*.${group}`)
}

function sealWith([first]: readonly Provider[], storageKey: string, value: Buffer): Buffer {
  if (first?.sealer === undefined) return value
  return Buffer.concat([first.prefix, first.sealer.seal(storageKey, value)])
}

function openWith(providers: readonly Provider[], storageKey: string, value: Uint8Array): Uint8Array {
  for (const { sealer, prefix } of providers) {
    if (sealer !== undefined && startsWith(value, prefix)) return sealer.open(storageKey, value.subarray(prefix.length))
  }
  // Plain values stay readable: encryption may have been switched on after they were written.
  if (!startsWith(value, SEALED)) return value
  const prefix = Buffer.from(value.subarray(0, 64)).toString('latin1').split(':').slice(0, 5).join(':')
  throw new StorageError(
    'corrupt',
    `The value of "${storageKey}" is sealed as "${prefix}:", and no provider of the encryption configuration opens that; add its key`,
  )
}

function isStale([first]: readonly Provider[], value: Uint8Array): boolean {
  if (first?.sealer === undefined) return startsWith(value, SEALED)
  return !startsWith(value, first.prefix)
}

function startsWith(value: Uint8Array, prefix: Buffer): boolean {
  if (value.length < prefix.length) return false
  for (let at = 0; at < prefix.length; at++) if (value[at] !== prefix[at]) return false
  return true
}
