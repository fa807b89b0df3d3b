/** Servers behind this one: how they are found, and what they are shown. */
import { createSecureContext } from 'node:tls'

import { type Aggregation, startAggregation } from '#aggregation/aggregation.ts'
import type { FrontProxyCertificate } from '#aggregation/front-proxy.ts'
import { systemNetwork } from '#apiserver/connect/backends.ts'
import { createServiceDirectory } from '#apiserver/connect/service-directory.ts'
import type { Registry } from '#apiserver/registry/registry.ts'

import type { Site } from './site.ts'

/** Throws ProgramError for files that cannot be used. */
export async function openAggregation(site: Site, registry: Registry): Promise<Aggregation> {
  const { settings, random, network = systemNetwork, log, closing } = site
  const directory = createServiceDirectory(registry, random)
  const aggregation = startAggregation(registry, {
    directory,
    network,
    certificate: await loadFrontProxy(site),
    requestTimeoutMs: settings['request-timeout'],
    onError: (error) => log.error(error, 'Saying whether APIServices are available failed'),
    onSilence: (error, name) => log.v(2)?.info('Aggregated server cannot be asked', { apiService: name, err: error }),
  })
  closing.defer(() => aggregation.close())
  return aggregation
}

/** What other servers are shown, so that they believe what we say of users; followed while the server runs. */
async function loadFrontProxy({ settings, files }: Site): Promise<() => FrontProxyCertificate | undefined> {
  const paths = [settings['proxy-client-cert-file'], settings['proxy-client-key-file']]
  if (paths.includes('')) return () => undefined
  return files.open(paths, ([certificate = '', key = '']) => {
    // Throws for what cannot be used, as a new certificate whose key is not there yet.
    createSecureContext({ cert: certificate, key })
    return { certificate, key }
  })
}
