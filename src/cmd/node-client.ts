/** Creates the API client of a program on a node, and finds the name of the node. */
import { hostname } from 'node:os'

import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { type Invocation, ProgramError } from '#lib/program.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { userAgent } from '#model/version.ts'

export interface NodeClientOptions {
  /** The name of the program. */
  readonly name: string
  readonly where: { readonly kubeconfig: string; readonly master: string }
  /** The error text for an unusable kubeconfig. */
  readonly fault?: (message: string) => string
}

/** Closes with `closing`. Throws ProgramError for problems that the user can fix. */
export async function openNodeClient(
  { env, cwd, readFile, clock, log }: Omit<Invocation<FlagGroups>, 'flags'>,
  closing: AsyncDisposableStack,
  { name, where, fault = (message) => message }: NodeClientOptions,
): Promise<ApiClient> {
  try {
    const config = await programConfig(where, { env, cwd, readFile, warn: (text) => log.info(text) })
    const onError = (error: unknown): void => log.error(error, 'Failed to refresh client credentials')
    const connection = await openConnection(config, { clock, readFile, env, onError })
    closing.defer(() => connection.close())
    return new ApiClient({ ...connection, clock, userAgent: userAgent(name) })
  } catch (cause) {
    if (cause instanceof ConfigError) throw new ProgramError(fault(cause.message), { cause })
    throw cause
  }
}

/** The value of `--hostname-override`, or the host name. Throws ProgramError. */
export function machineNodeName(requested: string): string {
  const name = (requested === '' ? hostname() : requested).trim().toLowerCase()
  if (name === '') throw new ProgramError('empty hostname is invalid')
  return name
}
