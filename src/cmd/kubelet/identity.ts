/** Opens the kubelet's connection to the API server: kubeconfig, TLS bootstrap and certificate rotation. */
import { join, resolve } from 'node:path'

import { ApiClient } from '#client/api-client.ts'
import { registerClientMetrics } from '#client/client-metrics.ts'
import { CertificateManager } from '#kubelet/certificates/certificate-manager.ts'
import { CertificateStore } from '#kubelet/certificates/certificate-store.ts'
import type { KubeletOptions } from '#kubelet/kubelet-options.ts'
import { countClientCertificate } from '#kubelet/metrics/certificate-metrics.ts'
import { ProgramError } from '#lib/program.ts'
import { isExpired } from '#lib/x509/certificate.ts'
import { KUBELET_CLIENT_SIGNER } from '#model/certificate-requests.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { tlsOf } from '#model/kubeconfig/credentials.ts'
import type { ClientConfig } from '#model/kubeconfig/reading.ts'
import { userAgent } from '#model/version.ts'

import { bootstrap, CLIENT_STORE, connect, readConfig } from './bootstrap.ts'
import type { KubeletProgram } from './program.ts'

export interface KubeletIdentity {
  readonly connect: KubeletOptions['connect']
  /** The client for requests other than those for the node and its pods. */
  readonly client: ApiClient
}

/** Throws ProgramError for problems that the user can fix. */
export async function openIdentity(program: KubeletProgram, signal: AbortSignal): Promise<KubeletIdentity> {
  const { settings, configuration, clock, closing, cwd, registry } = program
  const kubeconfig = kubeconfigOf(program)
  if (settings['bootstrap-kubeconfig'] !== '') await bootstrap(program, kubeconfig, signal)
  const store = new CertificateStore(resolve(cwd, settings['cert-dir']), CLIENT_STORE, clock)
  const rotates = configuration.rotateCertificates === true
  try {
    const config = await readConfig(program, kubeconfig)
    const kept = rotates ? await fromStore(program, config, store) : undefined
    const connection = await connect(program, kept ?? config)
    closing.defer(() => connection.close())
    const transport = registerClientMetrics(registry, clock)(connection.transport)
    const client = new ApiClient({ ...connection, transport, clock, userAgent: userAgent('kubelet') })
    if (kept !== undefined) await rotate(program, { client, store, signal, changed: () => connection.refresh() })
    return { connect: { ...connection, transport }, client }
  } catch (cause) {
    if (cause instanceof ConfigError) {
      throw new ProgramError(`failed to run Kubelet: invalid kubeconfig: ${cause.message}`, { cause })
    }
    throw cause
  }
}

/** With only a bootstrap kubeconfig, the permanent one goes to the certificate directory. */
export function kubeconfigOf({ settings, cwd }: Pick<KubeletProgram, 'settings' | 'cwd'>): string {
  return resolve(cwd, settings.kubeconfig === '' ? join(settings['root-dir'], 'kubeconfig') : settings.kubeconfig)
}

/**
 * The store has the current certificate; the one in the kubeconfig is only the first. Undefined without a certificate.
 */
async function fromStore(
  { readFile, clock, log }: KubeletProgram,
  config: ClientConfig,
  store: CertificateStore,
): Promise<ClientConfig | undefined> {
  const stored = await store.current()
  if (stored === undefined || isExpired(stored.leaf, clock.now())) {
    const { certificate, key } = await tlsOf(config, readFile)
    if (certificate === undefined || key === undefined) {
      log.info('Kubeconfig has no client certificate; certificate rotation is disabled')
      return undefined
    }
    await store.update(certificate, key)
  }
  return { ...config, user: { 'client-certificate': store.currentPath, 'client-key': store.currentPath } }
}

async function rotate(
  { clock, random, log, node, registry }: KubeletProgram,
  keeping: Pick<ConstructorParameters<typeof CertificateManager>[0], 'client' | 'store' | 'signal' | 'changed'>,
): Promise<void> {
  const spec = { node, signer: KUBELET_CLIENT_SIGNER, purpose: 'client auth' }
  const counts = countClientCertificate(registry, clock)
  await new CertificateManager({ clock, random, log, spec, counts, ...keeping }).start()
}
