/**
 * Runs the controllers in the API server's process. They call the server without connections and tokens, but each with
 * its own identity, so that RBAC applies.
 */
import type { User } from '#auth/user.ts'
import type { ApiClientOptions, Transport } from '#client/api-client.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Controller } from '#controllers/controller.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { runControllers } from '#controllers/manager.ts'
import type { ControllerSettings } from '#controllers/settings.ts'
import { chooseControllers } from '#controllers/workloads/selection.ts'
import { ProgramError } from '#lib/program.ts'
import { userAgent } from '#model/version.ts'

const MANAGER: User = { name: 'system:kube-controller-manager', uid: '', groups: ['system:authenticated'], extra: {} }
const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated']

export interface InProcessControllers extends Pick<EnvironmentOptions, 'clock' | 'random' | 'log' | 'readFile'> {
  readonly controllers: readonly Controller[]
  readonly settings: ControllerSettings
  readonly isEnabled: (gate: string) => boolean
}

/** The controllers of `--controllers` with enabled gates. Throws ProgramError for unknown names. */
export function chosenControllers(
  wanted: readonly string[],
  { log, isEnabled }: Pick<InProcessControllers, 'log' | 'isEnabled'>,
): readonly Controller[] {
  const { controllers, errors, cloudOnly } = chooseControllers(CONTROLLERS, wanted)
  if (errors.length > 0) throw new ProgramError(errors.join(', '))
  for (const name of cloudOnly)
    log.info('Skipping controller that runs only in cloud-controller-manager', { controller: name })
  return controllers.filter(({ gates = [] }) => gates.every(isEnabled))
}

/** They stop before everything already on `closing`. */
export function startInProcessControllers(
  running: Pick<RunningServer, 'server'>,
  options: InProcessControllers,
  closing: AsyncDisposableStack,
): void {
  const stop = new AbortController()
  const ended = runInProcessControllers(running, options, stop.signal)
  closing.defer(() => {
    stop.abort()
    return ended
  })
}

/** Runs them until the signal is aborted. Never rejects. `around` sees every request that they send. */
export async function runInProcessControllers(
  { server }: Pick<RunningServer, 'server'>,
  options: InProcessControllers & { readonly around?: (transport: Transport) => Transport },
  signal: AbortSignal,
): Promise<void> {
  const { controllers, log, around = (transport) => transport } = options
  const own = controllers.filter(({ actsAsManager }) => actsAsManager !== true)
  const accounts = new Set(own.map(({ account, name }) => account ?? name))
  const connect = (name: string): Pick<ApiClientOptions, 'transport'> => ({
    transport: around(server.clientAs(accounts.has(name) ? accountUser(name) : MANAGER)),
  })
  try {
    await runControllers({ ...options, connect, userAgent: userAgent('kube-controller-manager') }, signal)
  } catch (error) {
    log.error(error, 'Controllers stopped after an error')
  }
}

/** A service account of kube-system. */
export function accountUser(account: string): User {
  return { name: `system:serviceaccount:kube-system:${account}`, uid: '', groups: GROUPS, extra: {} }
}
