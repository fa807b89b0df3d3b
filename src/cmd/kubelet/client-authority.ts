/**
 * Decides which CA must have signed the client certificates that a kubelet accepts. The configuration decides; without
 * any, it is the authority that signed the kubelet's client certificate.
 */
import type { LiveFiles } from '#component/live-files.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import { parseBundle } from '#lib/x509/certificate.ts'
import { verifyChain } from '#lib/x509/chain.ts'
import { encodePem } from '#lib/x509/pem.ts'
import { tlsOf } from '#model/kubeconfig/credentials.ts'

import { readConfig } from './bootstrap.ts'
import { kubeconfigOf } from './identity.ts'
import type { KubeletProgram } from './program.ts'

/** PEM at the time of the call; empty: no client certificate is accepted. Throws ProgramError. */
export async function openClientAuthority(program: KubeletProgram, files: LiveFiles): Promise<() => string> {
  const { configuration, settings, log, readFile, clock } = program
  const { clientCAFile = '' } = configuration.authentication.x509
  if (clientCAFile !== '') return files.open([clientCAFile], ([pem = '']) => (parseBundle(pem), pem))
  if (settings.config !== '' || settings['config-dir'] !== '') return () => ''
  const kubeconfig = kubeconfigOf(program)
  const pem = signerOf(await tlsOf(await readConfig(program, kubeconfig), readFile), clock.now())
  if (pem !== '') log.info('Accepting client certificates that the CA in the kubeconfig signed', { kubeconfig })
  else {
    log.info(
      'Accepting no client certificates, because the CA in the kubeconfig did not sign the certificate of this node',
      { kubeconfig, remedy: 'Set --client-ca-file or clientCAFile for logs and exec through the API server' },
    )
  }
  return () => pem
}

/**
 * The authority of the kubeconfig that signed its client certificate; empty if none did. An authority that only signs
 * server certificates, such as a public one, is not accepted, because it might sign for others.
 */
export function signerOf({ ca = '', certificate = '' }: Pick<ClientTls, 'ca' | 'certificate'>, nowMs: number): string {
  try {
    const [leaf, ...intermediates] = parseBundle(certificate)
    if (leaf === undefined || ca === '') return ''
    const chain = verifyChain(leaf, { roots: parseBundle(ca), intermediates, nowMs, usage: 'client auth' })
    const root = chain.length > 1 ? chain.at(-1) : undefined
    return root === undefined ? '' : encodePem('CERTIFICATE', root.der)
  } catch {
    return ''
  }
}
