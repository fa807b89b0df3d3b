/**
 * Controllers in the process of their server: without a connection and without encoding credentials, but each with the
 * identity that it would have outside, which RBAC lets do what its role says and nothing else.
 */
import type { User } from '#apiserver/registry/resource.ts'
import type { ApiClientOptions } from '#client/api-client.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import type { Controller } from '#controllers/controller.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { runControllers } from '#controllers/manager.ts'
import { chooseControllers } from '#controllers/selection.ts'
import type { ControllerSettings } from '#controllers/settings.ts'
import { ProgramError } from '#lib/program.ts'
import { userAgent } from '#model/version.ts'

const MANAGER: User = { name: 'system:kube-controller-manager', uid: '', groups: ['system:authenticated'], extra: {} }
const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated']

export interface InProcessControllers extends Pick<Surroundings, 'clock' | 'random' | 'log' | 'readFile'> {
  readonly controllers: readonly Controller[]
  readonly settings: ControllerSettings
  readonly isEnabled: (gate: string) => boolean
}

/** Those whose gates are on, of those that `--controllers` names. Throws ProgramError for names that nobody knows. */
export function chosenControllers(
  wanted: readonly string[],
  { log, isEnabled }: Pick<InProcessControllers, 'log' | 'isEnabled'>,
): readonly Controller[] {
  const { controllers, errors, missing } = chooseControllers(CONTROLLERS, wanted)
  if (errors.length > 0) throw new ProgramError(errors.join(', '))
  for (const name of missing) log.info('The controller is not there', { controller: name })
  return controllers.filter(({ gates = [] }) => gates.every(isEnabled))
}

/** They end before what is on `closing` already. */
export function startInProcessControllers(
  { server }: Pick<RunningServer, 'server'>,
  options: InProcessControllers,
  closing: AsyncDisposableStack,
): void {
  const { controllers, log } = options
  const own = controllers.filter(({ actsAsManager }) => actsAsManager !== true)
  const accounts = new Set(own.map(({ account, name }) => account ?? name))
  const connect = (name: string): Pick<ApiClientOptions, 'transport'> => ({
    transport: server.clientAs(accounts.has(name) ? accountUser(name) : MANAGER),
  })
  const stop = new AbortController()
  const ended = runControllers({ ...options, connect, userAgent: userAgent('kube-controller-manager') }, stop.signal)
  const told = ended.catch((error: unknown) => log.error(error, 'The controllers have ended'))
  closing.defer(() => {
    stop.abort()
    return told
  })
}

/** An account of kube-system. */
export function accountUser(account: string): User {
  return { name: `system:serviceaccount:kube-system:${account}`, uid: '', groups: GROUPS, extra: {} }
}
