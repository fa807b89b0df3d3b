/**
 * What the server shows its clients: certificates given by flags, or one of its own made in the certificate directory. All
 * of them are followed, and new connections get the newest.
 */
import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import type { ServerTls } from '#lib/http/tls.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { parseBundle, parseCertificate } from '#lib/x509/certificate.ts'
import { isSameKey, parsePrivateKey } from '#lib/x509/key.ts'

import type { ServingPlan } from './flags/plan.ts'
import type { LiveFiles } from './live-files.ts'

type Tools = Pick<ProgramContext, 'clock' | 'random' | 'readFile'> & { readonly files: LiveFiles }

export interface LoadedServing {
  /** The newest certificates, with these client authorities. */
  tls(clientAuthorities: readonly string[]): ServerTls
}

interface Pair {
  readonly certificate: string
  readonly key: string
}

/** `hosts` are the names and addresses a certificate of our own is for. `changed` is told that there are new ones. */
export async function loadServing(
  plan: ServingPlan,
  hosts: readonly string[],
  tools: Tools & { readonly changed: () => void },
): Promise<LoadedServing> {
  const { files, changed } = tools
  const [certFile, keyFile] = await chooseFiles(plan, hosts, tools)
  const main = await files.open([certFile, keyFile], readPair, changed)
  const named = await Promise.all(
    plan.sni.map(async ({ certFile: cert, keyFile: key, names }) => {
      const pair = await files.open([cert, key], readPair, changed)
      return { pair, names }
    }),
  )
  return {
    tls: (clientAuthorities) => ({
      ...main(),
      sni: named.map(({ pair, names }) => ({ ...pair(), names: names.length === 0 ? namesIn(pair()) : names })),
      clientAuthorities,
      minVersion: plan.minVersion,
      ...(plan.ciphers !== undefined && { ciphers: plan.ciphers }),
    }),
  }
}

function readPair([certificate = '', key = '']: readonly string[]): Pair {
  const [leaf] = parseBundle(certificate)
  if (leaf === undefined) throw new Error('there is no certificate in the first')
  if (!isSameKey(leaf.publicKey, parsePrivateKey(key))) throw new Error('the key does not belong to the certificate')
  return { certificate, key }
}

function namesIn({ certificate }: Pair): string[] {
  const { names, subject } = parseCertificate(certificate)
  return names.dns.length > 0 ? [...names.dns] : [subject.commonName]
}

/** Those given, or those of the certificate directory, where they are made when they are not there. */
async function chooseFiles(
  { certFile, keyFile, certDir }: ServingPlan,
  hosts: readonly string[],
  tools: Tools,
): Promise<readonly [string, string]> {
  if (certFile !== '') return [certFile, keyFile]
  if (certDir === '') throw new ProgramError('--cert-dir must not be empty without --tls-cert-file')
  const paths = [join(certDir, 'apiserver.crt'), join(certDir, 'apiserver.key')] as const
  const isThere = await Promise.all(paths.map((path) => tools.readFile(path).then(() => true, isMissing)))
  if (isThere.every((there) => !there)) await makeOwn(certDir, paths, { hosts, tools })
  return paths
}

function isMissing(error: NodeJS.ErrnoException): false {
  if (error.code === 'ENOENT') return false
  throw new ProgramError(`Cannot read the certificate directory: ${error.message}`, { cause: error })
}

/** An authority of its own, then forgotten: nobody can sign another certificate with it. The file holds both. */
async function makeOwn(
  certDir: string,
  [certFile, keyFile]: readonly [string, string],
  { hosts, tools }: { readonly hosts: readonly string[]; readonly tools: Tools },
): Promise<void> {
  const { clock, random } = tools
  const commonName = `${hostname()}-ca@${Math.floor(clock.now() / 1000)}`
  const authority = createAuthority({ commonName }, { clock, random })
  const isIp = (host: string): boolean => /^[\d.]+$|:/.test(host)
  const names = { dns: hosts.filter((host) => !isIp(host)), ips: hosts.filter(isIp) }
  const issued = authority.issue({ commonName: hostname(), names, purpose: 'server' })
  try {
    await mkdir(certDir, { recursive: true })
    await writeFileAtomically(keyFile, issued.keyPem, { mode: 0o600 })
    await writeFileAtomically(certFile, issued.certificatePem + authority.certificatePem, { mode: 0o600 })
  } catch (cause) {
    const why = (cause as Error).message
    throw new ProgramError(`Cannot make a certificate in "${certDir}": ${why}; choose another with --cert-dir`, {
      cause,
    })
  }
}
