/** Configures the HTTPS port of a kubelet: certificates from files, reloaded when they change, and authentication. */
import { resolve } from 'node:path'

import type { ApiClient } from '#client/api-client.ts'
import { cipherNames, tlsVersion } from '#component/flags/tls-names.ts'
import { ownFiles, type Pair, readPair } from '#component/key-pair.ts'
import { createLiveFiles } from '#component/live-files.ts'
import { CertificateManager } from '#kubelet/certificates/certificate-manager.ts'
import { CertificateStore } from '#kubelet/certificates/certificate-store.ts'
import { countServerCertificate } from '#kubelet/metrics/certificate-metrics.ts'
import type { Serving } from '#kubelet/server/ports.ts'
import { durationMs } from '#lib/go/duration.ts'
import { ProgramError } from '#lib/program.ts'
import { KUBELET_SERVING_SIGNER } from '#model/certificate-requests.ts'

import { openClientAuthority } from './client-authority.ts'
import type { KubeletProgram } from './program.ts'

/** The inputs for certificate requests. */
interface ServingContext {
  readonly client: ApiClient
  /** The addresses of the node. */
  readonly addresses: readonly string[]
  readonly signal: AbortSignal
}

/** Throws ProgramError. */
export async function openServing(program: KubeletProgram, around: ServingContext): Promise<Serving> {
  const { configuration, closing } = program
  const { address, port, readOnlyPort = 0, authentication, authorization } = configuration
  const files = createLiveFiles(program)
  closing.defer(() => files.close())
  const authority = await openClientAuthority(program, files)
  const changes = new EventTarget()
  const pair = await openPair(program, files, { ...around, changed: () => changes.dispatchEvent(new Event('changed')) })
  if (!['AlwaysAllow', 'Webhook'].includes(authorization.mode)) {
    throw new ProgramError(`failed to run Kubelet: unknown authorization mode ${authorization.mode}`)
  }
  warnOfOpenNode(program)
  return {
    ...pair(),
    address,
    port,
    clientAuthority: authority(),
    allowsAnonymous: authentication.anonymous.enabled,
    rules: {
      reviewsTokens: authentication.webhook.enabled,
      tokenMs: durationMs(authentication.webhook.cacheTTL),
      allowsAll: authorization.mode === 'AlwaysAllow',
      allowedMs: durationMs(authorization.webhook.cacheAuthorizedTTL),
      deniedMs: durationMs(authorization.webhook.cacheUnauthorizedTTL),
    },
    hasDebugging: configuration.enableDebuggingHandlers,
    ...tlsOf(program),
    ...(readOnlyPort !== 0 && { readOnlyPort }),
    follow(changed) {
      const tell = (): void => changed({ ...pair(), clientAuthority: authority() })
      files.start(tell)
      changes.addEventListener('changed', tell)
    },
  }
}

/** Logs once when anonymous callers may run commands in containers, or when the read-only port is open. */
export function warnOfOpenNode({ configuration, log }: Pick<KubeletProgram, 'configuration' | 'log'>): void {
  const { address, port, readOnlyPort = 0, authentication, authorization } = configuration
  const remedy = 'Set authentication.anonymous.enabled to false and authorization.mode to Webhook'
  if (authentication.anonymous.enabled && authorization.mode === 'AlwaysAllow') {
    log.info('Warning: anonymous requests are allowed everything, including commands in all containers', {
      address,
      port,
      remedy,
    })
  }
  if (readOnlyPort !== 0) {
    log.info('Warning: the read-only port serves pods and metrics without authentication', { address, readOnlyPort })
  }
}

/** A given certificate, a requested one, or a self-signed one in the certificate directory. */
async function openPair(
  program: KubeletProgram,
  files: ReturnType<typeof createLiveFiles>,
  around: ServingContext & { readonly changed: () => void },
): Promise<() => Pair> {
  const { configuration, settings, node } = program
  if (configuration.serverTLSBootstrap === true) return requestPair(program, around)
  const { tlsCertFile = '', tlsPrivateKeyFile = '' } = configuration
  if (tlsCertFile !== '' || tlsPrivateKeyFile !== '') return files.open([tlsCertFile, tlsPrivateKeyFile], readPair)
  const own = { certDir: settings['cert-dir'], name: 'kubelet', hosts: [node] }
  return files.open(await ownFiles(program, own), readPair)
}

/** Without an approved certificate the port accepts no connections. */
async function requestPair(
  { clock, random, log, node, settings, cwd, registry }: KubeletProgram,
  { client, addresses, signal, changed }: ServingContext & { readonly changed: () => void },
): Promise<() => Pair> {
  const store = new CertificateStore(resolve(cwd, settings['cert-dir']), 'kubelet-server', clock)
  const names = { dns: addresses.includes(node) ? [] : [node], ips: [...addresses] }
  const spec = { node, signer: KUBELET_SERVING_SIGNER, purpose: 'server auth', names }
  const counts = countServerCertificate(registry, clock)
  const keeper = new CertificateManager({ clock, random, log, store, spec, client, signal, changed, counts })
  await keeper.start()
  return () => keeper.current ?? { certificate: '', key: '' }
}

function tlsOf({ configuration }: KubeletProgram): Pick<Serving, 'minVersion' | 'ciphers'> {
  const { tlsMinVersion = '', tlsCipherSuites = [] } = configuration
  try {
    return {
      minVersion: tlsVersion(tlsMinVersion),
      ...(tlsCipherSuites.length > 0 && { ciphers: cipherNames(tlsCipherSuites) }),
    }
  } catch (cause) {
    throw new ProgramError(`failed to construct kubelet dependencies: ${(cause as Error).message}`, { cause })
  }
}
