/**
 * The network between the pods of a cluster's nodes: flannel beside each kubelet, over the addresses that nodes have on their
 * machine. Links and tables are named after the data directory, and so is the number of the network, which keeps clusters apart.
 */
import { ClusterRoleBindings, ClusterRoles } from '#apis/rbac/v1.ts'
import type { User } from '#apiserver/registry/resource.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import { rule } from '#controllers/controller.ts'
import { placesOf } from '#kubelet/containerd/places.ts'
import { createIpRoute } from '#lib/iproute.ts'
import type { Flannel } from '#network/flannel/daemon.ts'
import { startFlannel } from '#network/flannel/flannel.ts'
import type { FlannelBackend } from '#network/flannel/net-conf.ts'

import { rangesOf } from './asked-ranges.ts'

export const FLANNEL_USER: User = {
  name: 'hyperkube:flannel',
  uid: '',
  groups: ['system:authenticated'],
  extra: {},
}

/** Of links between nodes of one machine: what Ethernet has everywhere. */
const LINK_MTU = 1500
/** Less what VXLAN adds. */
export const POD_MTU: number = LINK_MTU - 50

export interface MachineFlannelPlan extends Pick<Surroundings, 'clock' | 'random' | 'log'> {
  /** Of the node: what is made is named after it. */
  readonly dataDir: string
  readonly node: string
  /** Addresses of all pods. */
  readonly podCidr: string
  readonly backend: FlannelBackend
  /** The interface to other nodes, its addresses and the networks that those are in. */
  readonly external: { readonly name: string; readonly addresses: readonly string[]; readonly cidr: string }
  /** As `FLANNEL_USER`. */
  readonly connect: Pick<ApiClientOptions, 'transport' | 'server'>
}

export function startMachineFlannel(plan: MachineFlannelPlan, closing: AsyncDisposableStack): Flannel {
  const { dataDir, node, podCidr, backend, external, connect, clock, random } = plan
  const { overlay, network } = placesOf(dataDir)
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

/** What the name of the overlay of IPv6 ends with. */
export const SIXTH = '6'

function networksOf(podCidr: string): { readonly network?: string; readonly ipv6Network?: string } {
  const [network, ipv6Network] = rangesOf(podCidr)
  return { ...(network !== undefined && { network }), ...(ipv6Network !== undefined && { ipv6Network }) }
}

function publicIpsOf([four, six]: readonly string[]): { readonly 4?: string; readonly 6?: string } {
  return { ...(four !== undefined && { 4: four }), ...(six !== undefined && { 6: six }) }
}

/** flannel's role, by its name, for who is flannel here. */
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
