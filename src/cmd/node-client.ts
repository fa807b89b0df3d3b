/** Who a program of a node is to the API server, and which node it is on. */
import { hostname } from 'node:os'

import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/config.ts'
import { openConnection } from '#client/connection.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { type Invocation, ProgramError } from '#lib/program.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { userAgent } from '#model/version.ts'

export interface NodeClientOptions {
  /** Of the program. */
  readonly name: string
  readonly where: { readonly kubeconfig: string; readonly master: string }
  /** What is said of a kubeconfig that cannot be used. */
  readonly fault?: (message: string) => string
}

/** Ends with `closing`. Throws ProgramError for what the user can act on. */
export async function openNodeClient(
  { env, cwd, readFile, clock, log }: Omit<Invocation<FlagGroups>, 'flags'>,
  closing: AsyncDisposableStack,
  { name, where, fault = (message) => message }: NodeClientOptions,
): Promise<ApiClient> {
  try {
    const config = await programConfig(where, { env, cwd, readFile, warn: (text) => log.info(text) })
    const onError = (error: unknown): void => log.error(error, 'refreshing credentials')
    const connection = await openConnection(config, { clock, readFile, env, onError })
    closing.defer(() => connection.close())
    return new ApiClient({ ...connection, clock, userAgent: userAgent(name) })
  } catch (cause) {
    if (cause instanceof ConfigError) throw new ProgramError(fault(cause.message), { cause })
    throw cause
  }
}

/** As `--hostname-override` says, or the machine. Throws ProgramError. */
export function machineNodeName(asked: string): string {
  const name = (asked === '' ? hostname() : asked).trim().toLowerCase()
  if (name === '') throw new ProgramError('empty hostname is invalid')
  return name
}
