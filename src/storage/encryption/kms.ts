/**
 * KMS v2: a plugin on a Unix socket encrypts one seed per server, and the server derives the keys of values from that
 * seed. When the plugin changes its key, the server makes a new seed.
 */
import { createHash, createHmac } from 'node:crypto'

import { KeyManagementService, type StatusResponse } from '#apis/wire/kms.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { compareText, goQuote } from '#lib/go/text.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import type { Method } from '#lib/grpc/method.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Logger } from '#lib/log/log.ts'
import { type Random, uuid } from '#lib/random.ts'
import { timeOf } from '#meta/time.ts'

import { StorageError } from '../backend.ts'
import type { KmsConfig } from './config.ts'
import {
  checkEncryptedObject,
  type EncryptedObject,
  encryptedObject,
  keyIdComplaint,
  SOURCE,
} from './encrypted-object.ts'
import { createAesGcm, type Sealer } from './transformer.ts'

export interface KmsServices {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface Kms extends Sealer {
  /** Throws the plugin's error. Calls it at most every few seconds. */
  check(): Promise<void>
  /** Undefined if the value's key is available. Rejects with `unavailable` if the plugin does not return it. */
  prepare(sealed: Uint8Array): Promise<void> | undefined
  close(): void
}

/** Upstream's times: the interval of status requests, and the validity of a seed after the last healthy one. */
const HEALTHY_MS = 60_000
const UNHEALTHY_MS = 10_000
const SEED_MS = 180_000
const ANSWER_MS = 20_000
const FAILURE_MS = 3_000

const SEED_BYTES = 32
/** Random for each value and stored in front of it; with the seed it yields the key. */
const INFO_BYTES = 32

/** Shorter than gRPC's two minutes: a recovered plugin is noticed at the next request. */
const BACKOFF = { baseMs: 1000, factor: 1.6, capMs: UNHEALTHY_MS, jitter: 0.2 }

/** Resolves after the first status request, whatever its result: the plugin may start after the server. */
export async function openKms(config: KmsConfig, services: KmsServices): Promise<Kms> {
  const plugin = new Plugin(config, services)
  await plugin.probe()
  plugin.follow()
  return plugin
}

/** The seed for new values. */
interface Seed {
  readonly wrapped: Omit<EncryptedObject, 'encryptedData'>
  readonly secret: Buffer
  /** Wall-clock time. */
  readonly expiresMs: number
}

class Plugin implements Kms {
  readonly prefix: string
  readonly #config: KmsConfig
  readonly #services: KmsServices
  readonly #client: GrpcClient
  readonly #stop = new AbortController()
  /** Secrets by their encrypted form: one for each start of each server, so never many. */
  readonly #secrets = new Map<string, Buffer>()
  readonly #fetching = new Map<string, Promise<void>>()
  #seed: Seed | undefined
  #version: string | undefined
  #lastCheck: { readonly atMs: number; readonly error?: Error } | undefined
  #checking: Promise<void> | undefined

  constructor(config: KmsConfig, services: KmsServices) {
    this.#config = config
    this.#services = services
    this.prefix = `k8s:enc:kms:v2:${config.name}:`
    this.#client = createGrpcClient({ ...services, targets: [{ path: config.socket }], backoff: BACKOFF })
  }

