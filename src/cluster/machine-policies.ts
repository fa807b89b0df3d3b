/** Network policies on a node whose pods' network this process may see: the machine itself, or another on the same machine. */
import { type ClusterRole, type ClusterRoleBinding, ClusterRoleBindings, ClusterRoles } from '#apis/rbac/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import { placesOf } from '#kubelet/containerd/places.ts'
import { removePolicies, startEnforcer } from '#network/policies/enforcer.ts'

import { accountUser } from './controllers.ts'

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

const ACCOUNT = 'kube-network-policies'
const ROLE = `system:${ACCOUNT}`
const RBAC = 'rbac.authorization.k8s.io'

/** Returns when they hold, so that no pod starts before. Rules go with `closing`: it must have ended the node's pods by then. */
export async function startMachinePolicies(
  { server }: Pick<RunningServer, 'server'>,
  options: MachinePolicies,
  closing: AsyncDisposableStack,
): Promise<void> {
  const { clock, log, dataDir, within, keepsRules = false } = options
  await Promise.all([
    server.registry.writer.ensure(ClusterRoles, READER),
    server.registry.writer.ensure(ClusterRoleBindings, READING),
  ])
  const client = new ApiClient({ transport: server.clientAs(accountUser(ACCOUNT)), clock, userAgent: ACCOUNT })
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

const READER: Omit<ClusterRole, 'kind' | 'apiVersion'> = {
  metadata: { name: ROLE },
  rules: [
    { apiGroups: [''], resources: ['pods', 'namespaces', 'nodes'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['get', 'list', 'watch'] },
  ],
}

const READING: Omit<ClusterRoleBinding, 'kind' | 'apiVersion'> = {
  metadata: { name: ROLE },
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: ROLE },
  subjects: [{ kind: 'ServiceAccount', namespace: 'kube-system', name: ACCOUNT }],
}
