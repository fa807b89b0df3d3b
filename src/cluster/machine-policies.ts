/** Network policies on a node whose pods' network this process may see: the machine itself, or another on the same machine. */
import { ApiClient } from '#client/api-client.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import { placesOf } from '#kubelet/containerd/places.ts'
import { removePolicies, startEnforcer } from '#network/policies/enforcer.ts'

import { accountUser } from './controllers.ts'
import { POLICIES_ACCESS, POLICIES_ACCOUNT } from './in-the-box.ts'

export interface MachinePolicies extends Pick<Surroundings, 'clock' | 'random' | 'log'> {
  /** Whatever is made is named after it. */
  readonly dataDir: string
  /** Its name. */
  readonly node: string
  /** Where its network is, when it is not that of this process: put before programs, as in `ip netns exec <name>`. */
  readonly within?: readonly string[]
  /** Where pods end later than `closing` does: rules stay, and go with the network they are in. */
  readonly keepsRules?: boolean
}

/** Returns when they hold, so that no pod starts before. Rules go with `closing`: it must have ended the node's pods by then. */
export async function startMachinePolicies(
  { server }: Pick<RunningServer, 'server'>,
  options: MachinePolicies,
  closing: AsyncDisposableStack,
): Promise<void> {
  const { clock, log, dataDir, within, keepsRules = false } = options
  // Where no box is unpacked, nobody else makes them.
  for (const [kind, object] of POLICIES_ACCESS) await server.registry.writer.ensure(kind, object)
  const transport = server.clientAs(accountUser(POLICIES_ACCOUNT))
  const client = new ApiClient({ transport, clock, userAgent: POLICIES_ACCOUNT })
  // Who ends containers removes what begins with the name of their network: see `stopContainerd`.
  const table = `${placesOf(dataDir).network}-policies`
  const enforcer = startEnforcer({ ...options, client, table })
  closing.defer(async () => {
    await enforcer.stop()
    if (keepsRules) return
    await removePolicies(table, within === undefined ? {} : { within }).catch((error: unknown) =>
      log.error(error, 'Rules of network policies could not be removed'),
    )
  })
  await enforcer.ready
}
