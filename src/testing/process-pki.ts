/**
 * Creates the PKI that all test clusters of a process share, once and in memory. Its certificates are valid at any
 * virtual time.
 */
import type { KubeconfigEntry } from '#client/connection/kubeconfig.ts'
import { openLocalPki } from '#cluster/local-pki.ts'
import { servingNames } from '#cluster/settings.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'

export interface ProcessPki {
  /** Name → PEM. */
  readonly files: ReadonlyMap<string, string>
  readonly admin: Omit<KubeconfigEntry, 'name' | 'server'>
}

/** Covers the machine's clock, which clients use, and the clusters' virtual clocks. */
const FROM_MS = Date.UTC(2020, 0, 1)
const VALIDITY_MS = 100 * 365 * 24 * 3_600_000

let made: Promise<ProcessPki> | undefined

export function processPki(): Promise<ProcessPki> {
  made ??= makePki()
  return made
}

async function makePki(): Promise<ProcessPki> {
  const files = new Map<string, string>()
  const pki = await openLocalPki({
    files: {
      read: (name) => Promise.resolve(files.get(name)),
      write: (name, text) => Promise.resolve(void files.set(name, text)),
    },
    hosts: servingNames(),
    clock: createVirtualClock(FROM_MS),
    random: secureRandom,
    validityMs: VALIDITY_MS,
  })
  const { certificate: clientCertificate, key: clientKey } = pki.admin
  return { files, admin: { certificateAuthority: pki.ca.certificatePem, clientCertificate, clientKey } }
}
