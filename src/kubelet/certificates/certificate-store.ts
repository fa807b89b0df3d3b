/**
 * Stores the kubelet's certificates on disk in upstream's layout. The link `<name>-current.pem` always leads to a
 * complete file with certificate and key.
 */
import { mkdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import type { Clock } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { type Certificate, parseBundle } from '#lib/x509/certificate.ts'
import { isSameKey, keyToPem, parsePrivateKey } from '#lib/x509/key.ts'

export interface StoredPair {
  /** PEM of the certificate and its intermediates. */
  readonly certificate: string
  readonly key: string
  readonly leaf: Certificate
}

export class CertificateStore {
  readonly #folder: string
  readonly #name: string
  readonly #clock: Clock

  /** `name` is `kubelet-client` or `kubelet-server`. */
  constructor(folder: string, name: string, clock: Clock) {
    this.#folder = resolve(folder)
    this.#name = name
    this.#clock = clock
  }

  get currentPath(): string {
    return this.#path('current')
  }

  /** Undefined without a usable certificate. */
  async current(): Promise<StoredPair | undefined> {
    const text = await readFile(this.currentPath, 'utf8').catch(() => undefined)
    return text === undefined ? undefined : pairOf(text, text)
  }

  /** Throws when certificate and key do not match or cannot be written; the current one then stays. */
  async update(certificate: string, key: string): Promise<StoredPair> {
    const pair = pairOf(certificate, key)
    if (pair === undefined) throw new Error('the certificate that was issued does not belong to the key')
    await mkdir(this.#folder, { recursive: true, mode: 0o755 })
    const path = this.#path(stampOf(this.#clock.now()))
    await writeFileAtomically(path, pair.certificate + pair.key, { mode: 0o600 })
    const next = this.#path('updated')
    await rm(next, { force: true })
    await symlink(path, next)
    await rename(next, this.currentPath)
    return pair
  }

  #path(what: string): string {
    return join(this.#folder, `${this.#name}-${what}.pem`)
  }
}

function pairOf(certificate: string, key: string): StoredPair | undefined {
  try {
    const chain = parseBundle(certificate)
    const [leaf] = chain
    const parsed = parsePrivateKey(key)
    if (leaf === undefined || !isSameKey(leaf.publicKey, parsed)) return undefined
    return { certificate: chain.map(({ pem }) => pem).join(''), key: keyToPem(parsed), leaf }
  } catch {
    // An unreadable file counts as missing.
    return undefined
  }
}

/** `2026-11-16-04-05-06`. */
function stampOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')
}
