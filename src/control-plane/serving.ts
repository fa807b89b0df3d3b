/**
 * Serving certificates: given by flags, or self-signed in the certificate directory. A changed file is reloaded, and
 * new connections get its certificate.
 */
import type { ApiServer } from '#apiserver/apiserver.ts'
import { namesIn, ownFiles, readPair } from '#component/key-pair.ts'
import type { ServerTls } from '#lib/http/tls.ts'
import { ProgramError } from '#lib/program.ts'

import { advertisedAddress, ownNames } from './addresses.ts'
import type { LoadedAuthentication } from './authentication.ts'
import type { Environment } from './environment.ts'

export interface Serving {
  /** The newest certificates, with the newest client authorities. */
  tls(): ServerTls
  /** Applies changed certificates to the server. */
  reload(server: Pick<ApiServer, 'reloadTls'>): void
}

export async function loadServing(
  environment: Environment,
  { clientAuthorities }: LoadedAuthentication,
): Promise<Serving> {
  const { files, log } = environment
  const { minVersion, ciphers, sni } = environment.plan.serving
  const main = await files.open(await chooseFiles(environment), readPair)
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
        log.error(error, 'Failed to load new certificates; serving with the old ones')
      }
    },
  }
}

/** The given files, or those of the certificate directory, which are created if missing. */
async function chooseFiles(environment: Environment): Promise<readonly [string, string]> {
  const { certFile, keyFile, certDir } = environment.plan.serving
  if (certFile !== '') return [certFile, keyFile]
  if (certDir === '') throw new ProgramError('--cert-dir must not be empty without --tls-cert-file')
  const hosts = ownNames(environment.settings, environment.plan, advertisedAddress(environment.settings))
  return ownFiles(environment, { certDir, name: 'apiserver', hosts })
}
