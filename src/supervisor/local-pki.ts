/**
 * The certificates of a cluster on one machine: three authorities (cluster, front proxy, ServiceAccount key) and what
 * they sign, kept in one folder, made when missing and renewed when near their end, so that a cluster that was switched
 * off for a year starts again. Private keys are readable by their owner only.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import type { Clock } from '#lib/clock.ts'
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

export interface LocalPkiOptions {
  readonly folder: string
  /** Addresses and names clients reach the API server by. */
  readonly hosts: readonly string[]
  readonly clock: Clock
  readonly random: Random
}

/** A certificate with less than this part of its life left is made anew at start. */
const RENEW_BELOW = 0.3

const OWNER_ONLY = { mode: 0o600 }

/** Opens the folder's certificates, making and renewing what is needed. */
export async function openLocalPki(options: LocalPkiOptions): Promise<LocalPki> {
  await mkdir(options.folder, { recursive: true, mode: 0o700 })
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
  { folder, clock, random }: LocalPkiOptions,
  name: string,
  commonName: string,
): Promise<Authority> {
  const stored = await readPair(folder, name)
  if (stored !== undefined) return loadAuthority(stored, { clock, random })
  const made = createAuthority({ commonName }, { clock, random })
  await writePair(folder, name, { certificate: made.certificatePem, key: made.keyPem })
  return made
}

async function openPair(
  options: LocalPkiOptions,
  name: string,
  authority: Authority,
  plan: IssuePlan,
): Promise<KeyPair> {
  const stored = await readPair(options.folder, name)
  if (stored !== undefined && isFresh(stored, authority, plan, options.clock.now())) return stored
  const { certificatePem, keyPem } = authority.issue(plan)
  const made = { certificate: certificatePem, key: keyPem }
  await writePair(options.folder, name, made)
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

async function openKey({ folder }: LocalPkiOptions): Promise<string> {
  const file = join(folder, 'sa.key')
  const stored = await readIfThere(file)
  if (stored !== undefined) return stored
  const made = keyToPem(createKey())
  await writeFileAtomically(file, made, OWNER_ONLY)
  return made
}

async function readPair(folder: string, name: string): Promise<KeyPair | undefined> {
  const [certificate, key] = await Promise.all([
    readIfThere(join(folder, `${name}.crt`)),
    readIfThere(join(folder, `${name}.key`)),
  ])
  return certificate === undefined || key === undefined ? undefined : { certificate, key }
}

/** The key first: a certificate without its key would look complete to nobody. */
async function writePair(folder: string, name: string, { certificate, key }: KeyPair): Promise<void> {
  await writeFileAtomically(join(folder, `${name}.key`), key, OWNER_ONLY)
  await writeFileAtomically(join(folder, `${name}.crt`), certificate, OWNER_ONLY)
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