  seal(storageKey: string, value: Uint8Array): Buffer {
    const seed = this.#seed
    if (seed === undefined) throw new Error('got unexpected nil transformer')
    const nowMs = this.#services.clock.now()
    if (nowMs > seed.expiresMs) {
      const hash = goQuote(hashOf(seed.wrapped.keyId))
      const times = `expired at ${timeOf(seed.expiresMs)} (current time is ${timeOf(nowMs)})`
      throw new Error(`encryptedDEKSource with keyID hash ${hash} ${times}`)
    }
    const info = this.#services.random.bytes(INFO_BYTES)
    const encryptedData = Buffer.concat([info, this.#cipher(derive(seed.secret, info)).seal(storageKey, value)])
    return encryptedObject.encode({ ...seed.wrapped, encryptedData })
  }

  open(storageKey: string, sealed: Uint8Array): Buffer {
    const object = this.#decode(sealed)
    const secret = this.#secrets.get(cacheKeyOf(object))
    if (secret === undefined) {
      throw new StorageError('unavailable', `The KMS provider "${this.#config.name}" has not given the key of a value`)
    }
    const { encryptedData, sourceType } = object
    if (sourceType === SOURCE.key) return this.#cipher(secret).open(storageKey, encryptedData)
    const key = derive(secret, encryptedData.subarray(0, INFO_BYTES))
    return this.#cipher(key).open(storageKey, encryptedData.subarray(INFO_BYTES))
  }

  isStale(sealed: Uint8Array): boolean {
    const { keyId, sourceType } = this.#decode(sealed)
    return keyId !== this.#seed?.wrapped.keyId || sourceType !== SOURCE.seed
  }

  prepare(sealed: Uint8Array): Promise<void> | undefined {
    const object = this.#tryDecode(sealed)
    if (object === undefined) return undefined
    const key = cacheKeyOf(object)
    if (this.#secrets.has(key)) return undefined
    let fetching = this.#fetching.get(key)
    if (fetching === undefined) {
      fetching = this.#fetch(key, object).finally(() => this.#fetching.delete(key))
      this.#fetching.set(key, fetching)
    }
    return fetching
  }

  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => (this.#checking = undefined))
    return this.#checking
  }

  close(): void {
    this.#stop.abort()
    this.#client.close()
  }

  /** Requests the status and logs errors; false then. */
  async probe(): Promise<boolean> {
    try {
      await this.check()
      return true
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        this.#services.log.error(error, 'kms plugin failed health check probe', { name: this.#config.name })
      }
      return false
    }
  }

  /** Polls the status until closed: writes fail if the last healthy status is too old. */
  follow(): void {
    const { signal } = this.#stop
    const loop = async (): Promise<void> => {
      for (let isHealthy = this.#seed !== undefined; !signal.aborted; isHealthy = await this.probe()) {
        await sleep(this.#services.clock, isHealthy ? HEALTHY_MS : UNHEALTHY_MS, signal)
      }
    }
    // Fails only by being closed.
    loop().catch(() => undefined)
  }

  #cipher(secret: Buffer): Pick<Sealer, 'seal' | 'open'> {
    return createAesGcm({ name: this.#config.name, secret }, this.#services.random)
  }

  /** Undefined for damaged values, which fail when they are opened. */
  #tryDecode(sealed: Uint8Array): EncryptedObject | undefined {
    try {
      return this.#decode(sealed)
    } catch {
      return undefined
    }
  }

  #decode(sealed: Uint8Array): EncryptedObject {
    try {
      const object = encryptedObject.decode(Buffer.from(sealed.buffer, sealed.byteOffset, sealed.length))
      checkEncryptedObject(object)
      return object
    } catch (cause) {
      throw new StorageError('corrupt', (cause as Error).message, { cause })
    }
  }

  #call<Q, QIn, R, RIn>(method: Method<Q, QIn, R, RIn>, request: QIn): Promise<R> {
    const { timeoutMs } = this.#config
    return this.#client.unary(method, request, { timeoutMs, waitForReady: true, signal: this.#stop.signal })
  }

  async #fetch(key: string, object: EncryptedObject): Promise<void> {
    const { encryptedSource, keyId, annotations, sourceType } = object
    try {
      const uid = uuid(this.#services.random)
      const request = { ciphertext: encryptedSource, uid, keyId, annotations }
      const { plaintext } = await this.#call(KeyManagementService.decrypt, request)
      if (sourceType === SOURCE.seed && plaintext.length < SEED_BYTES) {
        throw new Error(`invalid seed length ${plaintext.length} used for key generation`)
      }
      this.#secrets.set(key, Buffer.from(plaintext))
    } catch (cause) {
      throw new StorageError('unavailable', `failed to decrypt DEK, error: ${textOf(cause)}`, { cause })
    }
  }

  async #check(): Promise<void> {
    const { clock } = this.#services
    const last = this.#lastCheck
    if (last !== undefined && clock.elapsed() - last.atMs < (last.error === undefined ? ANSWER_MS : FAILURE_MS)) {
      if (last.error !== undefined) throw last.error
      return
    }
    try {
      await this.#ask()
      this.#lastCheck = { atMs: clock.elapsed() }
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause))
      this.#lastCheck = { atMs: clock.elapsed(), error }
      throw error
    }
  }

  async #ask(): Promise<void> {
    const { name } = this.#config
    let status: StatusResponse
    try {
      status = await this.#call(KeyManagementService.status, {})
    } catch (cause) {
      const what = `failed to perform status section of the healthz check for KMS Provider ${name}`
      throw new Error(`${what}, error: ${textOf(cause)}`, { cause })
    }
    const complaints = [...this.#statusComplaints(status), await this.#renewSeed(status)].filter(
      (complaint) => complaint !== undefined,
    )
    if (complaints.length === 0) return
    const text = complaints.length === 1 ? complaints[0] : `[${complaints.join(', ')}]`
    throw new Error(`kmsv2 Provider ${name} is not healthy, error: ${text}`)
  }

  #statusComplaints({ healthz, version }: StatusResponse): string[] {
    const complaints = healthz === 'ok' ? [] : [`got unexpected healthz status: ${healthz}`]
    if (version !== 'v2' && version !== 'v2beta1')
      return [...complaints, `expected KMSv2 API version v2, got ${version}`]
    this.#version ??= version
    if (version === this.#version) return complaints
    const change = `KMSv2 API version should not change after the initial status response version ${this.#version}`
    return [...complaints, `${change}, got ${version}`]
  }

  /** Keeps the seed while the plugin's key stays, and makes another when it changes; returns the error, if any. */
  async #renewSeed({ keyId }: StatusResponse): Promise<string | undefined> {
    const complaint = keyIdComplaint(keyId)
    if (complaint !== undefined) return `got invalid KMSv2 KeyID hash ${goQuote(hashOf(keyId))}: ${complaint}`
    const expiresMs = this.#services.clock.now() + SEED_MS
    const seed = this.#seed
    if (seed?.wrapped.keyId === keyId) {
      this.#seed = { ...seed, expiresMs }
      return undefined
    }
    const uid = uuid(this.#services.random)
    let made = ''
    let why = '<nil>'
    try {
      const next = await this.#makeSeed(uid, expiresMs)
      made = next.wrapped.keyId
      if (made === keyId) {
        this.#take(next)
        return undefined
      }
    } catch (error) {
      why = textOf(error)
    }
    const state = seed === undefined ? 'got unexpected nil transformer' : '<nil>'
    const hashes = `statusKeyIDHash=${goQuote(hashOf(keyId))}, encryptKeyIDHash=${goQuote(hashOf(made))}, stateKeyIDHash=${goQuote(hashOf(seed?.wrapped.keyId ?? ''))}`
    const expiration = seed === undefined ? '0001-01-01T00:00:00Z' : timeOf(seed.expiresMs)
    return `failed to rotate DEK uid=${goQuote(uid)}, useSeed=true, errState=${state}, errGen=${why}, ${hashes}, expirationTimestamp=${expiration}`
  }

  #take(seed: Seed): void {
    this.#seed = seed
    this.#secrets.set(cacheKeyOf(seed.wrapped), seed.secret)
  }

  async #makeSeed(uid: string, expiresMs: number): Promise<Seed> {
    const secret = this.#services.random.bytes(SEED_BYTES)
    const { ciphertext, keyId, annotations } = await this.#call(KeyManagementService.encrypt, {
      plaintext: secret,
      uid,
    }).catch((cause: unknown) => {
      throw new Error(`failed to encrypt DEK, error: ${textOf(cause)}`, { cause })
    })
    const wrapped = {
      keyId,
      encryptedSource: Buffer.from(ciphertext),
      annotations: ownCopy(annotations),
      sourceType: SOURCE.seed,
    }
    checkEncryptedObject({ ...wrapped, encryptedData: Buffer.of(0) })
    return { wrapped, secret, expiresMs }
  }
}

