/** What is done to a machine that is no node any more: its processes end, its networks go, its folders are emptied. */
import type { Host } from '../host.ts'
import { TYPES_OF_PODS } from '../pod-network.ts'
import type { ProcessName } from '../process-names.ts'
import { endNetworkPolicies } from '../processes.ts'

/** kube-proxy and kubelet first: they would miss flanneld. */
const NAMES: readonly ProcessName[] = ['kube-proxy', 'kubelet', 'flanneld']

/** All of it is tried; what could not be done is said, and thrown at the end. */
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
  await tried('network policies stay', () => endNetworkPolicies(host))
  for (const name of NAMES) await tried(`${name} stays`, () => host.processes.kill(name))
  await tried('policies of Services stay', () => host.network.pods.removeServicePolicies())
  await tried('networks of pods stay', () => removeNetworks(host))
  for (const folder of host.layout.remains) await tried(`${folder} stays`, () => host.files.empty(folder))
  if (failures.length > 0) throw new AggregateError(failures, 'This machine is not clean: see what was said before')
}

async function removeNetworks({ network }: Host): Promise<void> {
  for (const { id, type } of await network.pods.list()) if (TYPES_OF_PODS.has(type)) await network.pods.remove(id)
}
