/** Configures the connection to kubelets: addresses and the client certificate. */
import { createSecureContext } from 'node:tls'

import type { KubeletSettings, KubeletTls } from '#apiserver/connect/backends.ts'

import type { Environment } from './environment.ts'

const KUBELET_FILES = {
  ca: 'kubelet-certificate-authority',
  certificate: 'kubelet-client-certificate',
  key: 'kubelet-client-key',
} as const

export async function loadKubelet({ settings, files }: Environment): Promise<KubeletSettings> {
  const named = Object.entries(KUBELET_FILES).filter(([, name]) => settings[name] !== '')
  const paths = named.map(([, name]) => settings[name])
  const parse = (texts: readonly string[]): KubeletTls => {
    const tls: KubeletTls = Object.fromEntries(named.map(([part], at) => [part, texts[at]]))
    // Throws for unusable files, such as a new certificate whose key is not there yet.
    createSecureContext({ ca: tls.ca, cert: tls.certificate, key: tls.key })
    return tls
  }
  return {
    tls: await files.open(paths, parse),
    port: settings['kubelet-port'],
    addressTypes: settings['kubelet-preferred-address-types'],
    timeoutMs: settings['kubelet-timeout'],
  }
}