/** HKDF-Expand with SHA-256: a key needs only the first block. */
function derive(seed: Buffer, info: Uint8Array): Buffer {
  return createHmac('sha256', seed).update(info).update(Buffer.of(1)).digest()
}

function cacheKeyOf({
  sourceType,
  encryptedSource,
  keyId,
  annotations,
}: Omit<EncryptedObject, 'encryptedData'>): string {
  const notes = [...annotations.keys()]
    .toSorted(compareText)
    .map((name) => [name, annotations.get(name)?.toString('base64')])
  return JSON.stringify([sourceType, encryptedSource.toString('base64'), keyId, notes])
}

/** Copies, not views of the message. */
function ownCopy(annotations: ReadonlyMap<string, Buffer>): Map<string, Buffer> {
  return new Map([...annotations].map(([name, value]) => [name, Buffer.from(value)]))
}

/** Key IDs must not appear in logs. */
function hashOf(keyId: string): string {
  return keyId === '' ? '' : `sha256:${createHash('sha256').update(keyId).digest('hex')}`
}

/** As Go's client prints it. */
function textOf(error: unknown): string {
  if (!(error instanceof GrpcError)) return (error as Error).message
  const code = error.code.replace(/^./, (letter) => letter.toUpperCase())
  return `rpc error: code = ${code} desc = ${error.message}`
}
