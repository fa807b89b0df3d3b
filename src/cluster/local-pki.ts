/**
 * The PKI of a cluster on one machine: cluster CA, front-proxy CA, ServiceAccount key and the certificates. Creates
 * missing files and renews expiring ones, at runtime and at the start. Private keys are readable by their owner only.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Clock } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import type { Logger } from '#lib/log/log.ts'
import { type PeriodicTask, runPeriodically } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import { type Authority, createAuthority, type IssuePlan, loadAuthority } from '#lib/x509/authority.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'

export interface KeyPair {
  /** PEM. */
  readonly certificate: string
  readonly key: string
}

export interface LocalPki {
  readonly ca: Authority
  readonly frontProxyCa: Authority
  /** The API server's serving certificate. */
  readonly apiServer: KeyPair
  /** For the first user: member of system:masters. */
  readonly admin: KeyPair
  /** The API server's client certificate for kubelets. */
  readonly kubeletClient: KeyPair
  /** The API server's client certificate for aggregated servers. */
  readonly frontProxyClient: KeyPair
  /** PEM of the private key that signs ServiceAccount tokens. */
  readonly serviceAccountKey: string
}

/** File access, by kubeadm's file names. */
export interface PkiFiles {
  /** Undefined: the file does not exist. */
  read(name: string): Promise<string | undefined>
  write(name: string, text: string): Promise<void>
}

export interface LocalPkiOptions {
  readonly files: PkiFiles
  /** Addresses and names of the API server. */
  readonly hosts: readonly string[]
  readonly clock: Clock
  readonly random: Random
  /** The validity of CAs and certificates. Default: ten years and one year. */
  readonly validityMs?: number
}

/** Files in a directory, which is created if missing. */
export function pkiFolder(folder: string): PkiFiles {
  return {
    async read(name) {
      try {
        return await readFile(join(folder, name), 'utf8')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    },
    async write(name, text) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writeFileAtomically(join(folder, name), text, OWNER_ONLY)
    },
  }
}

/** Renews a certificate with less than this part of its lifetime left. */
const RENEW_BELOW = 0.3

const OWNER_ONLY = { mode: 0o600 }

/** Reads the certificates; creates and renews them if needed. */
export async function openLocalPki(options: LocalPkiOptions): Promise<LocalPki> {
  const ca = await openAuthority(options, 'ca', 'kubernetes')
  const frontProxyCa = await openAuthority(options, 'front-proxy-ca', 'front-proxy-ca')
  const isIp = (host: string): boolean => /^[\d.]+$|:/.test(host)
  const names = { dns: options.hosts.filter((host) => !isIp(host)), ips: options.hosts.filter(isIp) }
  const open = (name: string, authority: Authority, plan: IssuePlan): Promise<KeyPair> =>
    openPair(options, name, authority, plan)
  return {
    ca,
    frontProxyCa,
    apiServer: await open('apiserver', ca, { commonName: 'kube-apiserver', names, purpose: 'server' }),
    admin: await open('admin', ca, {
      commonName: 'kubernetes-admin',
      organizations: ['system:masters'],
      purpose: 'client',
    }),
    kubeletClient: await open('apiserver-kubelet-client', ca, {
      commonName: 'kube-apiserver-kubelet-client',
      organizations: ['kubeadm:cluster-admins'],
      purpose: 'client',
    }),
    frontProxyClient: await open('front-proxy-client', frontProxyCa, {
      commonName: 'front-proxy-client',
      purpose: 'client',
    }),
    serviceAccountKey: await openKey(options),
  }
}

async function openAuthority(
  { files, clock, random, validityMs }: LocalPkiOptions,
  name: string,
  commonName: string,
): Promise<Authority> {
  const stored = await readPair(files, name)
  if (stored !== undefined) return loadAuthority(stored, { clock, random })
  const made = createAuthority({ commonName, ...(validityMs !== undefined && { validityMs }) }, { clock, random })
  await writePair(files, name, { certificate: made.certificatePem, key: made.keyPem })
  return made
}

async function openPair(
  options: LocalPkiOptions,
  name: string,
  authority: Authority,
  plan: IssuePlan,
): Promise<KeyPair> {
  const { files, clock, validityMs } = options
  const stored = await readPair(files, name)
  if (stored !== undefined && isFresh(stored, authority, plan, clock.now())) return stored
  const { certificatePem, keyPem } = authority.issue({ ...plan, ...(validityMs !== undefined && { validityMs }) })
  const made = { certificate: certificatePem, key: keyPem }
  await writePair(files, name, made)
  return made
}

/** Valid long enough, signed by this CA, and with all names. */
function isFresh({ certificate }: KeyPair, authority: Authority, { names }: IssuePlan, nowMs: number): boolean {
  const parsed = parseCertificate(certificate)
  const lifeMs = parsed.notAfterMs - parsed.notBeforeMs
  if (parsed.notAfterMs - nowMs < lifeMs * RENEW_BELOW) return false
  if (parsed.issuer.commonName !== authority.certificate.subject.commonName) return false
  const known = new Set([...parsed.names.dns, ...parsed.names.ips])
  return [...(names?.dns ?? []), ...(names?.ips ?? [])].every((name) => known.has(name))
}

async function openKey({ files }: LocalPkiOptions): Promise<string> {
  const stored = await files.read('sa.key')
  if (stored !== undefined) return stored
  const made = keyToPem(createKey())
  await files.write('sa.key', made)
  return made
}

async function readPair(files: PkiFiles, name: string): Promise<KeyPair | undefined> {
  const [certificate, key] = await Promise.all([files.read(`${name}.crt`), files.read(`${name}.key`)])
  return certificate === undefined || key === undefined ? undefined : { certificate, key }
}

/** Writes the key first: a certificate without its key would look complete. */
async function writePair(files: PkiFiles, name: string, { certificate, key }: KeyPair): Promise<void> {
  await files.write(`${name}.key`, key)
  await files.write(`${name}.crt`, certificate)
}

/** Much shorter than the remaining lifetime at renewal. */
const RENEW_EVERY_MS = 24 * 3_600_000

/** Renews expiring certificates while the cluster runs; calls `renewed` after each renewal. */
export function keepFresh(
  options: LocalPkiOptions & { readonly log: Logger },
  pki: LocalPki,
  renewed: (pki: LocalPki) => Promise<void>,
): PeriodicTask {
  const { clock, log } = options
  const onError = (error: unknown): void => log.error(error, 'Failed to renew certificates; retrying')
  let shown = pki
  return runPeriodically({ clock, periodMs: RENEW_EVERY_MS, onError }, async () => {
    const found = await openLocalPki(options)
    if (PAIRS.every((name) => found[name].certificate === shown[name].certificate)) return
    await renewed(found)
    shown = found
    log.info('Renewed certificates')
  })
}

const PAIRS = ['apiServer', 'admin', 'kubeletClient', 'frontProxyClient'] as const
