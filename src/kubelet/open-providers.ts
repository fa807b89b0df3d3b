/** Opens the registry credential sources of a kubelet, except for image pull secrets. */
import { type Pod, ServiceAccounts } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'

import { CredentialProvider, type CredentialSource } from './credentials/credential-provider.ts'
import { providerProgram } from './credentials/provider-program.ts'
import { registryFile } from './credentials/registry-file.ts'
import type { KubeletOptions } from './kubelet-options.ts'
import type { KubeletMeters } from './metrics/kubelet-families.ts'
import { PodTokens } from './volumes/pod-tokens.ts'

export interface ProvidersOptions extends Pick<
  KubeletOptions,
  'clock' | 'random' | 'log' | 'credentials' | 'registryFile'
> {
  readonly client: ApiClient
  readonly meters: KubeletMeters
}

export function openProviders(options: ProvidersOptions): readonly CredentialSource[] {
  const files = options.registryFile === undefined ? [] : [registryFile(options.registryFile)]
  return [...files, ...openPrograms(options)]
}

function openPrograms(options: ProvidersOptions): readonly CredentialProvider[] {
  const { clock, random, log, client, meters, credentials } = options
  if (credentials === undefined) return []
  const { providers, binDir, env, hash } = credentials
  meters.family('kubelet_credential_provider_config_info').labels(hash).set(1)
  const onError = (error: unknown): void => log.error(error, "Couldn't update token")
  return providers.map((config) => {
    // A new token for each call, because the plugin decides about caching.
    const token = (pod: Pod, audience: string): Promise<string> =>
      new PodTokens({ client, random, onError }).get({ pod, audience, expirationSeconds: undefined })
    return new CredentialProvider({
      config,
      clock,
      log,
      meters,
      run: providerProgram({ config, binDir, clock, env }),
      serviceAccount: (namespace, name) => client.get(ServiceAccounts, { namespace, name }),
      token,
    })
  })
}
