/** Builds the aggregation layer: discovery of aggregated servers, and the client certificate for them. */
import { createSecureContext } from 'node:tls'

import { type Aggregation, startAggregation } from '#aggregation/aggregation.ts'
import type { FrontProxyCertificate } from '#aggregation/front-proxy.ts'
import { systemNetwork } from '#apiserver/connect/backends.ts'
import { createServiceDirectory } from '#apiserver/connect/service-directory.ts'
import type { Registry } from '#apiserver/registry/registry.ts'

import type { Environment } from './environment.ts'

/** Throws ProgramError for unusable files. */
export async function openAggregation(environment: Environment, registry: Registry): Promise<Aggregation> {
  const { settings, random, network = systemNetwork, log, closing } = environment
  const directory = createServiceDirectory(registry, random)
  const aggregation = startAggregation(registry, {
    directory,
    network,
    certificate: await loadFrontProxy(environment),
    requestTimeoutMs: settings['request-timeout'],
    onError: (error) => log.error(error, 'Failed to update the availability of APIServices'),
    onSilence: (error, name) => log.v(2)?.info('Failed to reach aggregated server', { apiService: name, err: error }),
  })
  closing.defer(() => aggregation.close())
  return aggregation
}

/** The client certificate with which aggregated servers trust user headers; reloaded on change. */
async function loadFrontProxy({ settings, files }: Environment): Promise<() => FrontProxyCertificate | undefined> {
  const paths = [settings['proxy-client-cert-file'], settings['proxy-client-key-file']]
  if (paths.includes('')) return () => undefined
  return files.open(paths, ([certificate = '', key = '']) => {
    // Throws for unusable files, such as a new certificate whose key is not there yet.
    createSecureContext({ cert: certificate, key })
    return { certificate, key }
  })
}
