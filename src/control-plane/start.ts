/**
 * Starts the API server. What must be waited for, the port and the store's threads, is opened while the rest of the
 * program is still being loaded: on a machine with two processors that hides the one behind the other.
 */
import { bindPort } from './addresses.ts'
import type { Settings } from './flags/flags.ts'
import type { RunningServer } from './server.ts'
import { openSite, type Surroundings } from './site.ts'
import { prepareStore } from './storage.ts'

/** Everything that is opened is put on `closing`, which stops the server. Throws ProgramError for what the user can act on. */
export async function startApiServer(
  settings: Settings,
  around: Surroundings,
  closing: AsyncDisposableStack,
): Promise<RunningServer> {
  const site = await openSite(settings, around, closing)
  const openStore = await prepareStore(site)
  // Both have ended, well or not, before anything is closed again.
  const opening = Promise.allSettled([bindPort(site), openStore()])
  const { assembleServer } = await import('./server.ts')
  const [port, backend] = await opening
  if (port.status === 'rejected') throw port.reason
  if (backend.status === 'rejected') throw backend.reason
  return assembleServer(site, port.value, backend.value)
}
