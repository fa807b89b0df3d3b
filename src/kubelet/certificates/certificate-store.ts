/**
 * Certificates of a kubelet on disk, as upstream keeps them: each with its key in a file of its own, named by when it came, and
 * `<name>-current.pem` leading to the one that counts. There is always a whole one behind that name, whenever we are killed.
 */
import { mkdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import type { Clock } from '#lib/clock.ts'
import { type Certificate, parseBundle } from '#lib/x509/certificate.ts'
import { isSameKey, keyToPem, parsePrivateKey } from '#lib/x509/key.ts'

export interface StoredPair {
  /** PEM: the certificate and what lies between it and a root. */
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

  /** Undefined when there is none that can be used. */
  async current(): Promise<StoredPair | undefined> {
    const text = await readFile(this.currentPath, 'utf8').catch(() => undefined)
    return text === undefined ? undefined : pairOf(text, text)
  }

  /** Throws when they do not belong together or cannot be written; what was current then still is. */
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
    // What cannot be read is as good as not there.
    return undefined
  }
}

/** `2026-11-16-04-05-06`. */
function stampOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')
}
