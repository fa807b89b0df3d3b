/**
 * Keeps a certificate of a kubelet valid for as long as it runs: asks for one when there is none, and for the next when 70 to
 * 90 % of its life are over. Whatever fails is tried again; until then the old one is used.
 */
import { createBackoff } from '#lib/backoff.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import { isExpired, planRenewal } from '#lib/x509/certificate.ts'
import { generateKey, keyToPem } from '#lib/x509/key.ts'

import type { CertificateCounts } from '../metrics/certificate-metrics.ts'
import { askForCertificate, type Asking, type CertificateWish } from './certificate-request.ts'
import type { CertificateStore, StoredPair } from './certificate-store.ts'

export interface CertificateKeeperOptions {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly store: CertificateStore
  readonly wish: CertificateWish
  readonly client: Asking['client']
  readonly signal: AbortSignal
  readonly changed: (pair: StoredPair) => void
  readonly counts: CertificateCounts
}

/** For somebody to approve. */
const WAIT_MS = 15 * 60_000
const BACKOFF = { baseMs: 2000, factor: 2, capMs: 32_000, jitter: 0.1 }

export class CertificateKeeper {
  readonly #options: CertificateKeeperOptions
  #current: StoredPair | undefined

  constructor(options: CertificateKeeperOptions) {
    this.#options = options
  }

  get current(): StoredPair | undefined {
    return this.#current
  }

  /** Reads what is there and sees to it from now on, until the signal is aborted. */
  async start(): Promise<void> {
    const { store, log, signal, counts } = this.#options
    this.#current = await store.current()
    counts.follow(() => this.#current?.leaf)
    void this.#run().catch((error: unknown) => {
      if (!signal.aborted) log.error(error, 'Certificates are not renewed any more')
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

  /** At once when there is none, it is over, or it is for other names than are wanted. */
  #dueMs(): number {
    const { clock, random, wish } = this.#options
    const leaf = this.#current?.leaf
    if (leaf === undefined || isExpired(leaf, clock.now())) return -Infinity
    const { dns = [], ips = [] } = wish.names ?? {}
    const covers = dns.every((name) => leaf.names.dns.includes(name)) && ips.every((ip) => leaf.names.ips.includes(ip))
    const isOurs = leaf.subject.commonName === `system:node:${wish.node}`
    return covers && isOurs ? planRenewal(leaf, random) : -Infinity
  }

  /** Resolves when there is a new one. */
  async #renew(): Promise<void> {
    const { clock, random, log, store, wish, client, signal, changed, counts } = this.#options
    const backoff = createBackoff(random, BACKOFF)
    for (;;) {
      try {
        log.v(2)?.info('Rotating certificates', { signer: wish.signer })
        const key = await clock.during(generateKey())
        const issued = await askForCertificate(wish, key, { client, random, signal, timeoutMs: WAIT_MS })
        const before = this.#current?.leaf
        this.#current = await clock.during(store.update(issued, keyToPem(key)))
        counts.rotated(before)
        changed(this.#current)
        return
      } catch (error) {
        signal.throwIfAborted()
        counts.failed()
        log.error(error, 'Certificate request was not signed', { signer: wish.signer })
        await sleep(clock, backoff.next(), signal)
      }
    }
  }
}
