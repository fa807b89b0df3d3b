/**
 * What the server shows its clients: certificates given by flags, or one of its own made in the certificate directory. All
 * of them are followed, and new connections get the newest.
 */
import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'

import type { ApiServer } from '#apiserver/apiserver.ts'
import { writeFileAtomically } from '#lib/atomic-file.ts'
import type { ServerTls } from '#lib/http/tls.ts'
import { ProgramError } from '#lib/program.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { parseBundle, parseCertificate } from '#lib/x509/certificate.ts'
import { isSameKey, parsePrivateKey } from '#lib/x509/key.ts'

import { advertisedAddress, ownNames } from './addresses.ts'
import type { LoadedAuthentication } from './authentication.ts'
import type { Site } from './site.ts'

export interface Serving {
  /** The newest certificates, with the newest client authorities. */
  tls(): ServerTls
  /** Gives the server what has changed since, if anything has. */
  reload(server: Pick<ApiServer, 'reloadTls'>): void
}

export interface Pair {
  readonly certificate: string
  readonly key: string
}

export async function loadServing(site: Site, { clientAuthorities }: LoadedAuthentication): Promise<Serving> {
  const { files, log } = site
  const { minVersion, ciphers, sni } = site.plan.serving
  const main = await files.open(await chooseFiles(site), readPair)
  const named = await Promise.all(
    sni.map(async ({ certFile, keyFile, names }) => ({ pair: await files.open([certFile, keyFile], readPair), names })),
  )
  const tls = (): ServerTls => ({
    ...main(),
    sni: named.map(({ pair, names }) => ({ ...pair(), names: names.length === 0 ? namesIn(pair()) : names })),
    clientAuthorities: clientAuthorities(),
    minVersion,
    ...(ciphers !== undefined && { ciphers }),
  })
  let shown = JSON.stringify(tls())
  return {
    tls,
    reload(server) {
      const next = JSON.stringify(tls())
      if (next === shown) return
      shown = next
      try {
        server.reloadTls(tls())
      } catch (error) {
        log.error(error, 'The new certificates cannot be used; the old ones stay in force')
      }
    },
  }
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

/** Those given, or those of the certificate directory, where they are made when they are not there. */
async function chooseFiles(site: Site): Promise<readonly [string, string]> {
  const { certFile, keyFile, certDir } = site.plan.serving
  if (certFile !== '') return [certFile, keyFile]
  if (certDir === '') throw new ProgramError('--cert-dir must not be empty without --tls-cert-file')
  const hosts = ownNames(site.settings, site.plan, advertisedAddress(site.settings))
  return ownFiles(site, { certDir, name: 'apiserver', hosts })
}

/** The pair of a name in the certificate directory, made for these hosts when it is not there. */
export async function ownFiles(
  tools: Pick<Site, 'clock' | 'random' | 'cwd' | 'readFile'>,
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

/** Signed by an authority of its own, then forgotten: nobody can sign another certificate with it. */
export function makePair({ clock, random }: Pick<Site, 'clock' | 'random'>, hosts: readonly string[]): Pair {
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
