/** Cleans a machine that is no longer a node: stops its processes, removes its networks and empties its folders. */
import type { Host } from '../host.ts'
import { TYPES_OF_PODS } from '../pod-network.ts'
import type { ProcessName } from '../process-names.ts'
import { endNetworkPolicies } from '../processes.ts'

/** kube-proxy and kubelet stop first, because they depend on flanneld. */
const NAMES: readonly ProcessName[] = ['kube-proxy', 'kubelet', 'flanneld']

/** Tries every step; reports failures and throws at the end. */
export async function cleanMachine(host: Host): Promise<void> {
  const failures: unknown[] = []
  const tried = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      host.say(`${what}: ${(error as Error).message}`)
      failures.push(error)
    }
  }
  await tried('failed to remove network policies', () => endNetworkPolicies(host))
  for (const name of NAMES) await tried(`${name} stays`, () => host.processes.kill(name))
  await tried('failed to remove policies of Services', () => host.network.pods.removeServicePolicies())
  await tried('failed to remove networks of pods', () => removeNetworks(host))
  for (const folder of host.layout.remains) await tried(`${folder} stays`, () => host.files.empty(folder))
  if (failures.length > 0)
    throw new AggregateError(failures, 'This machine could not be cleaned completely: see the messages above')
}

async function removeNetworks({ network }: Host): Promise<void> {
  for (const { id, type } of await network.pods.list()) if (TYPES_OF_PODS.has(type)) await network.pods.remove(id)
}
