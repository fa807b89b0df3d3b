/**
 * Runs the pod network between nodes of `up`: flannel beside each kubelet, over the nodes' addresses on this machine.
 * The names of links and tables and the VNI derive from the data directory, which keeps clusters apart.
 */
import { ClusterRoleBindings, ClusterRoles } from '#apis/rbac/v1.ts'
import type { User } from '#auth/user.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { containerdPaths } from '#containerd/paths.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { createIpRoute } from '#lib/net/iproute.ts'
import type { Flannel } from '#network/flannel/daemon.ts'
import { startFlannel } from '#network/flannel/flannel.ts'
import type { FlannelBackend } from '#network/flannel/net-conf.ts'
import { rule } from '#reconcile/controller.ts'

import { rangesOf } from '../address-ranges.ts'

export const FLANNEL_USER: User = {
  name: 'hyperkube:flannel',
  uid: '',
  groups: ['system:authenticated'],
  extra: {},
}

/** The MTU of links between nodes: the Ethernet default. */
const LINK_MTU = 1500
/** Minus the VXLAN overhead. */
export const POD_MTU: number = LINK_MTU - 50

export interface MachineFlannelPlan extends Pick<EnvironmentOptions, 'clock' | 'random' | 'log'> {
  /** The node's directory, from which names derive. */
  readonly dataDir: string
  readonly node: string
  /** The range of all pods. */
  readonly podCidr: string
  readonly backend: FlannelBackend
  /** The interface to other nodes, with its addresses and networks. */
  readonly external: { readonly name: string; readonly addresses: readonly string[]; readonly cidr: string }
  /** As `FLANNEL_USER`. */
  readonly connect: Pick<ApiClientOptions, 'transport' | 'server'>
}

export function startMachineFlannel(plan: MachineFlannelPlan, closing: AsyncDisposableStack): Flannel {
  const { dataDir, node, podCidr, backend, external, connect, clock, random } = plan
  const { overlay, network } = containerdPaths(dataDir)
  return startFlannel(
    {
      client: new ApiClient({ ...connect, clock, userAgent: 'flanneld' }),
      random,
      log: plan.log.withName('flanneld'),
      node,
      conf: { ...networksOf(podCidr), backend },
      ip: createIpRoute(),
      external: { name: external.name, mtu: LINK_MTU, networks: rangesOf(external.cidr) },
      publicIps: publicIpsOf(external.addresses),
      overlay: (family) => (family === 4 ? overlay : `${overlay}${SIXTH}`),
      table: (family) => ({ family: family === 4 ? 'ip' : 'ip6', name: `${network}-masquerade` }),
      masquerades: true,
      setsCondition: true,
    },
    closing,
  )
}

/** The suffix of the IPv6 overlay's name. */
export const SIXTH = '6'

function networksOf(podCidr: string): { readonly network?: string; readonly ipv6Network?: string } {
  const [network, ipv6Network] = rangesOf(podCidr)
  return { ...(network !== undefined && { network }), ...(ipv6Network !== undefined && { ipv6Network }) }
}

function publicIpsOf([four, six]: readonly string[]): { readonly 4?: string; readonly 6?: string } {
  return { ...(four !== undefined && { 4: four }), ...(six !== undefined && { 6: six }) }
}

/** flannel's role, under its upstream name, for our flannel user. */
export async function ensureFlannelAccess({ server }: Pick<RunningServer, 'server'>): Promise<void> {
  const { writer } = server.registry
  const rules = [rule('', 'pods', 'get'), rule('', 'nodes', 'get list watch'), rule('', 'nodes/status', 'patch')]
  await writer.ensure(ClusterRoles, { metadata: { name: ROLE }, rules })
  await writer.ensure(ClusterRoleBindings, {
    metadata: { name: ROLE },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: ROLE },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: FLANNEL_USER.name }],
  })
}

const ROLE = 'hyperkube:flannel'
const RBAC = 'rbac.authorization.k8s.io'
