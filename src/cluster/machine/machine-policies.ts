/** Enforces network policies on a node whose network namespace this process can enter. */
import { ApiClient } from '#client/api-client.ts'
import { containerdPaths } from '#containerd/paths.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { removePolicies, startEnforcer } from '#network/policies/enforcer.ts'

import { accountUser } from '../controllers.ts'
import { POLICIES_ACCESS, POLICIES_ACCOUNT } from '../default-addons.ts'

export interface MachinePolicies extends Pick<EnvironmentOptions, 'clock' | 'random' | 'log'> {
  /** Names derive from it. */
  readonly dataDir: string
  /** The name of the node. */
  readonly node: string
  /** Prefixes programs to run in the node's network namespace, as in `ip netns exec <name>`. */
  readonly within?: readonly string[]
  /** Keeps rules after `closing`, for pods that stop later; they go with the namespace. */
  readonly keepsRules?: boolean
}

/**
 * Resolves when the rules are applied, so that no pod starts earlier. `closing` removes them, after the node's pods
 * have stopped.
 */
export async function startMachinePolicies(
  { server }: Pick<RunningServer, 'server'>,
  options: MachinePolicies,
  closing: AsyncDisposableStack,
): Promise<void> {
  const { clock, log, dataDir, within, keepsRules = false } = options
  // Without default addons, nothing else creates these.
  for (const [kind, object] of POLICIES_ACCESS) await server.registry.writer.ensure(kind, object)
  const transport = server.clientAs(accountUser(POLICIES_ACCOUNT))
  const client = new ApiClient({ transport, clock, userAgent: POLICIES_ACCOUNT })
  // The stop of containers removes tables with their network's prefix: see `stopContainerd`.
  const table = `${containerdPaths(dataDir).network}-policies`
  const enforcer = startEnforcer({ ...options, client, table })
  closing.defer(async () => {
    await enforcer.stop()
    if (keepsRules) return
    await removePolicies(table, within === undefined ? {} : { within }).catch((error: unknown) =>
      log.error(error, 'Failed to remove network policy rules'),
    )
  })
  await enforcer.ready
}
