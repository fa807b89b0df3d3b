/** Chooses the network adapter of a worker node, and keeps the routes to cloud metadata on it. */
import type { Adapter } from './host.ts'
import { CrashError } from './outcome.ts'
import type { Worker } from './worker.ts'

/** Metadata addresses of clouds, whose routes a new virtual switch removes. */
const METADATA_ROUTES: Readonly<Record<string, readonly string[]>> = {
  aws: ['169.254.169.254/32', '169.254.169.250/32', '169.254.169.251/32'],
  azure: ['169.254.169.254/32'],
  gce: ['169.254.169.254/32'],
}

/** The adapter with the node's address, or else a virtual adapter over a physical one. */
export function chooseAdapter(adapters: readonly Adapter[], nodeIp: string): Adapter {
  const chosen =
    adapters.find(({ address }) => address === nodeIp) ??
    adapters.find(({ name }) => name.startsWith('vEthernet (Ethernet'))
  if (chosen === undefined) throw new CrashError(`No network adapter has the address ${nodeIp}`)
  return chosen
}

export async function findAdapter({ host, settings }: Worker): Promise<Adapter> {
  return chooseAdapter(await host.network.adapters(), settings.nodeIp)
}

export async function repairCloudRoutes(worker: Worker): Promise<void> {
  const prefixes = METADATA_ROUTES[worker.settings.cloudProvider ?? ''] ?? []
  if (prefixes.length === 0) return
  const { index, gateway } = await findAdapter(worker)
  if (gateway === undefined) return worker.host.say('no routes to metadata: the adapter has no gateway')
  for (const prefix of prefixes) {
    // An existing route is fine.
    await worker.host.network
      .addRoute({ prefix, interfaceIndex: index, gateway, metric: 1 })
      .catch(() => worker.host.say(`the route to ${prefix} is there`))
  }
}
