/**
 * Encrypts stored values by resource. The first provider of a resource encrypts and every provider decrypts, so keys
 * can be rotated without downtime.
 */
import { isAt } from '#lib/bytes-at.ts'
import type { Random } from '#lib/random.ts'

import { StorageError } from '../backend.ts'
import type { EncryptionConfig, ProviderConfig, ResourceRule } from './config.ts'
import { createAesCbc, createAesGcm, type Sealer } from './transformer.ts'

export interface StoredResource {
  readonly group: string
  readonly resource: string
}

/** The transformation of one resource's values. */
export interface Resting {
  /** True if values are sealed at all. */
  readonly isSealing: boolean
  seal(storageKey: string, value: Buffer): Buffer
  /** Throws `corrupt` for values that no provider can open, and `unavailable` for values that were not prepared. */
  open(storageKey: string, value: Uint8Array): Uint8Array
  /** True if the value should be rewritten: it is plain, or its key is no longer the first. */
  isStale(value: Uint8Array): boolean
}

export interface AtRest {
  resting(resource: StoredResource): Resting
  /** Fetches the keys for these values; undefined if all are available. */
  prepare(values: Iterable<Uint8Array>): Promise<unknown> | undefined
  /** Applies new rules to later reads and writes. */
  use(rules: readonly Rule[]): void
  /** Throws the error of a KMS plugin; absent if there are none. */
  readonly check?: (() => Promise<void>) | undefined
}

/** A sealer with its prefix as bytes, or undefined for plain values. */
export interface Provider {
  readonly sealer: Sealer | undefined
  readonly prefix: Buffer
}

/** A rule of the configuration with its opened providers. */
export interface Rule {
  readonly providers: readonly Provider[]
  matches(resource: StoredResource): boolean
}

const SEALED = Buffer.from('k8s:enc:')

export function isSealed(value: Uint8Array): boolean {
  return isAt(value, 0, SEALED)
}

const PLAIN: readonly Provider[] = [{ sealer: undefined, prefix: Buffer.alloc(0) }]

/** For providers that need only their keys; `openProviders` opens others. */
export function createAtRest(config: EncryptionConfig, random: Random): AtRest {
  return createAtRestOf(compileRules(config, (provider) => createKeyed(provider, random)))
}

export function createAtRestOf(first: readonly Rule[]): AtRest {
  let rules = first
  return {
    resting(resource) {
      // Looked up at each use, so that a reload reaches open stores.
      const find = (): readonly Provider[] => rules.find((rule) => rule.matches(resource))?.providers ?? PLAIN
      return {
        get isSealing() {
          return find().some(({ sealer }) => sealer !== undefined)
        },
        seal: (key, value) => sealWith(find(), key, value),
        open: (key, value) => openWith(find(), key, value),
        isStale: (value) => isStale(find(), value),
      }
    },
    prepare(values) {
      const waits = [...values].flatMap((value) => prepareWith(rules, value) ?? [])
      return waits.length === 0 ? undefined : Promise.all(waits)
    },
    use(next) {
      rules = next
    },
  }
}

export function compileRules(config: EncryptionConfig, open: (provider: ProviderConfig) => readonly Sealer[]): Rule[] {
  return config.resources.map((rule) => ({
    providers: rule.providers.flatMap((provider) =>
      provider.type === 'identity'
        ? PLAIN
        : open(provider).map((sealer) => ({ sealer, prefix: Buffer.from(sealer.prefix) })),
    ),
    matches: (resource) => matches(rule, resource),
  }))
}

/** The sealers of an opened provider. */
export function createKeyed(provider: ProviderConfig, random: Random): Sealer[] {
  if (provider.type === 'aesgcm') return provider.keys.map((key) => createAesGcm(key, random))
  if (provider.type === 'aescbc') return provider.keys.map((key) => createAesCbc(key, random))
  throw new TypeError(`The provider "${provider.type}" has to be opened first`)
}

/** `secrets`, `widgets.example.com`, `*.apps`, `*.` for the core group, `*.*` for everything. */
function matches({ resources }: ResourceRule, { group, resource }: StoredResource): boolean {
  const name = group === '' ? resource : `${resource}.${group}`
  return resources.some((pattern) => pattern === name || pattern === '*.*' || pattern === `*.${group}`)
}

function sealWith([first]: readonly Provider[], storageKey: string, value: Buffer): Buffer {
  if (first?.sealer === undefined) return value
  return Buffer.concat([first.prefix, first.sealer.seal(storageKey, value)])
}

/** Providers may share a prefix, as two keys of one name do: each is tried, and the first error is reported. */
function openWith(providers: readonly Provider[], storageKey: string, value: Uint8Array): Uint8Array {
  const isSealed = isAt(value, 0, SEALED)
  let failure: Error | undefined
  for (const { sealer, prefix } of providers) {
    if (sealer === undefined && !isSealed) return value
    if (sealer === undefined || !isAt(value, 0, prefix)) continue
    try {
      return sealer.open(storageKey, value.subarray(prefix.length))
    } catch (error) {
      failure ??= error as Error
    }
  }
  throw failure ?? unknownForm(storageKey, value, isSealed)
}

function unknownForm(storageKey: string, value: Uint8Array, isSealed: boolean): StorageError {
  const prefix = Buffer.from(value.subarray(0, 64)).toString('latin1').split(':').slice(0, 5).join(':')
  const why = isSealed
    ? `is sealed as "${prefix}:", and no provider of the encryption configuration opens that; add its key`
    : 'is not sealed, and the encryption configuration lets nothing be read that is not; add the provider "identity"'
  return new StorageError('corrupt', `The value of "${storageKey}" ${why}`)
}

function isStale([first]: readonly Provider[], value: Uint8Array): boolean {
  if (first?.sealer === undefined) return isAt(value, 0, SEALED)
  if (!isAt(value, 0, first.prefix)) return true
  return first.sealer.isStale?.(value.subarray(first.prefix.length)) ?? false
}

/** Names of KMS providers are unique, so the first match counts. */
function prepareWith(rules: readonly Rule[], value: Uint8Array): Promise<void> | undefined {
  if (!isAt(value, 0, SEALED)) return undefined
  for (const { providers } of rules) {
    const found = providers.find(({ sealer, prefix }) => sealer?.prepare !== undefined && isAt(value, 0, prefix))
    if (found !== undefined) return found.sealer?.prepare?.(value.subarray(found.prefix.length))
  }
  return undefined
}
