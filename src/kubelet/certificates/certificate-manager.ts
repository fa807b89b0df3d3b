/**
 * Rotates a certificate of the kubelet: requests a new one after 70 to 90 % of its lifetime. The old certificate stays
 * in use while requests fail.
 */
import { createBackoff } from '#lib/backoff.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import { isExpired, planRenewal } from '#lib/x509/certificate.ts'
import { generateKey, keyToPem } from '#lib/x509/key.ts'

import type { CertificateCounts } from '../metrics/certificate-metrics.ts'
import { type CertificateRequestOptions, type CertificateSpec, requestCertificate } from './certificate-request.ts'
import type { CertificateStore, StoredPair } from './certificate-store.ts'

export interface CertificateManagerOptions {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly store: CertificateStore
  readonly spec: CertificateSpec
  readonly client: CertificateRequestOptions['client']
  readonly signal: AbortSignal
  readonly changed: (pair: StoredPair) => void
  readonly counts: CertificateCounts
}

/** Timeout for approval and signing. */
const WAIT_MS = 15 * 60_000
const BACKOFF = { baseMs: 2000, factor: 2, capMs: 32_000, jitter: 0.1 }

export class CertificateManager {
  readonly #options: CertificateManagerOptions
  #current: StoredPair | undefined

  constructor(options: CertificateManagerOptions) {
    this.#options = options
  }

  get current(): StoredPair | undefined {
    return this.#current
  }

  /** Loads the stored certificate and rotates it until the signal is aborted. */
  async start(): Promise<void> {
    const { store, log, signal, counts } = this.#options
    this.#current = await store.current()
    counts.follow(() => this.#current?.leaf)
    void this.#run().catch((error: unknown) => {
      if (!signal.aborted) log.error(error, 'Certificate rotation stopped')
    })
  }

  async #run(): Promise<void> {
    const { clock, signal, log } = this.#options
    while (!signal.aborted) {
      const dueMs = this.#dueMs()
      const waitMs = dueMs - clock.now()
      if (waitMs > 0) {
        log.v(2)?.info('Waiting for next certificate rotation', { sleep: `${Math.round(waitMs / 1000)}s` })
        await sleep(clock, waitMs, signal, { background: true })
      }
      await this.#renew()
    }
  }

  /** Immediately when there is no certificate, it is expired, or its names differ. */
  #dueMs(): number {
    const { clock, random, spec } = this.#options
    const leaf = this.#current?.leaf
    if (leaf === undefined || isExpired(leaf, clock.now())) return -Infinity
    const { dns = [], ips = [] } = spec.names ?? {}
    const covers = dns.every((name) => leaf.names.dns.includes(name)) && ips.every((ip) => leaf.names.ips.includes(ip))
    const isOurs = leaf.subject.commonName === `system:node:${spec.node}`
    return covers && isOurs ? planRenewal(leaf, random) : -Infinity
  }

  /** Resolves when a new certificate is stored. */
  async #renew(): Promise<void> {
    const { clock, random, log, store, spec, client, signal, changed, counts } = this.#options
    const backoff = createBackoff(random, BACKOFF)
    for (;;) {
      try {
        log.v(2)?.info('Rotating certificates', { signer: spec.signer })
        const key = await clock.during(generateKey())
        const issued = await requestCertificate(spec, key, { client, random, signal, timeoutMs: WAIT_MS })
        const before = this.#current?.leaf
        this.#current = await clock.during(store.update(issued, keyToPem(key)))
        counts.rotated(before)
        changed(this.#current)
        return
      } catch (error) {
        signal.throwIfAborted()
        counts.failed()
        log.error(error, 'Certificate request was not signed', { signer: spec.signer })
        await sleep(clock, backoff.next(), signal)
      }
    }
  }
}
