/**
 * The certificates of a cluster on one machine: three authorities (cluster, front proxy, ServiceAccount key) and what
 * they sign, kept in files, made when missing and renewed when near their end: while the cluster runs, and when it starts
 * again after a year. Private keys are readable by their owner only.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import { type Rounds, startRounds } from '#lib/rounds.ts'
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
  /** What the API server shows its clients. */
  readonly apiServer: KeyPair
  /** For the first user: member of system:masters. */
  readonly admin: KeyPair
  /** What the API server shows kubelets. */
  readonly kubeletClient: KeyPair
  /** What the API server shows aggregated servers. */
  readonly frontProxyClient: KeyPair
  /** PEM of the private key that signs ServiceAccount tokens. */
  readonly serviceAccountKey: string
}

/** Where they are kept, by the names of kubeadm's files. */
export interface PkiFiles {
  /** Undefined: there is no such file. */
  read(name: string): Promise<string | undefined>
  write(name: string, text: string): Promise<void>
}

export interface LocalPkiOptions {
  readonly files: PkiFiles
  /** Addresses and names clients reach the API server by. */
  readonly hosts: readonly string[]
  readonly clock: Clock
  readonly random: Random
  /** How long authorities and certificates are good for. Default: ten years and one. */
  readonly validityMs?: number
}

/** In a folder, which is made when it is not there. */
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

/** A certificate with less than this part of its life left is made anew. */
const RENEW_BELOW = 0.3

const OWNER_ONLY = { mode: 0o600 }

/** Opens the certificates, making and renewing what is needed. */
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

/** Long enough to live, from this authority, and for all the names that are wanted now. */
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

/** The key first: a certificate without its key would look complete to nobody. */
async function writePair(files: PkiFiles, name: string, { certificate, key }: KeyPair): Promise<void> {
  await files.write(`${name}.key`, key)
  await files.write(`${name}.crt`, certificate)
}

/** Much shorter than what is left of a certificate that is renewed. */
const RENEW_EVERY_MS = 24 * 3_600_000

/** Renews what nears its end as long as the cluster runs; `renewed` is told whenever something was. */
export function keepFresh(
  options: LocalPkiOptions & { readonly log: Logger },
  pki: LocalPki,
  renewed: (pki: LocalPki) => Promise<void>,
): Rounds {
  const { clock, log } = options
  const onError = (error: unknown): void => log.error(error, 'Certificates could not be renewed; it is tried again')
  let shown = pki
  return startRounds({ clock, periodMs: RENEW_EVERY_MS, onError }, async () => {
    const found = await openLocalPki(options)
    if (PAIRS.every((name) => found[name].certificate === shown[name].certificate)) return
    await renewed(found)
    shown = found
    log.info('Certificates were renewed')
  })
}

const PAIRS = ['apiServer', 'admin', 'kubeletClient', 'frontProxyClient'] as const
