/** Who a kubelet is to the API server: what its kubeconfig says. */
import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/config.ts'
import { openConnection } from '#client/connection.ts'
import type { KubeletOptions } from '#kubelet/kubelet.ts'
import { ProgramError } from '#lib/program.ts'
import { ConfigError } from '#model/kubeconfig/reading.ts'
import { userAgent } from '#model/version.ts'

import type { KubeletProgram } from './kubelet-program.ts'

export interface KubeletIdentity {
  readonly connect: KubeletOptions['connect']
  /** For what a kubelet asks for beside its node and its pods. */
  readonly client: ApiClient
}

/** Throws ProgramError for what the user can act on. */
export async function openIdentity(program: KubeletProgram): Promise<KubeletIdentity> {
  const { settings, env, cwd, readFile, clock, log, closing } = program
  try {
    const where = { kubeconfig: settings.kubeconfig, master: '' }
    const config = await programConfig(where, { env, cwd, readFile, warn: (text) => log.info(text) })
    const onError = (error: unknown): void => log.error(error, 'refreshing credentials')
    const connect = await openConnection(config, { clock, readFile, env, onError })
    closing.defer(() => connect.close())
    return { connect, client: new ApiClient({ ...connect, clock, userAgent: userAgent('kubelet') }) }
  } catch (cause) {
    if (cause instanceof ConfigError) {
      throw new ProgramError(`failed to run Kubelet: invalid kubeconfig: ${cause.message}`, { cause })
    }
    throw cause
  }
}
