/** What a kubelet shows those who ask it, and whom it believes: certificates from files, followed as they change. */
import { cipherNames, tlsVersion } from '#control-plane/flags/tls-names.ts'
import { createLiveFiles } from '#control-plane/live-files.ts'
import { ownFiles, type Pair, readPair } from '#control-plane/serving.ts'
import type { Serving } from '#kubelet/server/ports.ts'
import { ProgramError } from '#lib/program.ts'
import { parseBundle } from '#lib/x509/certificate.ts'
import { durationMs } from '#meta/duration.ts'

import type { KubeletProgram } from './kubelet-program.ts'

/** Throws ProgramError. */
export async function openServing(program: KubeletProgram): Promise<Serving> {
  const { configuration, closing } = program
  const { address, port, readOnlyPort = 0, authentication, authorization } = configuration
  const files = createLiveFiles(program)
  closing.defer(() => files.close())
  const { clientCAFile = '' } = authentication.x509
  const authority =
    clientCAFile === '' ? () => '' : await files.open([clientCAFile], ([pem = '']) => (parseBundle(pem), pem))
  const pair = await openPair(program, files)
  if (!['AlwaysAllow', 'Webhook'].includes(authorization.mode)) {
    throw new ProgramError(`failed to run Kubelet: unknown authorization mode ${authorization.mode}`)
  }
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
    follow: (changed) => files.start(() => changed({ ...pair(), clientAuthority: authority() })),
  }
}

/** Given, or its own in the certificate directory. */
async function openPair(program: KubeletProgram, files: ReturnType<typeof createLiveFiles>): Promise<() => Pair> {
  const { configuration, settings, node } = program
  const { tlsCertFile = '', tlsPrivateKeyFile = '' } = configuration
  if (tlsCertFile !== '' || tlsPrivateKeyFile !== '') return files.open([tlsCertFile, tlsPrivateKeyFile], readPair)
  const own = { certDir: settings['cert-dir'], name: 'kubelet', hosts: [node] }
  return files.open(await ownFiles(program, own), readPair)
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
