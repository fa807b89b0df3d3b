/**
 * Starts the API server. It opens the port and starts the store's threads while the rest of the program still loads.
 * This saves time on machines with two processors.
 */
import { bindPort } from '#component/bound-port.ts'

import { openEnvironment, type EnvironmentOptions } from './environment.ts'
import type { Settings } from './flags/flags.ts'
import type { RunningServer } from './server.ts'
import { prepareStore } from './storage.ts'

/**
 * Everything that is opened is pushed to `closing`, which stops the server. Throws ProgramError for errors that the
 * user can fix.
 */
export async function startApiServer(
  settings: Settings,
  options: EnvironmentOptions,
  closing: AsyncDisposableStack,
): Promise<RunningServer> {
  const environment = await openEnvironment(settings, options, closing)
  const openStore = await prepareStore(environment)
  // Both have settled before anything is closed again.
  const opening = Promise.allSettled([bindPort(environment), openStore()])
  const { assembleServer } = await import('./server.ts')
  const [port, backend] = await opening
  if (port.status === 'rejected') throw port.reason
  if (backend.status === 'rejected') throw backend.reason
  return assembleServer(environment, port.value, backend.value)
}
