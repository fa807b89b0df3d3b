/** Certificate and key of a secure port: read from files, or self-signed and kept in the certificate directory. */
import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { parseBundle, parseCertificate } from '#lib/x509/certificate.ts'
import { isSameKey, parsePrivateKey } from '#lib/x509/key.ts'

export interface Pair {
  readonly certificate: string
  readonly key: string
}

export function readPair([certificate = '', key = '']: readonly string[]): Pair {
  const [leaf] = parseBundle(certificate)
  if (leaf === undefined) throw new Error('there is no certificate in the first')
  if (!isSameKey(leaf.publicKey, parsePrivateKey(key))) throw new Error('the key does not belong to the certificate')
  return { certificate, key }
}

export function namesIn({ certificate }: Pair): string[] {
  const { names, subject } = parseCertificate(certificate)
  return names.dns.length > 0 ? [...names.dns] : [subject.commonName]
}

/** The pair of a name in the certificate directory, created for these hosts if missing. */
export async function ownFiles(
  tools: Pick<ProgramContext, 'clock' | 'random' | 'cwd' | 'readFile'>,
  own: { readonly certDir: string; readonly name: string; readonly hosts: readonly string[] },
): Promise<readonly [string, string]> {
  const certDir = resolve(tools.cwd, own.certDir)
  const paths = [join(certDir, `${own.name}.crt`), join(certDir, `${own.name}.key`)] as const
  const isThere = await Promise.all(paths.map((path) => tools.readFile(path).then(() => true, isMissing)))
  if (isThere.every((there) => !there)) await writeOwn(makePair(tools, own.hosts), certDir, paths)
  return paths
}

function isMissing(error: NodeJS.ErrnoException): false {
  if (error.code === 'ENOENT') return false
  throw new ProgramError(`Cannot read the certificate directory: ${error.message}`, { cause: error })
}

/** Signed by a temporary authority whose key is discarded, so that no other certificate can be signed with it. */
export function makePair({ clock, random }: Pick<ProgramContext, 'clock' | 'random'>, hosts: readonly string[]): Pair {
  const commonName = `${hostname()}-ca@${Math.floor(clock.now() / 1000)}`
  const authority = createAuthority({ commonName }, { clock, random })
  const isIp = (host: string): boolean => /^[\d.]+$|:/.test(host)
  const names = { dns: hosts.filter((host) => !isIp(host)), ips: hosts.filter(isIp) }
  const { certificatePem, keyPem } = authority.issue({ commonName: hostname(), names, purpose: 'server' })
  return { certificate: certificatePem + authority.certificatePem, key: keyPem }
}

async function writeOwn(
  { certificate, key }: Pair,
  certDir: string,
  [certFile, keyFile]: readonly [string, string],
): Promise<void> {
  try {
    await mkdir(certDir, { recursive: true })
    await writeFileAtomically(keyFile, key, { mode: 0o600 })
    await writeFileAtomically(certFile, certificate, { mode: 0o600 })
  } catch (cause) {
    const why = (cause as Error).message
    throw new ProgramError(`Cannot make a certificate in "${certDir}": ${why}; choose another with --cert-dir`, {
      cause,
    })
  }
}
